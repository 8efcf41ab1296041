"""What the checks share: a factory of fresh matchers, small answers, and cases drawn by hypothesis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from tidings.testing.drawing import HealthCheck, given, settings, st

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.matcher import Matcher

Factory: TypeAlias = "Callable[..., Matcher]"
"""Makes a fresh, empty matcher; takes the keywords `schema`, `ontology`, `regions` and `now`."""

Check: TypeAlias = "Callable[[Factory], None]"
"""Returns when the matchers of a factory keep one promise, and raises `AssertionError` when they do not."""

T = TypeVar("T")

SEARCHES: dict[str, str] = {
    "cheap": "price < 9000",
    "ford": "make = 'ford' and price in [2000 .. 9000)",
    "either": "make = 'ford' or price < 9000 or year >= 2015",
    "set": "make in ('ford', 'opel') and not (year < 2010)",
    "tagged": "tags = 'warranty' and none(tags) = 'accident'",
    "near": "spot near (13.4, 52.5) 30 km",
    "everything": "true",
    "nothing": "false",
}
"""Small searches of several shapes, by id."""

EVENTS: list[dict[str, Any]] = [
    {"make": "ford", "price": 8500, "year": 2016, "tags": ["warranty"], "spot": (13.41, 52.52)},
    {"make": "ford", "price": 9000, "year": 2009, "tags": ["warranty", "accident"]},
    {"make": "opel", "price": None, "year": [2008, 2016], "spot": {"lon": 0, "lat": 0}},
    {"make": "kia", "price": 100, "tags": []},
    {},
]
"""Small events that the searches tell apart."""


def filled(factory: Factory, searches: dict[str, str] | None = None) -> Matcher:
    """Return a matcher with the searches in it."""
    matcher = factory()
    matcher.add_many((SEARCHES if searches is None else searches).items())
    return matcher


def answers(matcher: Matcher, events: list[Any] | None = None) -> list[set[Any]]:
    """Return, for each event, the set of ids that hear of it."""
    return [set(matcher.match(event)) for event in (EVENTS if events is None else events)]


def for_all(strategy: st.SearchStrategy[T], body: Callable[[T], None], *, examples: int) -> None:
    """Run the body on so many drawn cases, the same ones every time; a failure is shrunk and shown."""
    quiet = settings(
        max_examples=examples, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    quiet(given(strategy)(body))()


def refused(error: type[BaseException], act: Callable[[], object]) -> BaseException:
    """Return the error that the act must raise."""
    try:
        act()
    except error as problem:
        return problem
    msg = f"expected {error.__name__}, and nothing was raised"
    raise AssertionError(msg)
