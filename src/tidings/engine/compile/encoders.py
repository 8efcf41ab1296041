"""Encoders, one for each kind of predicate: the column that a predicate tests, and the intervals that it accepts there.

    price < 9000          one interval of the column `price`, open at its high end
    name starts with 'fo' the interval of bytes from `fo` up to `fp`
    host in 10.0.0.0/8    the interval from the block's first address to its last, as bytes
    kind is a 'car'       the depth-first numbers of the concepts below `car`; several parents, a few ranges
    spot within AREA      the intervals of a bounding box, which find candidates that an exact check decides

A predicate that is not an interval has no encoder: `contains`, `like` and `matches` are ids of patterns instead
(`exact.text_automaton`), and the law decides the rest. `ENCODERS` is by the kind of value: a new kind is one function
and one line of it; a new condition of a kind that is there needs a case in its function, if only to return None.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import collapse_addresses
from typing import TYPE_CHECKING, Any, TypeAlias

from tidings import model
from tidings.algebra.law.typed_attribute import resolve_attribute, strip_unit
from tidings.concepts.taxonomies.tree import find_tree_labels
from tidings.engine.compile.columns import Column, View
from tidings.engine.exact.place_tests import PlaceTable
from tidings.errors import TidingsError
from tidings.model import Kind
from tidings.model.values import to_microseconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.concepts import Ontology

LOW_OPEN, HIGH_OPEN, NO_LOW, NO_HIGH = 1, 2, 4, 8
"""Flags of an interval's ends."""

Span: TypeAlias = tuple[Any, Any, int]
"""Low end and high end (numbers or bytes, like the column's values; any value for a missing end), and flags."""

ALL_LONGITUDES = (-180.0, 180.0)


@dataclass(frozen=True, slots=True)
class EncodedPredicate:
    """A predicate as intervals of one column; several intervals are disjoint."""

    column: Column
    spans: tuple[Span, ...]


def encode_condition(attribute: str, condition: model.Condition, ontology: Ontology) -> EncodedPredicate | None:
    """Return a condition as intervals of one column, or None where it is not an interval."""
    match condition:
        case model.Exists():
            return EncodedPredicate(Column(attribute, View.EXISTS), (make_point(0),))
        case model.IsNull():
            return EncodedPredicate(Column(attribute, View.NULL), (make_point(0),))
        case model.IsA():
            return encode_concept(attribute, condition, ontology)
    kind = condition.kind
    encoder = ENCODERS.get(kind) if kind is not None else None
    return encoder(attribute, condition) if encoder else None


def make_point(value: Any) -> Span:
    """Return the interval of one value."""
    return value, value, 0


def to_spans(condition: model.Condition, convert: Callable[[Any], Any] = lambda end: end) -> tuple[Span, ...]:
    """Return intervals of converted values: of a range, of one value, of a set; a missing end is flagged."""
    match condition:
        case model.Range(low, high, low_open, high_open):
            flags = low_open * LOW_OPEN | high_open * HIGH_OPEN | (low is None) * NO_LOW | (high is None) * NO_HIGH
            return ((convert(high if low is None else low), convert(low if high is None else high), flags),)
        case model.Is(value):
            return (make_point(convert(value)),)
        case model.In(values):
            return tuple(make_point(convert(value)) for value in values)
    raise TypeError(condition)


def encode_number(attribute: str, condition: model.Condition) -> EncodedPredicate:
    """Return the intervals of a condition on numbers."""
    unit = resolve_attribute(attribute, condition).unit or None
    column = Column(attribute, View.NUMBER, kind=Kind.NUMBER, unit=unit)
    return EncodedPredicate(column, to_spans(strip_unit(condition) if unit else condition))


def encode_boolean(attribute: str, condition: model.Condition) -> EncodedPredicate:
    """Return truth values as the points 0 and 1."""
    return EncodedPredicate(Column(attribute, View.NUMBER, kind=Kind.BOOL), to_spans(condition, int))


