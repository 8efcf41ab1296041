"""`parse` and `render`: one tree, three notations, the same checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.errors import FilterError, TidingsError
from tidings.lang.diagnostics import refused
from tidings.model import require_filter

if TYPE_CHECKING:
    from datetime import datetime

    from tidings.concepts import Ontology, Regions
    from tidings.errors import Mistake
    from tidings.lang.spots import Spots
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
) -> Filter:
    """Read a filter; `FilterError` reports every mistake with its place.

    >>> parse("price in [2000 .. 5000) and make = 'ford'") == parse(
    ...     '{"and": [{"attr": "price", "op": "range", "low": 2000, "high": 5000, "high_open": true},'
    ...     ' {"attr": "make", "op": "=", "value": "ford"}]}', notation="json")
    True

    `json` takes text or the decoded object. With a schema, ontology or regions, names are checked and
    text literals take the attribute's kind.
    """
    _check_notation(notation)
    if notation != "json" and not isinstance(source, str):
        msg = f"a filter in {notation} notation is text, not {type(source).__name__}"
        raise FilterError(msg, mistakes=(), text=None)
    surroundings = (schema, ontology, regions)
    if surroundings != (None, None, None):
        from tidings.concepts import check_surroundings

        check_surroundings(*surroundings)
    if notation == "text" and (quick := _quick(source, *surroundings)) is not None:
        return quick
    built, spots = _read(source, notation, schema)
    tree, mistakes = _checked(built, spots, *surroundings)
    if spots.mistakes or mistakes:
        apart = [found for found in mistakes if not any(found.meets(other) for other in spots.mistakes)]
        raise refused([*spots.mistakes, *apart], source if isinstance(source, str) else None)
    return tree


def _quick(source: str, *surroundings: Any) -> Filter | None:
    """Return what the quick way reads; a mistake found there is read again, for its place."""
    from tidings.lang.fast import parse_fast
    from tidings.lang.spots import Spots

    built = parse_fast(source)
    if built is None:
        return None
    tree, mistakes = _checked(built, Spots(), *surroundings)
    return None if mistakes else tree


def _read(source: Any, notation: str, schema: Schema | None) -> tuple[Filter, Spots]:
    if notation == "json":
        from tidings.lang.jsonform import parse_json

        return parse_json(source)
    if notation == "url":
        from tidings.lang.url import parse_url

        return parse_url(source, schema)
    from tidings.lang.text import parse_text

    return parse_text(source)


def _checked(built: Filter, spots: Spots, *surroundings: Any) -> tuple[Filter, list[Mistake]]:
    if all(part is None for part in surroundings):
        return built, []
    from tidings.lang.check import Checker

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
        from tidings.lang.jsonform import render_json

        return render_json(tree)
    if notation == "url":
        from tidings.lang.url import render_url

        return render_url(tree, schema)
    from tidings.lang.textform import render_text

    return render_text(tree)


def _check_notation(notation: str) -> None:
    if notation not in NOTATIONS:
        msg = f"unknown notation `{notation}`; the notations are {', '.join(NOTATIONS)}"
        raise TidingsError(msg)
