"""The rows of the speed table: patterns, events, and the rates that must be reached.

`a;b;c` patterns take three different types out of a pool, within five minutes, and events come one a second. Patterns
of the paper are those of `tidings.bench.workloads.composites`: ten steps, two of the joints `;`, the rest `,`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tidings.bench.workloads.composites import SECOND, composites, name_of, publications, uniform_stream
from tidings.model import Is, Test
from tidings.model.patterns import Gap, Joint, NamedFilter, Pattern, Sequence, Step, Timed

WITHIN = 300 * SECOND
"""Of `a;b;c`."""

KEYS = 100_000
"""Of the keyed rows; each key has an event a minute."""

SEED, EVENTS_SEED = 1, 2
"""Of patterns and of events: with one seed the stream would be the patterns' own types, one after another."""


@dataclass(frozen=True, slots=True)
class PatternCase:
    """A row: its patterns, `events(n)` of a stream of its own, and the events that each of the two takes at a time."""

    key: str
    title: str
    patterns: Callable[[], list[Pattern]]
    events: Callable[[int], pa.Table]
    mode: str = "restart"
    must: float | None = None
    aim: float | None = None
    many: int = 1_000_000
    few: int = 20_000
    paper: int = 0
    """Events for the paper's machine; none where it is not asked."""

    def shrink(self) -> PatternCase:
        """Return the same with next to nothing to do."""
        return replace(self, many=2_000, few=500, paper=min(self.paper, 300))


def draw_abc(n: int, pool: int = 50, *, key: str | None = None) -> list[Pattern]:
    """Return `a;b;c` patterns within five minutes over random types; with a key, all events agree on it."""
    rng = np.random.default_rng(SEED)
    binds = () if key is None else ((key, "key"),)
    later = Joint(Gap.LATER)
    patterns = []
    for _ in range(n):
        names = [name_of(number) for number in rng.choice(pool, 3, replace=False).tolist()]
        filters = tuple(NamedFilter(name, Test("type", Is(name)), binds) for name in names)
        patterns.append(Pattern(filters, Timed(Sequence(tuple(map(Step, names)), (later, later)), (), WITHIN)))
    return patterns


def make_keyed(n: int, pool: int) -> pa.Table:
    """Return events with a `user`: text, one of 100,000."""
    table = uniform_stream(n, pool, seed=EVENTS_SEED).table()
    users = pa.array([f"user {number}" for number in range(KEYS)])
    keys = np.random.default_rng(EVENTS_SEED + 1).integers(0, KEYS, n)
    times = pa.array(np.arange(n) * (60 * SECOND // KEYS), pa.timestamp("us", tz="UTC"))
    return table.set_column(1, "time", times).append_column("user", users.take(pa.array(keys)))


def _make_uniform(pool: int) -> Callable[[int], pa.Table]:
    return lambda n: uniform_stream(n, pool, seed=EVENTS_SEED).table()


def _publish(n: int) -> pa.Table:
    """Return the paper's publications, repeated until there are enough."""
    patterns = composites(seed=SEED)
    parts, have = [], 0
    while have < n:
        stream = publications(patterns, pool=50, seed=EVENTS_SEED + len(parts))
        times = pa.array((np.arange(len(stream)) + have) * SECOND, pa.timestamp("us", tz="UTC"))
        kinds = pa.array([name_of(number) for number in range(60)])
        coded = pa.DictionaryArray.from_arrays(pa.array(stream.types), kinds)
        parts.append(pa.table({"id": pa.array(np.arange(have, have + len(stream))), "time": times, "type": coded}))
        have += len(stream)
    return pa.concat_tables(parts).slice(0, n).unify_dictionaries().combine_chunks()


CASES = (
    PatternCase(
        "one", "1 pattern `a;b;c`, 50 types", lambda: draw_abc(1), _make_uniform(50), must=2e6, aim=10e6, few=300_000
    ),
    PatternCase("fifty", "50 such", lambda: draw_abc(50), _make_uniform(50), must=1e6, aim=3e6, few=100_000),
    PatternCase(
        "thousand",
        "1,000 such, mode `next`",
        lambda: draw_abc(1000),
        _make_uniform(50),
        mode="next",
        must=1e5,
        aim=5e5,
        many=200_000,
    ),
    PatternCase(
        "paper",
        "1,000 of the paper, uniform events",
        lambda: composites(seed=SEED),
        _make_uniform(50),
        must=2e5,
        aim=1e6,
        paper=2_000,
    ),
    PatternCase(
        "published",
        "1,000 of the paper, its publications",
        lambda: composites(seed=SEED),
        _publish,
        must=2e5,
        aim=1e6,
        paper=10_000,
    ),
    PatternCase(
        "hundred", "100 of the paper, 50 types", lambda: composites(100, seed=SEED), _make_uniform(50), few=100_000
    ),
    PatternCase(
        "ten-thousand",
        "10,000 of the paper, 5,000 types",
        lambda: composites(10_000, pool=5_000, seed=SEED),
        _make_uniform(5_000),
        few=100_000,
    ),
    PatternCase(
        "keys",
        "100,000 keys, 1 pattern, 50 types",
        lambda: draw_abc(1, key="user"),
        lambda n: make_keyed(n, 50),
        must=2e5,
        aim=1e6,
        few=300_000,
    ),
    PatternCase(
        "busy-keys",
        "100,000 keys, 1 pattern, 3 types",
        lambda: draw_abc(1, 3, key="user"),
        lambda n: make_keyed(n, 3),
        must=2e5,
        aim=1e6,
        few=300_000,
    ),
)
"""In the order of the table."""
