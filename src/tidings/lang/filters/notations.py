"""`parse` and `render`: one filter tree, three notations (text, JSON, URL query), the same checks.

Text takes the fast parser (`fast_text`) where it can, and the grammar otherwise; both build the same tree. A filter
that is read with a vocabulary is then checked against it (`check`), and all mistakes are reported in one error.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from tidings.concepts import Vocabulary
from tidings.errors import FilterError
from tidings.lang.diagnostics import build_error, check_notation
from tidings.lang.filters.ambiguities import find_ambiguous_words, issue_warnings
from tidings.lang.filters.check import FilterChecker
from tidings.lang.filters.fast_text import BARE_WORD, parse_fast
from tidings.lang.filters.parse_json import parse_json
from tidings.lang.filters.render_json import render_json
from tidings.lang.filters.render_text import render_text
from tidings.lang.filters.url import parse_url, render_url
from tidings.lang.source_map import SourceMap
from tidings.model import Test, Within, change_parts, require_filter

if TYPE_CHECKING:
    from datetime import datetime

    from tidings.concepts import Ontology, Regions
    from tidings.errors import FilterWarning
    from tidings.model import Filter, Schema

NOTATIONS = ("text", "json", "url")
"""The values of `notation=`."""


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
    no_vocabulary = schema is None and ontology is None and regions is None
    vocabulary = _NO_VOCABULARY if no_vocabulary else _find_vocabulary(schema, ontology, regions)
    return parse_filter(source, vocabulary, notation=notation, warnings=warnings)


def parse_filter(
    source: Any, vocabulary: Vocabulary, *, notation: str = "text", warnings: list[FilterWarning] | None = None
) -> Filter:
    """Read a filter as `parse` does, with schema, ontology and regions as one value."""
    if vocabulary.is_empty and notation == "text" and type(source) is str and not BARE_WORD.search(source):
        tree = parse_fast(source)  # a million filters come this way
        if tree is not None:
            return tree
    check_notation(notation, NOTATIONS)
    if notation != "json" and not isinstance(source, str):
        msg = f"a filter in {notation} notation is text, not {type(source).__name__}"
        raise FilterError(msg, mistakes=(), text=None)
    checker = None if vocabulary.is_empty else _find_fast_checker(vocabulary)
    tree, filter_warnings = _parse(source, notation, checker, stored=False)
    if filter_warnings:
        issue_warnings(filter_warnings, warnings)
    return tree


def parse_stored(source: str, vocabulary: Vocabulary) -> Filter:
    """Read a stored filter: the text of one that was accepted before.

    Syntax that has been refused or warned of since then (`%` in a `like` pattern) keeps its old meaning.
    """
    checker = None
    if not vocabulary.is_empty:
        checker = _find_fast_checker(vocabulary)
    elif (tree := parse_fast(source)) is not None:
        return tree
    return _parse(source, "text", checker, stored=True)[0]


def parse_rendered(source: str) -> Filter:
    """Read the JSON that `render` wrote of a filter: what was accepted is read, however long or deep its tree is.

    A text of a hundred parentheses may be a tree of two hundred levels, and a tree has more characters than its text.
    """
    tree, source_map = parse_json(json.loads(source), levels=math.inf)
    if source_map.mistakes:
        raise build_error(FilterError, source_map.mistakes, source)
    return tree


def _parse(
    source: Any, notation: str, checker: _FastChecker | None, *, stored: bool
) -> tuple[Filter, list[FilterWarning]]:
    """Return the filter and the warnings about it; `checker` is that of the vocabulary, if there is one."""
    vocabulary = _NO_VOCABULARY if checker is None else checker.vocabulary
    schema = vocabulary.schema
    if checker is not None and notation == "text":
        # With a closed schema an unknown word is a mistake, not a warning, so no warning can be missed here.
        unambiguous = stored or (schema is not None and schema.closed) or not BARE_WORD.search(source)
        if unambiguous and (tree := checker.parse(source)) is not None:
            return tree, []
    built, source_map = _read_notation(source, notation, schema, stored=stored)
    tree, mistakes = built, list(source_map.mistakes)
    if checker is not None:
        checks = FilterChecker(vocabulary)
        tree = checks.check(built, source_map)
        mistakes += [mistake for mistake in checks.mistakes if not any(map(mistake.meets, source_map.mistakes))]
    if mistakes:
        raise build_error(FilterError, mistakes, source if isinstance(source, str) else None)
    if stored or not source_map.bare_words:
        return tree, []
    return tree, find_ambiguous_words(built, source_map, source, vocabulary)


class _FastChecker:
    """Checks filters of the fast parser against one vocabulary, each distinct predicate once.

    The fast parser returns one object for equal predicates, so `id` is a cache key; the cache refers to the predicate,
    which keeps its `id` from being reused. At a mistake the caller reads the filter again by the grammar, which knows
    the positions.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._accepted: dict[int, tuple[Test, Filter]] = {}

    def parse(self, source: str) -> Filter | None:
        """Return the checked filter, or None when the grammar must read it."""
        built = parse_fast(source)
        try:
            return None if built is None else self._check_filter(built)
        except FilterError:
            return None

    def _check_filter(self, tree: Filter) -> Filter:
        if not isinstance(tree, Test):
            return change_parts(tree, self._check_filter)
        accepted = self._accepted.get(id(tree))
        return self._check_test(tree) if accepted is None else accepted[1]

    def _check_test(self, test: Test) -> Filter:
        checker = FilterChecker(self.vocabulary)
        checked = checker.check(test, SourceMap())
        if checker.mistakes:
            raise FilterError(mistakes=tuple(checker.mistakes), text=None)
        accepted = test if checked == test else checked
        if not isinstance(test.condition, Within):  # as in the fast parser: large, and seldom repeated
            if len(self._accepted) >= _MAX_ACCEPTED:
                self._accepted = {}
            self._accepted[id(test)] = (test, accepted)
        return accepted


