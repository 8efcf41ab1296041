"""What the naive evaluator makes of raw values and conditions: exact fractions, code points, tried points."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import pairwise

from tidings import model as m
from tidings.model import Kind

EARTH_M = 6371008.8
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NUMBER = r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?"

WORTH = {
    "GB": ("bit", Fraction(8 * 10**9)),
    "MB": ("bit", Fraction(8 * 10**6)),
    "km": ("meter", Fraction(1000)),
    "m": ("meter", Fraction(1)),
    "cm": ("meter", Fraction(1, 100)),
    "USD": ("USD", Fraction(1)),
    "EUR": ("USD", Fraction(5, 4)),
    "JPY": ("USD", Fraction(1, 128)),
}
"""The units of worlds: their base unit, and how many of it they are."""


class Bad(Exception):
    """A value cannot be read; where its attribute is declared, the event is bad."""


UNREADABLE = object()
"""A value that is there, and that the kind which is asked for cannot read."""


class TooClose(Exception):
    """The answer hangs on the last digits of a floating-point sum: no opinion."""


# --- names and arrays -----------------------------------------------------------------------------


def list_literals(condition):
    match condition:
        case m.Is(value):
            return (value,)
        case m.In(values):
            return values
        case m.Range(low, high):
            return tuple(end for end in (low, high) if end is not None)
    return ()


def find_kind_asked(condition):
    match condition:
        case m.TextTest() | m.SameText():
            return Kind.TEXT
        case m.IsA():
            return Kind.CONCEPT
        case m.Within() | m.WithinRegion() | m.Near():
            return Kind.PLACE
        case m.InNetworks():
            return Kind.IP
        case m.Age():
            return Kind.TIME
        case m.Has():
            return Kind.RECORD
    for literal in list_literals(condition):
        for types, kind in (
            (bool, Kind.BOOL),
            (str, Kind.TEXT),
            (datetime, Kind.TIME),
            (m.Point, Kind.PLACE),
            ((int, float, m.Quantity), Kind.NUMBER),
        ):
            if isinstance(literal, types):
                return kind
    return None


def find_spelled(fields, name):
    """What stands under the dotted name, whichever way keys and records share its dots."""
    for key, value in fields.items():
        if key == name:
            yield value
        elif isinstance(key, str) and name.startswith(f"{key}."):
            for record in list_values(value, Kind.RECORD):
                if isinstance(record, Mapping):
                    yield from find_spelled(record, name[len(key) + 1 :])


def list_values(value, kind):
    if kind is Kind.PLACE and is_pair(value):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from list_values(item, kind)
    else:
        yield value


def is_pair(value):
    return (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(is_number(part) and not is_missing(part) for part in value)
    )


def is_missing(value):
    """Whether a value is null: NaN is, in whatever type of number."""
    if isinstance(value, Decimal):
        return value.is_nan()
    return value is None or (isinstance(value, float) and math.isnan(value))


def read_or_not(read):
    try:
        return read()
    except Bad:
        return UNREADABLE


def is_number(value):
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def is_list(value, kind):
    """Whether a value came as a list, or as a range: more than one value can be."""
    return isinstance(value, m.Range | list | tuple) and not (kind is Kind.PLACE and is_pair(value))


# --- values ---------------------------------------------------------------------------------------


def map_value(value, function):
    return None if value is None else function(value)


class NumberSpan(tuple):
    """From one number to another, perhaps the same: the ends, and whether each is open."""

    __slots__ = ()


class Times(tuple):
    """From one time to another, in the same form."""

    __slots__ = ()


def build_span(point):
    return NumberSpan((point, point, False, False))


def find_ends(wanted, point):
    return (
        map_value(wanted.low, point),
        map_value(wanted.high, point),
        wanted.low_open,
        wanted.high_open,
    )


def build_interval(leaf, point):
    """A value of a number or a time: from one point to another, perhaps the same."""
    sort = Times if point is time_point else NumberSpan
    if not isinstance(leaf, m.Range):
        return sort(build_span(point(leaf)))
    if isinstance(leaf.low, str) or isinstance(leaf.high, str):
        raise Bad
    low, high, low_open, high_open = find_ends(leaf, point)
    if low is not None and high is not None and (low > high or (low == high and (low_open or high_open))):
        raise Bad
    return sort((low, high, low_open, high_open))


def number_point(leaf) -> Fraction:
    if isinstance(leaf, str) and re.fullmatch(NUMBER, leaf.strip()):
        leaf = int(leaf) if re.fullmatch(r"[+-]?[0-9]+", leaf.strip()) else float(leaf)
    if isinstance(leaf, Decimal) and leaf.is_finite():
        whole = leaf == leaf.to_integral_value() and abs(leaf) < 2**63
        leaf = int(leaf) if whole else float(leaf)
    if not is_number(leaf) or isinstance(leaf, Decimal) or (isinstance(leaf, float) and not math.isfinite(leaf)):
        raise Bad
    if isinstance(leaf, int) and not -(2**63) <= leaf < 2**63:
        raise Bad
    return Fraction(leaf)


def time_point(leaf) -> Fraction:
    if isinstance(leaf, str):
        try:
            leaf = datetime.fromisoformat(leaf.strip())
        except ValueError:
            raise Bad from None
    if isinstance(leaf, date) and not isinstance(leaf, datetime):
        leaf = datetime(leaf.year, leaf.month, leaf.day)  # noqa: DTZ001 - made UTC below
    if not isinstance(leaf, datetime):
        raise Bad
    elapsed = (leaf if leaf.tzinfo else leaf.replace(tzinfo=UTC)) - EPOCH
    return Fraction((elapsed.days * 86400 + elapsed.seconds) * 10**6 + elapsed.microseconds, 10**6)


def to_text(leaf) -> str:
    if not isinstance(leaf, str) or any("\ud800" <= char <= "\udfff" for char in leaf):
        raise Bad
    return leaf


def to_truth(leaf) -> bool:
    words = {"true": True, "false": False}
    if isinstance(leaf, str) and leaf.strip().lower() in words:
        return words[leaf.strip().lower()]
    if not isinstance(leaf, bool):
        raise Bad
    return leaf


def place_of(leaf):
    if isinstance(leaf, m.Point):
        return (Fraction(leaf.lon), Fraction(leaf.lat))
    if isinstance(leaf, Mapping) and "lon" in leaf and "lat" in leaf:
        leaf = (leaf["lon"], leaf["lat"])
    if not is_pair(leaf):
        raise Bad
    lon, lat = (Fraction(float(number_point(part))) for part in leaf)
    if abs(lon) > 180 or abs(lat) > 90:
        raise Bad
    return (lon, lat)


def to_address(leaf):
    if isinstance(leaf, str):
        try:
            leaf = ip_address(leaf.strip())
        except ValueError:
            raise Bad from None
    if not isinstance(leaf, IPv4Address | IPv6Address):
        raise Bad
    inside = leaf.ipv4_mapped if isinstance(leaf, IPv6Address) else None
    return inside or leaf


def to_natural(leaf):
    if isinstance(leaf, str):
        return to_text(leaf)
    if isinstance(leaf, bool):
        return leaf
    if isinstance(leaf, m.Point):
        return place_of(leaf)
    if isinstance(leaf, date) or (isinstance(leaf, m.Range) and isinstance(leaf.low or leaf.high, date)):
        return build_interval(leaf, time_point)
    return build_interval(leaf, number_point) if is_number(leaf) or isinstance(leaf, m.Range) else leaf


def record_of(leaf):
    if not isinstance(leaf, Mapping):
        raise Bad
    return leaf


READERS = {
    Kind.TEXT: to_text,
    Kind.BOOL: to_truth,
    Kind.PLACE: place_of,
    Kind.IP: to_address,
    Kind.RECORD: record_of,
    None: to_natural,
}


# --- conditions -----------------------------------------------------------------------------------


def meets(first, second) -> bool:
    """Whether two ranges share a point: try every end, and a point between and beyond every two."""
    ends = sorted({end for span in (first, second) for end in span[:2] if end is not None})
    if not ends:
        return True
    points = [*ends, ends[0] - 1, ends[-1] + 1, *((low + high) / 2 for low, high in pairwise(ends))]
    return any(covers(first, point) and covers(second, point) for point in points)


def covers(span, point) -> bool:
    low, high, low_open, high_open = span
    above = low is None or point > low or (point == low and not low_open)
    below = high is None or point < high or (point == high and not high_open)
    return above and below


def compare_spans(op, first, second) -> bool:
    """Whether some point of one and some point of the other compare; text beside a number or a time is read as that."""
    if isinstance(first, str) and isinstance(second, str):
        left, right = [*map(ord, first)], [*map(ord, second)]
        return {"=": left == right, "<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[op]
    first, second = convert_beside(first, second), convert_beside(second, first)
    if is_span(first) and is_span(second):
        return type(first) is type(second) and compare_points(op, first, second)
    return op == "=" and type(first) is type(second) and first == second


def compare_points(op, first, second) -> bool:
    if op == "=":
        return meets(first, second)
    if op in (">", ">="):
        first, second, op = second, first, {">": "<", ">=": "<="}[op]
    (low, _, low_open, _), (_, high, _, high_open) = first, second
    if low is None or high is None:
        return True
    return low < high or (op == "<=" and low == high and not low_open and not high_open)


def convert_beside(value, other):
    """Text as what stands on the other side, where that is a number or a time and the text reads so."""
    if not isinstance(value, str) or not is_span(other):
        return value
    point = time_point if isinstance(other, Times) else number_point
    return value if (read := read_or_not(lambda: build_interval(value, point))) is UNREADABLE else read


def is_span(value) -> bool:
    return isinstance(value, NumberSpan | Times)


def is_text_between(span, value) -> bool:
    code = [*map(ord, value)]
    if span.low is not None:
        low = [*map(ord, span.low)]
        if code < low or (code == low and span.low_open):
            return False
    if span.high is not None:
        high = [*map(ord, span.high)]
        if code > high or (code == high and span.high_open):
            return False
    return True


def accepts_text(op, pattern, value, ignoring_case) -> bool:
    if op == "matches":
        return search_re2(pattern, value, ignoring_case)
    if ignoring_case:
        pattern, value = pattern.casefold(), value.casefold()
    if op == "like":
        return match_wildcards(split_wildcards(pattern), value)
    starts = [at for at in range(len(value) - len(pattern) + 1) if value[at : at + len(pattern)] == pattern]
    return {
        "starts with": 0 in starts,
        "ends with": len(value) - len(pattern) in starts,
        "contains": len(starts) > 0,
    }[op]


def search_re2(pattern, value, ignoring_case) -> bool:
    """RE2 in Python's words, for the expressions that both read alike: only the `$` differs."""
    flags = re.DOTALL | (re.IGNORECASE if ignoring_case else 0)
    return re.search(re.sub(r"(?<!\\)\$", r"\\Z", pattern), value, flags) is not None


