"""URL-query notation: `mark=FORD&model=FOCUS&model=MONDEO&year_from=2014&year_to=2016`.

A repeated name is a set, `_from` and `_to` are the closed ends of one range, and different names are
joined by `and`. With a schema a value has the attribute's kind; otherwise it is a number if it parses as
one, and text if not. Most of the language cannot be written here; `render_url` then raises `NotExpressible`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, unquote_to_bytes

from tidings.errors import FilterError, NotExpressible
from tidings.lang.diagnostics import check_length
from tidings.lang.filters import value_text
from tidings.lang.filters.render_text import render_literal, render_text
from tidings.lang.source_map import SourceMap, SourceSpan
from tidings.model import And, In, InNetworks, Is, Kind, Quantifier, Range, Test, all_of, list_scalars, one_of

if TYPE_CHECKING:
    from tidings.model import Filter, Schema

_GROUPED = re.compile(
    r"-?\d{1,3}(?:(?:,\d{3})+(?:\.\d+)?|(?:\.\d{3})+,\d+|(?:\.\d{3}){2,}|(?:[ '_\u00a0\u202f]\d{3})+(?:[.,]\d+)?|,\d+)"
)
_ENDS = {"_from": "low", "_to": "high"}


def parse_url(text: str, schema: Schema | None) -> tuple[Filter, SourceMap]:
    """Return the filter of a query string and the positions of its parts."""
    check_length(text, FilterError)
    reader = _UrlReader(schema)
    built = reader.read_filter(text)
    return built, reader.source_map


class _UrlReader:
    """Reads one query string; the parameters of one attribute become one test, in the order of their first."""

    def __init__(self, schema: Schema | None) -> None:
        self.source_map = SourceMap()
        self._schema = schema

    def read_filter(self, text: str) -> Filter:
        slots: dict[tuple[str, bool], list[tuple[str, str, SourceSpan]]] = {}
        offset = int(text.startswith("?"))
        for piece in text[offset:].split("&"):
            span = SourceSpan(offset, offset + len(piece))
            offset += len(piece) + 1
            parameter = self._read_parameter(piece, span)
            if parameter:
                name, end, value = parameter
                slots.setdefault((name, bool(end)), []).append((end, value, span))
        tests = [self._build_test(name, ranged, parameters) for (name, ranged), parameters in slots.items()]
        return all_of(test for test in tests if test is not None)

    def _read_parameter(self, piece: str, span: SourceSpan) -> tuple[str, str, str] | None:
        name, equals, value = piece.partition("=")
        if not equals or not name:
            self.source_map.refuse("expected name=value", span)
            return None
        try:
            key, decoded = _decode(name), _decode(value)
        except ValueError as problem:
            self.source_map.refuse(str(problem), span)
            return None
        declared = self._schema or ()
        for suffix, end in _ENDS.items():
            base = key.removesuffix(suffix)
            # Where a schema declares `valid_from` and no `valid`, the name is the attribute's.
            if base not in ("", key) and not (key in declared and base not in declared):
                return base, end, decoded
        return key, "", decoded

    def _build_test(self, name: str, ranged: bool, parameters: list[tuple[str, str, SourceSpan]]) -> Filter | None:
        span = SourceSpan(parameters[0][2].start, parameters[-1][2].end)
        try:
            declared = self._schema.get(name) if self._schema is not None else None
            kind = declared.kind if declared is not None else None
            values = [(end, _read_value(value, kind)) for end, value, _ in parameters]
            test = Test(name, _build_range(name, values, kind) if ranged else _build_set(values))
        except ValueError as problem:
            self.source_map.refuse(str(problem), span)
            return None
        self.source_map.record(test, span, span)
        return test


def _decode(text: str) -> str:
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


def _read_value(text: str, kind: Kind | None) -> Any:
    match kind:
        case Kind.TEXT | Kind.CONCEPT:
            return text
        case Kind.TIME:
            return value_text.parse_moment(text)
        case Kind.IP:
            return value_text.parse_network(text)
        case Kind.BOOL if text in ("true", "false"):
            return text == "true"
    if value_text.NUMBER.fullmatch(text):
        return value_text.parse_number(text)
    if kind is None:
        return text
    msg = f"`{text}` is not {kind}"
    if kind is Kind.NUMBER and _GROUPED.fullmatch(text):
        msg += f"; numbers are written without separators: {_remove_separators(text)}"
    raise ValueError(msg)


def _remove_separators(text: str) -> str:
    return re.sub(r"[^\d-](?=\d{3}(?!\d))", "", text).replace(",", ".")


def _build_set(parameters: list[tuple[str, Any]]) -> Is | In | InNetworks:
    values = [value for _, value in parameters]
    return InNetworks(tuple(values)) if hasattr(values[0], "prefixlen") else one_of(values)


def _build_range(name: str, values: list[tuple[str, Any]], kind: Kind | None) -> Range:
    for _, value in values:  # as text, no number would lie below a bound such as `9,000`
        if kind is None and isinstance(value, str) and _GROUPED.fullmatch(value):
            msg = f"`{value}` would be text; numbers are written without separators: {_remove_separators(value)}"
            raise ValueError(msg)
    ends = dict(values)
    if len(ends) < len(values):
        msg = f"`{name}` has the same end of its range twice"
        raise ValueError(msg)
    return Range(ends.get("low"), ends.get("high"))


def render_url(tree: Filter, schema: Schema | None) -> str:
    """Return the filter as a query string; `NotExpressible` names a part that cannot be written."""
    parts = tree.parts if isinstance(tree, And) and tree.parts else (tree,)
    seen: set[str] = set()
    parameters: list[str] = []
    for part in parts:
        if not isinstance(part, Test) or part.attribute in seen:
            raise _make_error(part, "two tests of one attribute" if isinstance(part, Test) else "this connective")
        seen.add(part.attribute)
        parameters += _to_parameters(part, schema)
    text = "&".join(parameters)
    if not _reads_back(text, tree, schema):
        raise _make_error(tree, "what would be read back differs")
    return text


def _to_parameters(test: Test, schema: Schema | None) -> list[str]:
    name, condition = test.attribute, test.condition
    if test.quantifier is not Quantifier.ANY:
        raise _make_error(test, f"the quantifier `{test.quantifier}`")
    match condition:
        case Is() | In():
            parameters = [(name, value) for value in list_scalars(condition)]
        case InNetworks(networks):
            parameters = [(name, str(network)) for network in networks]
        case Range(low, high) if not condition.low_open and not condition.high_open:
            parameters = [(name + suffix, end) for suffix, end in (("_from", low), ("_to", high)) if end is not None]
        case Range():
            raise _make_error(test, "an open end")
        case _:
            raise _make_error(test, "this operator")
    written = [(key, value if isinstance(value, str) else render_literal(value)) for key, value in parameters]
    texts = [f"{quote_plus(key)}={quote_plus(value)}" for key, value in written]
    if not _reads_back("&".join(texts), test, schema):
        hint = "" if schema is not None else "; with schema= the value would take the attribute's kind"
        raise _make_error(test, f"it would be read back as something else{hint}")
    return texts


def _reads_back(text: str, tree: Filter, schema: Schema | None) -> bool:
    back, source_map = parse_url(text, schema)
    return back == tree and not source_map.mistakes


def _make_error(part: Filter, why: str) -> NotExpressible:
    text = render_text(part)
    return NotExpressible(f"URL notation cannot say `{text}`: {why}", notation="url", part=text)
