"""`parse` and `render`: one tree, three notations, the same checks."""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Any

from tidings.errors import FilterError, TidingsError
from tidings.lang.diagnostics import refused
from tidings.lang.filters.fast_text import BARE_WORD, parse_fast
from tidings.model import Not, Test, Within, require_filter

if TYPE_CHECKING:
    from datetime import datetime

    from tidings.concepts import Ontology, Regions
    from tidings.errors import FilterWarning, Mistake
    from tidings.lang.filters.source_spans import Spots
    from tidings.model import Filter, Schema

NOTATIONS = ("text", "json", "url")
"""The names `notation=` takes."""


def parse(
    source: Any,
    *,
    notation: str = "text",
    schema: Schema | None = None,
    ontology: Ontology | None = None,
    regions: Regions | None = None,
    now: datetime | None = None,  # noqa: ARG001 - the same keywords everywhere; a filter as written has no time
    warnings: list[FilterWarning] | None = None,
) -> Filter:
    """Read a filter; `FilterError` reports every mistake with its place.

    >>> parse("price in [2000 .. 5000) and make = 'ford'") == parse(
    ...     '{"and": [{"attr": "price", "op": "range", "low": 2000, "high": 5000, "high_open": true},'
    ...     ' {"attr": "make", "op": "=", "value": "ford"}]}', notation="json")
    True

    `json` takes text or the decoded object. With a schema, ontology or regions, names are checked and
    text literals take the attribute's kind.

    A comparison with a bare word that no schema knows (`make = ford`) gives a `FilterWarning`; a list given as
    `warnings` takes them instead. Backticks around the word say that another attribute is meant.
    """
    bare = schema is None and ontology is None and regions is None
    if bare and notation == "text" and type(source) is str and not BARE_WORD.search(source):
        quick = parse_fast(source)  # a million filters come this way
        if quick is not None:
            return quick
    _check_source(source, notation)
    tree, doubts = _parsed(source, notation, (schema, ontology, regions), stored=False)
    if warnings is not None:
        warnings += doubts
    elif doubts:
        from tidings.lang.filters.ambiguities import warn_of

        warn_of(doubts)
    return tree


def parse_stored(source: str, **surroundings: Any) -> Filter:
    """Read the text of a filter that was accepted before: what is refused or doubted today is read as it was then."""
    around = (surroundings.get("schema"), surroundings.get("ontology"), surroundings.get("regions"))
    if all(part is None for part in around) and (quick := parse_fast(source)) is not None:
        return quick
    return _parsed(source, "text", around, stored=True)[0]


def _check_source(source: Any, notation: str) -> None:
    _check_notation(notation)
    if notation != "json" and not isinstance(source, str):
        msg = f"a filter in {notation} notation is text, not {type(source).__name__}"
        raise FilterError(msg, mistakes=(), text=None)


def _parsed(
    source: Any, notation: str, surroundings: tuple[Any, Any, Any], *, stored: bool
) -> tuple[Filter, list[FilterWarning]]:
    """Return the filter and the warnings about it; the quick way first, where there is nothing to warn of."""
    schema, ontology, _ = surroundings
    if any(part is not None for part in surroundings):
        screen = _screen(*surroundings)
        known = stored or (schema is not None and schema.closed)  # an unknown word is then a mistake, not a doubt
        if notation == "text" and (known or not BARE_WORD.search(source)):
            quick = screen.quick(source)
            if quick is not None:
                return quick, []
    built, spots = _read(source, notation, schema, stored=stored)
    tree, mistakes = _checked(built, spots, *surroundings)
    if spots.mistakes or mistakes:
        apart = [found for found in mistakes if not any(found.meets(other) for other in spots.mistakes)]
        raise refused([*spots.mistakes, *apart], source if isinstance(source, str) else None)
    if stored or not spots.bare_words:
        return tree, []
    from tidings.lang.filters.ambiguities import doubtful_words

    return tree, doubtful_words(built, spots, source, schema, ontology)