def encode_time(attribute: str, condition: model.Condition) -> EncodedPredicate:
    """Return the intervals of a condition on times, or of an age: seconds before now, computed once for a batch."""
    if isinstance(condition, model.Age):
        return EncodedPredicate(Column(attribute, View.AGE, kind=Kind.TIME), to_spans(condition.seconds))
    return EncodedPredicate(Column(attribute, View.NUMBER, kind=Kind.TIME), to_spans(condition, to_microseconds))


def encode_text(attribute: str, condition: model.Condition) -> EncodedPredicate | None:
    """Return the intervals of a condition on text, or None for a pattern.

    Text is its UTF-8 bytes, whose order is that of code points; a suffix is a prefix of reversed text.
    """
    match condition:
        case model.TextTest(model.TextOp.STARTS_WITH, pattern, ignoring_case):
            view = View.FOLDED if ignoring_case else View.TEXT
            spans: tuple[Span, ...] = (_make_prefix_span(pattern.casefold() if ignoring_case else pattern),)
        case model.TextTest(model.TextOp.ENDS_WITH, pattern, ignoring_case):
            view = View.FOLDED_REVERSED if ignoring_case else View.REVERSED
            spans = (_make_prefix_span((pattern.casefold() if ignoring_case else pattern)[::-1]),)
        case model.TextTest():
            return None
        case model.SameText(folded=folded):
            view, spans = View.FOLDED, tuple(make_point(text.encode()) for text in sorted(folded))
        case _:
            view, spans = View.TEXT, to_spans(condition, str.encode)
    return EncodedPredicate(Column(attribute, view, kind=Kind.TEXT), spans)


def _make_prefix_span(text: str) -> Span:
    """Return the interval of what begins with a text; UTF-8 has no byte 255, so the last byte can be incremented."""
    prefix = text.encode()
    if not prefix:
        return b"", b"", NO_LOW | NO_HIGH
    return prefix, prefix[:-1] + bytes([prefix[-1] + 1]), HIGH_OPEN


def encode_address(attribute: str, condition: model.Condition) -> EncodedPredicate:
    """Return the intervals of blocks of addresses."""
    assert isinstance(condition, model.InNetworks)
    # One version at a time, as Python collapses; what comes out is disjoint, as the intervals of a union must be.
    versions = [[net for net in condition.networks if net.version == version] for version in (4, 6)]
    blocks: list[Any] = [block for nets in versions for block in collapse_addresses(nets)]  # type: ignore[type-var]
    spans = tuple((pack_address(block.network_address), pack_address(block.broadcast_address), 0) for block in blocks)
    return EncodedPredicate(Column(attribute, View.TEXT, kind=Kind.IP), spans)


def pack_address(address: model.Address) -> bytes:
    """Return an address as bytes that sort by version, then by number."""
    return bytes([address.version]) + address.packed


def encode_concept(attribute: str, condition: model.IsA, ontology: Ontology) -> EncodedPredicate | None:
    """Return the ranges of a concept and all below it, or None where no tree, or more than one, has it."""
    labels = [condition.tree] if condition.tree else find_tree_labels(ontology.trees, condition.concept)
    if len(labels) != 1:
        return None
    try:
        ranges = ontology.ranges(condition.concept, tree=labels[0])
    except TidingsError:
        return None
    column = Column(attribute, View.CONCEPT, labels[0])
    return EncodedPredicate(column, tuple((low, high, 0) for low, high in ranges))


def encode_boxes(attribute: str, condition: model.Within | model.Near) -> tuple[EncodedPredicate, ...]:
    """Return intervals of longitude and latitude outside which no value can satisfy the condition."""
    west, south, east, north = PlaceTable.compute_box(condition)
    intervals = [EncodedPredicate(Column(attribute, View.LATITUDE), ((south, north, 0),))]
    if (west, east) != ALL_LONGITUDES:
        intervals.insert(0, EncodedPredicate(Column(attribute, View.LONGITUDE), ((west, east, 0),)))
    return tuple(intervals)


ENCODERS: dict[Kind, Callable[[str, model.Condition], EncodedPredicate | None]] = {
    Kind.NUMBER: encode_number,
    Kind.BOOL: encode_boolean,
    Kind.TIME: encode_time,
    Kind.TEXT: encode_text,
    Kind.IP: encode_address,
}
"""The encoder of each kind whose predicates are intervals by themselves."""
