"""Literals, from text to value and back: quoted text, numbers, times, durations, distances, addresses, polygons.

Parsers raise `ValueError` with the mistake. Each parser has its formatter, and parsing the formatted text gives the
same value.
"""

from __future__ import annotations

import re
from datetime import datetime
from ipaddress import IPv6Network, ip_network
from typing import TYPE_CHECKING, Any

from tidings.model import Area, Quantity, Range, build_area
from tidings.model.values import check_float, check_int, to_utc

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from tidings.model import Network, Ordered

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "'": "'", '"': '"', "`": "`", "\\": "\\", "/": "/", "%": "%"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)

NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
"""A number as JSON writes it: `007` and `01234` stay text."""

SECONDS = {"day": 86400, "h": 3600, "min": 60, "s": 1, "ms": 0.001}
"""The units durations are written in, the largest first."""

DURATIONS = {
    **SECONDS,
    **dict.fromkeys(("weeks", "week", "w"), 604800),
    **dict.fromkeys(("days", "d"), 86400),
    **dict.fromkeys(("hours", "hour", "hr"), 3600),
    **dict.fromkeys(("minutes", "minute", "mins"), 60),
    **dict.fromkeys(("seconds", "second", "sec", "secs"), 1),
    **dict.fromkeys(("milliseconds", "millisecond"), 0.001),
}
"""The seconds of each unit of time, by all its names."""

_DISTANCES = {
    **dict.fromkeys(("m", "metre", "metres", "meter", "meters"), 1),
    **dict.fromkeys(("km", "kilometre", "kilometres", "kilometer", "kilometers"), 1000),
    **dict.fromkeys(("mi", "mile", "miles"), 1609.344),
    **dict.fromkeys(("nmi",), 1852),
    **dict.fromkeys(("ft", "foot", "feet"), 0.3048),
    **dict.fromkeys(("yd", "yard", "yards"), 0.9144),
}


def unquote(token: str) -> str:
    """Return the text inside quotes or backticks, with its escapes resolved."""
    inner = token[1:-1]
    return _ESCAPE.sub(_resolve_escape, inner) if "\\" in inner else inner


def _resolve_escape(match: re.Match[str]) -> str:
    code = match[1]
    if code in "*?":  # `like` has its own use for these: the backslash stays
        return match[0]
    if code[0] in "uU" and len(code) > 1:
        if int(code[1:], 16) > 0x10FFFF:
            msg = f"\\{code} is not a character"
            raise ValueError(msg)
        return chr(int(code[1:], 16))
    if code not in _ESCAPES:
        msg = f"unknown escape \\{code}; the escapes are \\\\ \\' \\\" \\n \\t \\r \\uXXXX"
        raise ValueError(msg)
    return _ESCAPES[code]


def find_bare_percent(token: str) -> int | None:
    """Return the index of the first `%` in a quoted pattern that no backslash escapes, if there is one."""
    return next((match.start() for match in re.finditer(r"\\.|%", token, re.DOTALL) if match[0] == "%"), None)


def quote(text: str, mark: str = "'") -> str:
    """Return the text in quotes, escaped so that `unquote` restores it."""
    escaped = text.replace("\\", "\\\\").replace(mark, f"\\{mark}")
    for char, code in (("\n", "\\n"), ("\t", "\\t"), ("\r", "\\r"), ("\0", "\\u0000")):
        escaped = escaped.replace(char, code)
    return mark + escaped + mark


def parse_number(token: str) -> int | float:
    """Parse a number; an integer stays exact within 64 bits."""
    if token.lstrip("+-").isdigit():
        if len(token) > 20:
            msg = f"{token[:20]}... is beyond 64-bit integers"
            raise ValueError(msg)
        return check_int(int(token))
    return check_float(float(token))


def parse_moment(token: str) -> datetime:
    """Parse an ISO date or time; without a zone it is UTC."""
    try:
        return to_utc(datetime.fromisoformat(token))
    except ValueError:
        example = _find_iso_date(token) or "2024-12-31 or 2024-12-31T23:59:59Z"
        msg = f"`{token}` is not a date or time; write {example}"
        raise ValueError(msg) from None


def _find_iso_date(token: str) -> str | None:
    """Return the ISO form of a date that is written with the name of its month."""
    for form in ("%d %b %Y", "%d %B %Y", "%b %d %Y", "%B %d %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y"):
        try:
            return datetime.strptime(token, form).date().isoformat()  # noqa: DTZ007 - a date has no zone
        except ValueError:
            continue
    return None