def split_wildcards(pattern):
    """A wildcard pattern as a list: text for a plain character, None for one, Ellipsis for any number."""
    parts, escaped = [], False
    for char in pattern:
        if escaped or char not in "*?\\":
            parts.append(char)
            escaped = False
        elif char == "\\":
            escaped = True
        else:
            parts.append(None if char == "?" else ...)
    return [*parts, "\\"] if escaped else parts


def match_wildcards(wanted, value) -> bool:
    """The places in the value that the wildcards read so far may have reached."""
    reached = {0}
    for token in wanted:
        if token is ...:
            reached = set(range(min(reached), len(value) + 1)) if reached else set()
        else:
            reached = {at + 1 for at in reached if at < len(value) and token in (None, value[at])}
    return len(value) in reached


def is_near(value, center, metres) -> bool:
    start, end = (tuple(math.radians(part) for part in place) for place in (value, (center.lon, center.lat)))
    vectors = [
        (math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)) for lon, lat in (start, end)
    ]
    across = math.dist(*vectors)
    distance = 2 * EARTH_M * math.asin(min(1.0, across / 2))
    if abs(distance - metres) <= 1e-6 * max(1.0, metres) and value != (center.lon, center.lat):
        raise TooClose
    return distance <= metres


def is_in_block(address, block) -> bool:
    if address.version != block.version:
        return False
    bits = 32 if block.version == 4 else 128
    keep = bits - block.prefixlen
    return int(address) >> keep == int(block.network_address) >> keep
