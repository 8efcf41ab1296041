"""URL-query notation: `mark=FORD&model=FOCUS&model=MONDEO&year_from=2014&year_to=2016`.

A repeated name is a set, `_from` and `_to` are the closed ends of one range, and different names are
joined by `and`. A value takes the attribute's kind where a schema is given; otherwise it is a number if
it reads as one, and text if not. Most of the language has no place here, and `render` says so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, unquote_to_bytes

from tidings.errors import Mistake, NotExpressible
from tidings.lang.diagnostics import check_length
from tidings.lang.filters import literals
from tidings.lang.filters.render_text import render_text
from tidings.lang.filters.source_spans import Spot, Spots
from tidings.model import And, In, InNetworks, Is, Kind, Quantifier, Range, Test, all_of, one_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.model import Filter, Schema, TextTest  # noqa: F401

_GROUPED = re.compile(
    r"-?\d{1,3}(?:(?:,\d{3})+(?:\.\d+)?|(?:\.\d{3})+,\d+|(?:\.\d{3}){2,}|(?:[ '_\u00a0\u202f]\d{3})+(?:[.,]\d+)?|,\d+)"
)
_ENDS = {"_from": "low", "_to": "high"}


def parse_url(text: str, schema: Schema | None) -> tuple[Filter, Spots]:
    """Return the filter of a query string and where its parts stand."""
    check_length(text)
    reader = _Reader(schema)
    built = reader.filter(text)
    return built, reader.spots


class _Reader:
    """Reads one query string; parameters of one attribute come together at the first one's place."""

    def __init__(self, schema: Schema | None) -> None:
        self.spots = Spots()
        self._schema = schema

    def filter(self, text: str) -> Filter:
        slots: dict[tuple[str, bool], list[tuple[str, str, tuple[int, int]]]] = {}
        at = text.startswith("?")
        for piece in text[at:].split("&"):
            span = (int(at), int(at) + len(piece))
            at = span[1] + 1  # type: ignore[assignment]
            parameter = self._parameter(piece, span)
            if parameter:
                name, end, value = parameter
                slots.setdefault((name, bool(end)), []).append((end, value, span))
        tests = [self._test(name, ranged, given) for (name, ranged), given in slots.items()]
        return all_of(test for test in tests if test is not None)

    def _parameter(self, piece: str, span: tuple[int, int]) -> tuple[str, str, str] | None:
        name, equals, value = piece.partition("=")
        if not equals or not name:
            self.spots.mistakes.append(Mistake("expected name=value", *span))
            return None
        try:
            key, shown = _decoded(name), _decoded(value)
        except ValueError as problem:
            self.spots.mistakes.append(Mistake(str(problem), *span))
            return None
        suffix = next((suffix for suffix in _ENDS if key.endswith(suffix) and self._is_end(key, suffix)), "")
        return key.removesuffix(suffix), _ENDS.get(suffix, ""), shown

    def _is_end(self, key: str, suffix: str) -> bool:
        # A schema that has `valid_from` itself, and no `valid`, means the attribute.
        base = key.removesuffix(suffix)
        return bool(base) and not (self._schema is not None and key in self._schema and base not in self._schema)

    def _test(self, name: str, ranged: bool, given: list[tuple[str, str, tuple[int, int]]]) -> Filter | None:
        span = (given[0][2][0], given[-1][2][1]) if len(given) > 1 else given[0][2]
        try:
            kind = self._kind(name)
            values = [(end, _value(value, kind)) for end, value, _ in given]
            if ranged and kind is None:
                _refuse_separators(value for _, value in values)
            made = Test(name, _range(name, values) if ranged else _set(value for _, value in values))
        except ValueError as problem:
            self.spots.mistakes.append(Mistake(str(problem), *span))
            return None
        self.spots.note(made, Spot(span, span))
        return made

    def _kind(self, name: str) -> Kind | None:
        declared = self._schema.get(name) if self._schema is not None else None
        return declared.kind if declared is not None else None


def _decoded(text: str) -> str:
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        msg = "`%` is followed by two hexadecimal digits; a percent sign itself is %25"
        raise ValueError(msg)
    try:
        return unquote_to_bytes(text.replace("+", " ")).decode()
    except UnicodeDecodeError:
        msg = "the percent-encoded bytes are not UTF-8"
        raise ValueError(msg) from None
    except UnicodeEncodeError:
        msg = "the text holds half of a surrogate pair"
        raise ValueError(msg) from None