_MAX_ACCEPTED = 100_000
_last_checker: list[_FastChecker] = []  # at most one: a loader parses filter after filter with the same vocabulary


_NO_VOCABULARY = Vocabulary()


def _find_vocabulary(schema: Schema | None, ontology: Ontology | None, regions: Regions | None) -> Vocabulary:
    """Return the vocabulary of exactly these objects: that of the last checker, or a new one."""
    checker = _find_last_checker(schema, ontology, regions)
    return Vocabulary.of(schema, ontology, regions) if checker is None else checker.vocabulary


def _find_fast_checker(vocabulary: Vocabulary) -> _FastChecker:
    """Return the last checker if it is of the same three objects, or a new one."""
    checker = _find_last_checker(vocabulary.schema, vocabulary.ontology, vocabulary.regions)
    if checker is None:
        _last_checker[:] = [checker := _FastChecker(vocabulary)]
    return checker


def _find_last_checker(
    schema: Schema | None, ontology: Ontology | None, regions: Regions | None
) -> _FastChecker | None:
    for checker in _last_checker:
        last = checker.vocabulary
        # Compared one by one: making a `Vocabulary` of them takes a quarter of the time of a plain filter.
        if last.schema is schema and last.ontology is ontology and last.regions is regions:
            return checker
    return None


def _read_notation(source: Any, notation: str, schema: Schema | None, *, stored: bool) -> tuple[Filter, SourceMap]:
    if notation == "json":
        return parse_json(source)
    if notation == "url":
        return parse_url(source, schema)
    from tidings.lang.filters.parse_text import parse_text  # late: it loads Lark, which typical filters never need

    return parse_text(source, stored=stored)


def render(tree: Filter, *, notation: str = "text", schema: Schema | None = None) -> str:
    """Write a filter; `NotExpressible` names the part that the notation cannot say.

    >>> render(parse("make = 'ford' and price <= 9000"), notation="url")
    'make=ford&price_to=9000'
    """
    check_notation(notation, NOTATIONS)
    require_filter(tree)
    if notation == "json":
        return render_json(tree)
    if notation == "url":
        return render_url(tree, schema)
    return render_text(tree)