def format_moment(value: datetime) -> str:
    """Return the time in ISO form, in UTC."""
    if (value.hour, value.minute, value.second, value.microsecond) == (0, 0, 0, 0):
        return f"{value.year:04}-{value.month:02}-{value.day:02}"
    return value.isoformat().replace("+00:00", "Z")


def to_seconds(value: object) -> int | float:
    """Return a duration in seconds."""
    return _convert_unit(value, DURATIONS, "a duration such as `7 days`")


def format_seconds(value: int | float) -> str:
    """Return a duration in the largest unit that divides it."""
    for unit, size in SECONDS.items():
        if size >= 1 and value and value % size == 0:
            count = int(value // size)
            return f"{count} {unit}s" if unit == "day" and count != 1 else f"{count} {unit}"
    return f"{value!r} s"


def format_duration(length: timedelta) -> str:
    """Return a duration in the largest unit that divides it."""
    seconds = length.total_seconds()
    return format_seconds(int(seconds) if seconds.is_integer() else seconds)


def to_range(op: str, bound: Ordered) -> Range:
    """Return the range of a comparison with `<`, `<=`, `>` or `>=`."""
    if op[0] == "<":
        return Range(high=bound, high_open=op == "<")
    return Range(low=bound, low_open=op == ">")


def to_metres(value: object) -> int | float:
    """Return a distance in metres."""
    return _convert_unit(value, _DISTANCES, "a distance such as `5 km`")


def format_metres(value: int | float) -> str:
    """Return a distance in kilometres when they are whole, else in metres."""
    return f"{int(value // 1000)} km" if value and value % 1000 == 0 else f"{value!r} m"


def _convert_unit(value: object, sizes: Mapping[str, int | float], wanted: str) -> int | float:
    if not isinstance(value, Quantity):
        msg = f"expected {wanted}, with its unit"
        raise ValueError(msg)
    size = sizes.get(value.unit) or sizes.get(value.unit.lower())
    if size is None:
        msg = f"`{value.unit}` is not a unit of {wanted}; use one of {', '.join(sizes)}"
        raise ValueError(msg)
    amount = value.amount * size
    return check_float(amount) if isinstance(amount, float) else check_int(amount)


def parse_network(token: str) -> Network:
    """Parse an IP address or block; an IPv4 block mapped into IPv6 becomes the IPv4 block."""
    try:
        block = ip_network(token)
    except ValueError as problem:
        if "host bits" in str(problem):
            msg = f"`{token}` has bits beyond its prefix; the block is `{ip_network(token, strict=False)}`"
        else:
            msg = f"`{token}` is not an IP address or block; write 10.0.0.0/8 or 2001:db8::/32"
        raise ValueError(msg) from None
    if isinstance(block, IPv6Network) and block.prefixlen >= 96 and block.network_address.ipv4_mapped:
        return ip_network(f"{block.network_address.ipv4_mapped}/{block.prefixlen - 96}")
    return block


def parse_polygon(token: str) -> Area:
    """Parse POLYGON((lon lat, ...)) or MULTIPOLYGON, as WKT writes them."""
    word, _, _ = token.partition("(")
    several = word.strip().lower() == "multipolygon"
    try:
        nested = _parse_rings(token.removeprefix(word).strip(), 3 if several else 2)
    except ValueError:
        msg = "a polygon is written POLYGON((lon lat, lon lat, ..., lon lat))"
        raise ValueError(msg) from None
    return build_area(nested if several else [nested])


def _parse_rings(body: str, depth: int) -> list[Any]:
    """Split nested parentheses `depth` levels deep down to pairs of numbers."""
    if not (body.startswith("(") and body.endswith(")")):
        raise ValueError(body)
    inner = body[1:-1]
    if depth == 1:
        return [[parse_number(part) for part in place.split()] for place in inner.split(",")]
    return [_parse_rings(part.strip(), depth - 1) for part in _split_top_level(inner)]


def _split_top_level(text: str) -> list[str]:
    if text.count("(") == 1 and text[:1] == "(" and text.find(")") == len(text) - 1:
        return [text]  # most polygons have one ring: no need to scan every character
    parts, level, begin = [], 0, 0
    for offset, char in enumerate(text):
        level += (char == "(") - (char == ")")
        if char == "," and level == 0:
            parts.append(text[begin:offset])
            begin = offset + 1
    return [*parts, text[begin:]]


def format_area(area: Area) -> str:
    """Return the area as WKT."""
    polygons = []
    for rings in area.polygons:
        places = [", ".join(f"{lon!r} {lat!r}" for lon, lat in ring) for ring in rings]
        polygons.append(f"(({'), ('.join(places)}))")
    return f"POLYGON{polygons[0]}" if len(polygons) == 1 else f"MULTIPOLYGON({', '.join(polygons)})"
