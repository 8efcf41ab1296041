"""Shared by the checks: small searches and events, helpers that fill a matcher and compare, cases of hypothesis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from tidings.errors import Unsupported
from tidings.model import Schema
from tidings.testing.hypothesis_import import HealthCheck, given, settings, st
from tidings.testing.strategies.mixed import CONCEPTS, EVERYTHING
from tidings.testing.strategies.mixed import NUMBERS as ONLY_NUMBERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tidings.matcher import Matcher
    from tidings.matcher.algorithm import SubId
    from tidings.model import Filter
    from tidings.model.events import EventLike
    from tidings.model.values import EventValue

MatcherFactory: TypeAlias = "Callable[..., Matcher]"
"""Makes a fresh, empty matcher; takes the keywords `schema`, `ontology`, `regions` and `now`."""

Check: TypeAlias = "Callable[[MatcherFactory], None]"
"""Returns if the matchers of a factory keep one promise, and raises `AssertionError` if they do not."""

T = TypeVar("T")
SomeId = TypeVar("SomeId", str, int)
SomeFilter = TypeVar("SomeFilter", "str", "Filter")


@dataclass(frozen=True, slots=True)
class CheckVocabulary:
    """Searches by id and other filters of the checks, in the part of the language that a matcher supports.

    Every vocabulary has the same ids, and the same events satisfy them.
    """

    searches: dict[str, str]
    ford: str
    kia: str
    clash: str
    """A filter that asks for another kind of the attribute `clashing` than `DECLARED` gives it."""
    clashing: str
    often: dict[str, str]
    """Filters that one event satisfies in several ways."""


FULL = CheckVocabulary(
    searches={
        "cheap": "price < 9000",
        "ford": "make = 'ford' and price in [2000 .. 9000)",
        "either": "make = 'ford' or price < 9000 or year >= 2015",
        "set": "make in ('ford', 'opel') and not (year < 2010)",
        "tagged": "tags = 'warranty' and none(tags) = 'accident'",
        "near": "spot near (13.4, 52.5) 30 km",
        "everything": "true",
        "nothing": "false",
    },
    ford="make = 'ford'",
    kia="make = 'kia'",
    clash="make > 5",
    clashing="make",
    often={
        "often": "a = 1 or a = 2 or a in (1, 2) or a in [0 .. 9] or b exists or not c exists",
        "tags": "t in ('x', 'y') or t starts with 'x' or t ends with 'y'",
    },
)
"""For matchers that support every filter."""

NUMBERS = CheckVocabulary(
    searches={
        **FULL.searches,
        "ford": "brand = 7 and price in [2000 .. 9000)",
        "either": "brand = 7 or price < 9000 or year >= 2015",
        "set": "brand in (7, 8) and year >= 2010",
        "tagged": "marks = 1 and brand <= 9",
        "near": "east in (13 .. 14.5]",
    },
    ford="brand = 7",
    kia="brand = 9",
    clash="brand = 'x'",
    clashing="brand",
    often={
        "often": "a = 1 or a = 2 or a in (1, 2) or a in [0 .. 9] or b > 4",
        "tags": "b = 5 or b in [5 .. 6) or a >= 1",
    },
)
"""For matchers of numbers: ranges, equality and sets, under `and` and `or`."""

_IN_TEXT: list[dict[str, EventValue]] = [
    {"make": "ford", "price": 8500, "year": 2016, "tags": ["warranty"], "spot": (13.41, 52.52)},
    {"make": "ford", "price": 9000, "year": 2009, "tags": ["warranty", "accident"]},
    {"make": "opel", "price": None, "year": [2008, 2016], "spot": {"lon": 0, "lat": 0}},
    {"make": "kia", "price": 100, "tags": []},
    {},
]
_IN_NUMBERS: list[dict[str, EventValue]] = [
    {"brand": 7, "marks": [1], "east": 13.41},
    {"brand": 7, "marks": [1, 2]},
    {"brand": 8, "east": 0},
    {"brand": 9, "marks": []},
    {},
]

EVENTS = [text | numbers for text, numbers in zip(_IN_TEXT, _IN_NUMBERS, strict=True)]
"""Small events that the searches distinguish; they carry the same facts as text and as numbers."""

DECLARED = Schema({"make": "text", "brand": "number", "price": "number"}, closed=False)
"""A schema that the small events satisfy."""


def choose_vocabulary(factory: MatcherFactory) -> CheckVocabulary:
    """Return the vocabulary that the matchers of this factory support: the full one, or the one of numbers."""
    supported = add_supported(factory(), FULL.searches)
    return FULL if len(supported) == len(FULL.searches) else NUMBERS


def find_scope(factory: MatcherFactory) -> str:
    """Return how much of the language the matchers support: everything, concepts, or numbers alone."""
    if choose_vocabulary(factory) is FULL:
        return EVERYTHING
    return ONLY_NUMBERS if factory().add_many([("ford", FULL.ford)], on_error="collect") else CONCEPTS


def add_supported(matcher: Matcher, filters: dict[SomeId, SomeFilter]) -> dict[SomeId, SomeFilter]:
    """Add the filters that the matcher supports, and return those; other errors than `Unsupported` are raised."""
    problems = matcher.add_many(filters.items(), on_error="collect")
    for _, problem in problems:
        if not isinstance(problem, Unsupported):
            raise problem
    return {id: tree for id, tree in filters.items() if id in matcher}


def fill_matcher(factory: MatcherFactory, searches: dict[str, str] | None = None, **keywords: object) -> Matcher:
    """Return a matcher with these searches, or those of its vocabulary; keywords go to the factory."""
    matcher = factory(**keywords)
    matcher.add_many((choose_vocabulary(factory).searches if searches is None else searches).items())
    return matcher


def collect_answers(matcher: Matcher, events: Iterable[EventLike] | None = None) -> list[set[SubId]]:
    """Return, for each event, the set of ids that it matches; the small events by default."""
    return [set(matcher.match(event)) for event in (EVENTS if events is None else events)]


def collect_batch(matcher: Matcher, events: object) -> list[set[SubId]]:
    """Return the same for a batch of events, matched at once."""
    return [set(ids) for ids in matcher.match_many(events).by_event()]


def run_on_cases(strategy: st.SearchStrategy[T], body: Callable[[T], None], *, examples: int) -> None:
    """Run the body on drawn cases, the same ones every time; hypothesis shrinks a failure.

    `examples` is how many where hypothesis' profile has its default of a hundred, and grows and shrinks with it.
    """
    count = max(5, examples * settings().max_examples // 100)
    quiet = settings(
        max_examples=count, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    quiet(given(strategy)(body))()


def expect_error(error: type[BaseException], call: Callable[[], object]) -> BaseException:
    """Return the error that the call must raise."""
    try:
        call()
    except error as problem:
        return problem
    msg = f"expected {error.__name__}, and nothing was raised"
    raise AssertionError(msg)