def _value(text: str, kind: Kind | None) -> Any:
    match kind:
        case Kind.TEXT | Kind.CONCEPT:
            return text
        case Kind.TIME:
            return literals.moment(text)
        case Kind.IP:
            return literals.network(text)
        case Kind.BOOL if text in ("true", "false"):
            return text == "true"
    if literals.NUMBER.fullmatch(text):
        return literals.number(text)
    if kind is None:
        return text
    grouped = _GROUPED.fullmatch(text)
    way = f"; numbers are written without separators: {_ungrouped(text)}" if grouped and kind is Kind.NUMBER else ""
    msg = f"`{text}` is not {kind}{way}"
    raise ValueError(msg)


def _refuse_separators(values: Iterable[Any]) -> None:
    """Refuse an end such as `9,000`, which would be text: no number lies below it."""
    for value in values:
        if isinstance(value, str) and _GROUPED.fullmatch(value):
            msg = f"`{value}` would be text; numbers are written without separators: {_ungrouped(value)}"
            raise ValueError(msg)


def _ungrouped(text: str) -> str:
    return re.sub(r"[^\d-](?=\d{3}(?!\d))", "", text).replace(",", ".")


def _set(values: Iterable[Any]) -> Is | In | InNetworks:
    values = list(values)
    return InNetworks(tuple(values)) if hasattr(values[0], "prefixlen") else one_of(values)


def _range(name: str, values: list[tuple[str, Any]]) -> Range:
    ends = dict(values)
    if len(ends) < len(values):
        msg = f"`{name}` has the same end of its range twice"
        raise ValueError(msg)
    return Range(ends.get("low"), ends.get("high"))


def render_url(tree: Filter, schema: Schema | None) -> str:
    """Return the filter as a query string, or raise `NotExpressible` naming the part that cannot be said."""
    parts = tree.parts if isinstance(tree, And) and tree.parts else (tree,)
    seen: set[str] = set()
    shown: list[str] = []
    for part in parts:
        if not isinstance(part, Test) or part.attribute in seen:
            raise _not_expressible(part, "two tests of one attribute" if isinstance(part, Test) else "this connective")
        seen.add(part.attribute)
        shown += [f"{quote_plus(name)}={quote_plus(value)}" for name, value in _parameters(part, schema)]
    text = "&".join(shown)
    back, spots = parse_url(text, schema)
    if back != tree or spots.mistakes:
        raise _not_expressible(tree, "what would be read back differs")
    return text


def _parameters(test: Test, schema: Schema | None) -> list[tuple[str, str]]:
    name, condition = test.attribute, test.condition
    if test.quantifier is not Quantifier.ANY:
        raise _not_expressible(test, f"the quantifier `{test.quantifier}`")
    match condition:
        case Is(value):
            found = [(name, value)]
        case In(values):
            found = [(name, value) for value in values]
        case InNetworks(networks):
            found = [(name, str(network)) for network in networks]
        case Range(low, high) if not condition.low_open and not condition.high_open:
            found = [(name + suffix, end) for suffix, end in (("_from", low), ("_to", high)) if end is not None]
        case Range():
            raise _not_expressible(test, "an open end")
        case _:
            raise _not_expressible(test, "this operator")
    shown = [(key, _shown(value)) for key, value in found]
    _refuse_misread(test, shown, schema)
    return shown


def _shown(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return literals.shown_number(value)
        case str():
            return value
    return literals.shown_moment(value) if hasattr(value, "tzinfo") else str(value)


def _refuse_misread(test: Test, parameters: list[tuple[str, str]], schema: Schema | None) -> None:
    """Refuse a part that would be read back as something else, and say which."""
    text = "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in parameters)
    reader = _Reader(schema)
    if reader.filter(text) != test or reader.spots.mistakes:
        hint = "" if schema is not None else "; with schema= the value would take the attribute's kind"
        raise _not_expressible(test, f"it would be read back as something else{hint}")


def _not_expressible(part: Filter, why: str) -> NotExpressible:
    shown = render_text(part)
    return NotExpressible(f"URL notation cannot say `{shown}`: {why}", notation="url", part=shown)
