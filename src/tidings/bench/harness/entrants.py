"""What is measured side by side: the engine, the algorithms of the registry, and the peers.

Each is made ready, built, and asked for the first so many events, as often as its time allows. An algorithm gets
bound filters and readings, so its own work alone is timed. The engine gets its subscriptions as a user would give
them (columns, where a workload has them) and an Arrow table of events, and reading both is in its time.

Time is processor time, of all threads: a machine that others use too makes everyone wait, and not evenly.
"""

from __future__ import annotations

import ctypes
import gc
import math
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tidings.bench.harness import peers as others
from tidings.bench.harness.forked_process import READY, status
from tidings.bench.harness.measure import BATCH_SIZE, GROWTH, US
from tidings.bench.harness.subscription_forms import loaded, unwatched
from tidings.bench.harness.timing import seconds_of
from tidings.engine.events.event_source import ReadEvents
from tidings.matcher.registry import build_algorithm
from tidings.matcher.results import matches_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from tidings.bench.harness.bound_workload import Bound
    from tidings.bench.harness.forked_process import Send
    from tidings.bench.workloads import Workload
    from tidings.matcher import Matcher

LEAST_S = 0.05
"""A repeat that would be shorter is made of several rounds; or the clock and the scheduler are measured."""

WARM = 200
"""Subscriptions of the small matcher that is built first, so that compiled code is there."""


class Entrant(Protocol):
    """One that is measured; `match` alone is timed."""

    approximate: bool

    def build(self, count: int) -> None:
        """Take the first `count` subscriptions, into something new."""

    def prepare(self, count: int) -> None:
        """Get the first `count` events ready."""

    def match(self, count: int) -> Any:
        """Match the first `count` events."""

    def answers(self, found: Any, count: int) -> list[Any]:
        """Return for each of the first `count` events a list of ids, or how many there are."""


class OfEngine:
    """The engine, as a user has it: columns in, an Arrow table in."""

    approximate = False

    def __init__(self, workload: Workload, subscriptions: Any, events: pa.Table) -> None:
        """Hold what it will be given: a table, or a list of pairs."""
        self._workload, self._given, self._events = workload, subscriptions, events
        self._made: Matcher | None = None

    def build(self, count: int) -> None:
        """Add the subscriptions, and wait until they are merged."""
        whole = isinstance(self._given, list)
        given = self._given[:count] if whole else self._given.slice(0, count)
        self._made = loaded(self._workload, given, kind=None)
        self._made.settle()

    def prepare(self, count: int) -> None:
        """Nothing: reading events is its work."""

    def match(self, count: int) -> Any:
        """Match in batches."""
        assert self._made is not None
        ends = range(0, count, BATCH_SIZE)
        return [self._made.match_many(self._events.slice(at, min(BATCH_SIZE, count - at))) for at in ends]

    def answers(self, found: Any, count: int) -> list[Any]:
        """Return the ids of each event."""
        return [ids for matches in found for ids in matches.by_event()][:count]


class OfReadEngine(OfEngine):
    """The engine on readings, as algorithms get them: beside it, `OfEngine` shows what reading events costs."""

    def __init__(self, workload: Workload, subscriptions: Any, events: pa.Table, bound: Bound) -> None:
        """Hold what it will be given."""
        super().__init__(workload, subscriptions, events)
        self._bound = bound

    def match(self, count: int) -> Any:
        """Ask the engine behind the façade, in batches: no event is read."""
        assert self._made is not None
        engine, state = self._made.backend, self._made.prepare_view(count).state
        found = []
        for at in range(0, count, BATCH_SIZE):
            readings = self._bound.readings[at : min(count, at + BATCH_SIZE)]
            places = np.arange(len(readings))
            parts = engine.match(ReadEvents(readings, self._bound.setting), state)
            found.append(matches_of([(places, part) for part in parts], len(readings), ()))
        return found


class OfAlgorithm:
    """An algorithm of the registry, on bound filters and readings."""

    def __init__(self, kind: str, bound: Bound) -> None:
        """Make an empty one."""
        self._kind, self._bound = kind, bound
        self._made = build_algorithm(kind, bound.setting.ontology)
        self.approximate = bool(getattr(self._made, "approximate", False))

    def build(self, count: int) -> None:
        """Compile the filters and take them in; one that it cannot express raises `Unsupported`."""
        made = self._made = build_algorithm(self._kind, self._bound.setting.ontology)
        few = count < len(self._bound)
        with unwatched():
            filters = self._bound.filters[:count] if few else self._bound.filters
            made.add_many([(id, made.compile_filter(tree)) for id, tree in filters])

    def prepare(self, count: int) -> None:
        """Nothing: events have been read."""

    def match(self, count: int) -> Any:
        """Match all at once."""
        return self._made.match_many(self._bound.readings[:count], self._bound.setting)

    def answers(self, found: Any, count: int) -> list[Any]:
        """Return the ids of each event."""
        return list(found[:count])


class OfPeer:
    """A peer, on the subscriptions that it can say; it counts, and gives no ids."""

    approximate = False

    def __init__(self, name: str, columns: pa.Table, events: pa.Table) -> None:
        """Hold what it will be given."""
        self._name, self._columns, self._events = name, columns, events
        self._made: others.Peer | None = None
        self._ready: Any = None

    def build(self, count: int) -> None:
        """Make it of the columns."""
        self._made = others.PEERS[self._name](self._columns.slice(0, count))

    def prepare(self, count: int) -> None:
        """Bring events into its own form."""
        assert self._made is not None
        self._ready = self._made.prepared(self._events.slice(0, count))

    def match(self, count: int) -> Any:
        """Match what was prepared."""
        del count
        assert self._made is not None
        return self._made.counts(self._ready)

    def answers(self, found: Any, count: int) -> list[Any]:
        """Return the counts."""
        return [int(one) for one in found[:count]]


