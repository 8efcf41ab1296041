"""Names of attributes, values of each kind, and values that a kind cannot read.

Pools of corners (the ends of 64 bits, 2^53 and its neighbours, the least float, text that folds to
another length) are mixed with values that hypothesis finds, so that values coincide often.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import cache
from ipaddress import ip_address, ip_network

from tidings.model import Kind, Point, Quantity, Range
from tidings.model.values import INT_MAX, INT_MIN, EventValue
from tidings.testing.hypothesis_import import st

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)
"""The current time of a world; ages are relative to it."""

NUMBERS = (0, 1, 2, 3, 5, 10, -1, 0.5, 2.5, 0.1, -0.0, 400, 1e300, 5e-324)
"""Numbers for tests: small ones that coincide often, and the ends of floats."""

LARGE = (2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1, INT_MAX, INT_MAX - 1, INT_MIN, INT_MIN + 1)
"""Integers that floats cannot tell apart, and the ends of 64 bits."""

TEXTS = ("", "a", "A", "ab", "b", "ford", "FORD", "focus", "straße", "STRASSE", "é", "e\u0301", "İ", "ﬁ", "\n", "a\nb")
"""Texts for tests: empty, with case, folding to other lengths, composed and decomposed, with line breaks."""

AWKWARD = (
    "'", '"', "\\", "*", "?", "a*b", "\\*", "%", "&a=b", "1", "1.5", "true", "null", "2024-05-01", "10.0.0.1",
    "\x00", "🚗",
)  # fmt: skip
"""Texts that need quoting or escaping in some notation."""

EXPRESSIONS = (
    "a", "^a", "b$", "^$", "a.b", "[a-c]+", "a|b", "(fo)+", "o{2}", r"\.", r"\d", "x*", "/", r"\/", "é", r"^f\w+s$",
)  # fmt: skip
"""Regular expressions that RE2 and Python read alike."""

ZONES = (UTC, timezone(timedelta(hours=2)), timezone(timedelta(hours=-5, minutes=-30)))
"""Zones in which an event may write its times."""

_BLOCKS = (
    "10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32", "192.168.0.0/24", "0.0.0.0/0", "255.255.255.255/32", "0.0.0.0/32",
    "2001:db8::/32", "2001:db8::1/128", "::/0", "::1/128", "fe80::/10",
)  # fmt: skip

BLOCKS = tuple(map(ip_network, _BLOCKS))
"""Address blocks inside each other, at both ends, of both versions."""


KEYWORDS = (
    "and", "or", "not", "in", "is", "a", "an", "null", "exists", "has", "any", "all", "none", "age", "between",
    "like", "matches", "contains", "starts", "ends", "with", "ignoring", "case", "within", "near", "true",
    "false", "polygon", "multipolygon", "now", "from", "to", "km", "days",
)  # fmt: skip
"""Words with a meaning of their own in text notation; as attributes they go in backticks."""

PLAIN_NAMES = ("a", "b", "price", "year", "make", "_x", "größe", "n2", "Price")
"""Names that need no quotes."""

ODD_NAMES = (
    "two words", "per cent %", "quote'd", "back`tick", "back\\slash", "new\nline", "1st", "-", "#", "[0]", "price_from",
    "&=", "汉", "𝒳",
)  # fmt: skip
"""Names that need quotes or percent-encoding somewhere."""


@cache
def attributes() -> st.SearchStrategy[str]:
    """Return names of attributes; every part between dots holds at least one character."""
    part = st.one_of(
        st.sampled_from(PLAIN_NAMES),
        st.sampled_from(KEYWORDS).flatmap(lambda word: st.sampled_from((word, word.upper(), word.title()))),
        st.sampled_from(ODD_NAMES),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="."), min_size=1, max_size=6),
    )
    return st.lists(part, min_size=1, max_size=3).map(".".join)


@cache
def numbers() -> st.SearchStrategy[int | float]:
    """Return integers within 64 bits and finite floats."""
    return st.one_of(
        st.sampled_from(NUMBERS),
        st.sampled_from(LARGE),
        st.integers(-20, 20),
        st.integers(INT_MIN, INT_MAX),
        st.floats(allow_nan=False, allow_infinity=False),
    )


@cache
def texts() -> st.SearchStrategy[str]:
    """Return text without lone surrogates."""
    return st.one_of(
        st.sampled_from(TEXTS), st.sampled_from(AWKWARD), st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    )


@cache
def moments() -> st.SearchStrategy[datetime]:
    """Return times in UTC, many of them near `NOW`."""
    near = st.sampled_from((0, 1, 60, 3600, 86_400, -86_400, 7 * 86_400, 0.000001)).map(
        lambda s: NOW - timedelta(seconds=s)
    )
    midnights = st.dates(date(1990, 1, 1), date(2030, 1, 1)).map(lambda day: datetime.combine(day, time(), UTC))
    return st.one_of(near, midnights, st.datetimes(timezones=st.just(UTC)))


@cache
def degrees(bound: int) -> st.SearchStrategy[float]:
    """Return degrees from `-bound` to `bound`, in quarters, so that adding a whole turn is exact."""
    return st.one_of(
        st.integers(-4, 4).map(float),
        st.sampled_from((-bound, bound, bound - 1, 1 - bound)).map(float),
        st.integers(-4 * bound, 4 * bound).map(lambda quarter: quarter / 4),
    )


@cache
def points() -> st.SearchStrategy[Point]:
    """Return places, often near (0, 0), at the poles and at the antimeridian."""
    return st.builds(Point, degrees(180), degrees(90))


@cache
def scalars(kind: Kind | str) -> st.SearchStrategy[EventValue]:
    """Return values of one kind, as a filter would write them (an address as text)."""
    match Kind(kind):
        case Kind.NUMBER:
            return numbers()
        case Kind.TEXT | Kind.CONCEPT:
            return texts()
        case Kind.BOOL:
            return st.booleans()
        case Kind.TIME:
            return moments()
        case Kind.PLACE:
            return points()
        case Kind.IP:
            return st.sampled_from(BLOCKS).map(lambda block: str(block.network_address))
    return st.dictionaries(st.sampled_from(("b", "c")), numbers(), max_size=2)


_NEVER = (b"bytes", 1j, object, time(12))
"""Values that fit no kind at all."""

_BAD: dict[Kind, tuple[EventValue, ...]] = {
    Kind.NUMBER: ("x", "", "1,5", "0x10", "1_000", "NaN", "Infinity", True, float("inf"), INT_MAX + 1,
                  INT_MIN - 1, str(INT_MAX + 1), "1e999", Decimal("Infinity"), {"n": 1}, NOW,
                  Range("a", "b"), Range(NOW), Range(1, 1, low_open=True)),
    Kind.TEXT: (1, 1.5, True, NOW, {"t": "x"}, "\ud800", Range("a", "b"), Range(1, 2)),
    Kind.CONCEPT: (1, True, NOW, {"t": "x"}, "\udfff"),
    Kind.BOOL: (0, 1, "yes", "", 1.0, NOW, Range(0, 1)),
    Kind.TIME: ("yesterday", "", "2024-13-01", 5, True, {"at": NOW}, Range(1, 2), Range(NOW, NOW, high_open=True)),
    Kind.PLACE: ("0 0", 5, (1,), (1, 2, 3), ("1", "2"), (True, False), (181, 0), (0, 91), {"lon": 1}, (float("nan"), 0),
                 {"lon": "x", "lat": 0}),
    Kind.IP: ("10.0.0", "", "10.0.0.0/8", "300.0.0.1", 5, True, "::g"),
    Kind.RECORD: (1, "x", True, NOW, [1], [{"b": 1}, 2]),
}  # fmt: skip


ODD: tuple[EventValue, ...] = (
    "x", "", "1", " 2.5 ", "true", "FALSE", "50 GB", "5 km", "5km", "100 EUR", "5 furlng", "2024-05-01", "10.0.0.1",
    "::1", "notebook", "\ud800", 0, 1, 2.5, True, False, 2**53 + 1, INT_MAX + 1, INT_MIN - 1, float("nan"),
    float("inf"), float("-inf"), Decimal("NaN"), Decimal("Infinity"), Decimal("1.0"), NOW, NOW.date(), Point(0, 0),
    Range(0, 5), Range(1, 1, low_open=True), Range(NOW), Range("a", "b"), Quantity(5, "GB"), Quantity(5, "furlng"),
    Quantity(1, "km"), Range(Quantity(1, "GB"), Quantity(2, "GB")), Range(Quantity(1, "GB"), Quantity(2, "MB")),
    Range(Quantity(1, "GB"), 5), ip_address("10.0.0.1"), b"bytes", 1j, time(12),
    {"b": 1}, {"b": "x", "sku": "a"}, {"lon": 1, "lat": 0}, {"lon": 1}, {}, {"b": {}}, {"sku": None},
)  # fmt: skip
"""Values that an undeclared attribute may hold; each kind reads some of them or none."""


@cache
def odd_values() -> st.SearchStrategy[EventValue]:
    """Return values of every kind and of none, also several of them, or a pair."""
    plain = st.sampled_from(ODD)
    pairs = st.sampled_from(
        [(0, 0), [1.5, 2], (float("nan"), 1), (float("nan"), float("nan")), (200, 0), ("1", "2"), [1]]
    )
    return st.one_of(plain, plain, plain, pairs)


@cache
def bad_values(kind: Kind | str) -> st.SearchStrategy[EventValue]:
    """Return values that the kind cannot read: an event that carries one where it is declared is bad."""
    return st.sampled_from(_BAD[Kind(kind)] + _NEVER)