class _Screen:
    """Checks filters of the quick way against one schema, ontology and regions; what it found fit stays fit.

    The quick way hands out one object for equal predicates, so a predicate is known again by its identity;
    holding it keeps its identity its own. A mistake is read again by the grammar, for its place.
    """

    def __init__(self, *surroundings: Any) -> None:
        """Refuse what are no surroundings."""
        from tidings.concepts import Vocabulary
        from tidings.lang.filters.check import Checker
        from tidings.lang.filters.source_spans import Spots

        Vocabulary.of(*surroundings)
        self.surroundings = surroundings
        self._checker, self._nowhere = Checker(*surroundings), Spots()
        self._fit: dict[int, tuple[Test, Test]] = {}

    def quick(self, source: str) -> Filter | None:
        """Return what the quick way reads, or nothing when the grammar must look."""
        built = parse_fast(source)
        return None if built is None else self._filter(built)

    def _filter(self, tree: Filter) -> Filter | None:
        if isinstance(tree, Test):
            fit = self._fit.get(id(tree))
            return self._test(tree) if fit is None else fit[1]
        if isinstance(tree, Not):
            part = self._filter(tree.part)
            return tree if part is tree.part else None if part is None else Not(part)
        parts = [part for part in map(self._filter, tree.parts) if part is not None]
        if len(parts) < len(tree.parts):
            return None
        return tree if all(map(is_, parts, tree.parts)) else type(tree)(tuple(parts))

    def _test(self, test: Test) -> Test | None:
        checker = self._checker
        checked = checker.check(test, self._nowhere)
        if checker.mistakes:
            self._checker = type(checker)(*self.surroundings)
            return None
        found = test if checked == test else checked
        assert isinstance(found, Test)
        if not isinstance(test.condition, Within):  # as in the quick way: large, and seldom twice the same
            if len(self._fit) >= _FIT_LIMIT:
                self._fit = {}
            self._fit[id(test)] = (test, found)
        return found


_FIT_LIMIT = 100_000
_screens: list[_Screen] = []  # the one used last


def _screen(*surroundings: Any) -> _Screen:
    """Return the screen of these very surroundings: a loader parses filter after filter with the same."""
    for screen in _screens:
        if all(map(is_, screen.surroundings, surroundings)):
            return screen
    screen = _Screen(*surroundings)
    _screens[:] = [screen]
    return screen


def _read(source: Any, notation: str, schema: Schema | None, *, stored: bool) -> tuple[Filter, Spots]:
    if notation == "json":
        from tidings.lang.filters.parse_json import parse_json

        return parse_json(source)
    if notation == "url":
        from tidings.lang.filters.url import parse_url

        return parse_url(source, schema)
    from tidings.lang.filters.parse_text import parse_text

    return parse_text(source, stored=stored)


def _checked(built: Filter, spots: Spots, *surroundings: Any) -> tuple[Filter, list[Mistake]]:
    if all(part is None for part in surroundings):
        return built, []
    from tidings.lang.filters.check import Checker

    checker = Checker(*surroundings)
    return checker.check(built, spots), checker.mistakes


def render(tree: Filter, *, notation: str = "text", schema: Schema | None = None) -> str:
    """Write a filter; `NotExpressible` names the part that the notation cannot say.

    >>> render(parse("make = 'ford' and price <= 9000"), notation="url")
    'make=ford&price_to=9000'
    """
    _check_notation(notation)
    require_filter(tree)
    if notation == "json":
        from tidings.lang.filters.render_json import render_json

        return render_json(tree)
    if notation == "url":
        from tidings.lang.filters.url import render_url

        return render_url(tree, schema)
    from tidings.lang.filters.render_text import render_text

    return render_text(tree)


def _check_notation(notation: str) -> None:
    if notation not in NOTATIONS:
        msg = f"unknown notation `{notation}`; the notations are {', '.join(NOTATIONS)}"
        raise TidingsError(msg)