# Measuring -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Terms:
    """How much is asked of each: events, repeats, time; the answers to the first `checked` events are sent home."""

    events: int = BATCH_SIZE
    repeat: int = 5
    budget_s: float = 60.0
    checked: int = 64


def measure(entrant: Entrant, subscriptions: int, terms: Terms, *, send: Send) -> None:
    """Build and time one; send `build_s` first, so that it is known of one that is stopped later, and then the rest."""
    _warmed(entrant, min(WARM, subscriptions), terms)
    before = _settled()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts anew
    resident, began = status("VmRSS"), process_time()
    send(READY)
    build = seconds_of(lambda: entrant.build(subscriptions), process_time)
    entrant.prepare(1)
    # What is built when the first event comes belongs to building.
    first, again = (seconds_of(lambda: entrant.match(1), process_time) for _ in range(2))
    build += max(0.0, first - again)
    send({"build_s": build})
    left = max(0.0, terms.budget_s - (process_time() - began))
    count, repeat = _fitting(entrant, terms, again, allowed_s=min(terms.budget_s / 3, left * 0.7))
    entrant.prepare(count)
    found = entrant.match(count)
    answers = entrant.answers(found, count)
    del found
    sizes = [one if isinstance(one, int) else len(one) for one in answers]
    some = answers[: terms.checked]
    del answers
    loops = max(1, math.ceil(LEAST_S / max(seconds_of(lambda: entrant.match(count), process_time), 1e-6)))
    seconds: list[float] = []
    clock = perf_counter()
    while len(seconds) < repeat and (not seconds or sum(seconds) < left * 0.7):
        seconds.append(seconds_of(lambda: [entrant.match(count) for _ in range(loops)], process_time))
    clock = perf_counter() - clock
    peak = status("VmHWM") - resident
    grown = {"bytes": _settled() - before, "peak": peak} if before else {}
    send(
        {
            "batch": [second / loops / count * US for second in seconds],
            "events": count,
            "matches": sum(sizes) / count,
            "wall": clock / len(seconds) / loops / count * US,
            "approximate": entrant.approximate,
            "answers": some,
            **grown,
        }
    )


def _warmed(entrant: Entrant, subscriptions: int, terms: Terms) -> None:
    entrant.build(subscriptions)
    for count in {1, min(16, terms.events), min(64, terms.events)}:
        entrant.prepare(count)
        entrant.answers(entrant.match(count), count)
    entrant.build(min(1, subscriptions))


def _fitting(entrant: Entrant, terms: Terms, once: float, *, allowed_s: float) -> tuple[int, int]:
    """Return for how many events, how often, the time is enough: fewer repeats rather than very few events."""
    size, share = 1, allowed_s / (terms.repeat + 1)
    while size < terms.events and once * GROWTH <= share:
        size = min(terms.events, size * GROWTH)
        entrant.prepare(size)
        once = seconds_of(lambda size=size: entrant.match(size), process_time)  # type: ignore[misc]
    if size >= terms.events:
        return terms.events, terms.repeat
    fits = int(size * share / max(once, 1e-9))
    if fits >= terms.checked:
        return min(terms.events, fits), terms.repeat
    few = min(3, terms.repeat)
    return max(1, min(terms.events, int(size * allowed_s / (few + 1) / max(once, 1e-9)))), few


def _settled() -> int:
    """Return the anonymous resident memory, with garbage collected and freed pages given back; 0 where not told."""
    gc.collect()
    with suppress(OSError, AttributeError):  # another C library; what it keeps is counted
        ctypes.CDLL(None).malloc_trim(0)
    return status("RssAnon")


@dataclass(frozen=True, slots=True)
class Compared:
    """On how many events answers differ, the share of ids that should not be there, and an example of a difference."""

    wrong: int = 0
    extra: float = 0.0
    example: str = ""


def compared_answers(mine: Sequence[Any], right: Sequence[Any], *, approximate: bool) -> Compared:
    """Compare answers with the right ones: ids as sets, each once; counts as numbers.

    An approximate answer may have more, never less.

    >>> compared_answers([["a", "b"], ["c"]], [{"a", "b"}, {"c", "d"}], approximate=False)
    Compared(wrong=1, extra=0.0, example='event 1 lacks d')
    >>> compared_answers([["a", "b"]], [{"a"}], approximate=True)
    Compared(wrong=0, extra=0.5, example='')
    """
    wrong: list[str] = []
    extra = said = 0
    for event, (one, good) in enumerate(zip(mine, right, strict=False)):
        if isinstance(one, int):
            wrong += [f"event {event} has {one:,} matches, not {len(good):,}"] if one != len(good) else []
            continue
        ids = set(one)
        said += len(ids)
        extra += len(ids - good)
        words = [] if good <= ids else [f"lacks {_few(good - ids)}"]
        words += [] if approximate or ids <= good else [f"has {_few(ids - good)} too many"]
        words += ["has ids twice"] if len(ids) != len(one) else []
        wrong += [f"event {event} {' and '.join(words)}"] if words else []
    return Compared(len(wrong), extra / said if said else 0.0, wrong[0] if wrong else "")


def _few(ids: set[Any]) -> str:
    some = sorted(ids)
    return ", ".join(map(str, some[:3])) + (f" and {len(some) - 3:,} others" if len(some) > 3 else "")
