"""How fast the store is, beside raw SQL: single writes, groups of writes, reads, an import, a first load, matches.

`python -m benchmarks.service.store [--store URL] [-n 1000000]`. The raw insert is of SQLite, committed one by one with
the same durability; a store on PostgreSQL is measured beside it all the same, as it is what people compare with. The
import is of the workload `classifieds`, whose filters are not checked here: that is the API's part.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.service.http import measure_raw_inserts
from tidings.bench.harness.results import describe_machine
from tidings.bench.workloads import workload
from tidings.service.store.base import Store, SubscriptionQuery, Write
from tidings.service.store.opening import open_store
from tidings.service.subscription import MatchRow, SubscriptionDraft

if TYPE_CHECKING:
    from collections.abc import Iterator

OWNER = "bench"
EVENT_MATCHES = 8
"""Subscriptions that an event matches."""

Figures = dict[str, list[float]]


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("-n", "--count", type=int, default=1_000_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seconds", type=float, default=2.0)
    options.add_argument("--store", default="", help="SQLAlchemy's URL; by default SQLite in a temporary folder")
    options.add_argument("--quick", action="store_true", help="a hundredth of the work, for a smoke test")
    arguments = options.parse_args()
    if arguments.quick:
        arguments.count, arguments.rounds, arguments.seconds = min(arguments.count, 10_000), 2, 0.1
    print(f"store, {arguments.store.partition(':')[0] or 'sqlite'}; {describe_machine()}")
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(arguments.store or f"sqlite:///{folder}/store.db")
        filters = workload("equalities").texts(20_000, 1).column("filter").to_pylist()
        figures: Figures = {}
        for number in range(arguments.rounds):
            measure_writes(figures, store, filters, prefix=f"{time.time_ns()}-{number}", seconds=arguments.seconds)
            rate = measure_raw_inserts(Path(folder) / "raw.db", filters, arguments.seconds)
            figures.setdefault("raw committed insert", []).append(rate)
        report_rates(figures)
        report_bulk(store, arguments.count, rounds=arguments.rounds)
        store.close()


def measure_writes(figures: Figures, store: Store, filters: list[str], *, prefix: str, seconds: float) -> None:
    """Add rates of writes, alone and in groups, and of reads."""
    ids = (f"{prefix}-{count}" for count in range(1 << 30))
    for size in (1, 8, 64):
        name = f"created, {size} in a transaction"

        def write(size: int = size) -> int:
            group = [make_write(next(ids), filters[place]) for place in range(size)]
            results = store.subscriptions.write(group)
            assert not any(isinstance(result, Exception) for result in results)
            return size

        figures.setdefault(name, []).append(measure_rate(write, seconds))
    written = [row.id for row in store.subscriptions.list(SubscriptionQuery(owner=OWNER, limit=10_000))]
    chosen = random.Random(1)

    def read() -> int:
        for _ in range(100):
            assert store.subscriptions.get(OWNER, chosen.choice(written)) is not None
        return 100

    figures.setdefault("read by id", []).append(measure_rate(read, seconds / 2))


def make_write(id: str, text: str) -> Write:
    """Return the creation of a subscription, as the API asks for it."""
    draft = SubscriptionDraft(id=id, kind="filter", text=text)
    return Write(action="create", owner=OWNER, id=id, actor="k", at=datetime.now(UTC), draft=draft, most=10_000_000)


def measure_rate(work: object, seconds: float) -> float:
    """Return units of work a second; each call says how many it did."""
    assert callable(work)
    count, begin = 0, time.perf_counter()
    while (spent := time.perf_counter() - begin) < seconds:
        count += work()
    return count / spent


def report_rates(figures: Figures) -> None:
    """Print medians and their spread."""
    raw = statistics.median(figures["raw committed insert"])
    for name, values in figures.items():
        median = statistics.median(values)
        spread = (max(values) - min(values)) / 2 / median
        share = f"{median / raw:.0%} of a raw insert" if name.startswith("created") else ""
        print(f"  {name:32} {median:12,.0f} a second  (+-{spread:.0%})  {share}")


# Many at once -----------------------------------------------------------------------------------------


def report_bulk(store: Store, count: int, *, rounds: int) -> None:
    """Print how long an import, a first load, and pages and batches of matches over so many take."""
    position = store.log.read_head()
    with timing(f"import of {count:,}"):
        assert store.subscriptions.write_many("many", draft_rows(count), actor="k", at=datetime.now(UTC)).count == count
    with timing("import again, over the same"):
        store.subscriptions.write_many("many", draft_rows(count), actor="k", at=datetime.now(UTC))
    with timing("first load"), store.log.read(None) as changes:
        assert sum(1 for _ in changes.running) >= count
    with timing("the import as a change"), store.log.read(position) as changes:
        assert sum(1 for _ in changes.running) >= count
    report_pages(store)
    report_matches(store, count, rounds=rounds)


def draft_rows(count: int) -> Iterator[SubscriptionDraft]:
    """Yield drafts of classifieds, one filter in a thousand places: making a million takes longer than storing them."""
    texts = workload("classifieds").texts(1_000, 1).column("filter").to_pylist()
    for number in range(count):
        yield SubscriptionDraft(id=f"s{number}", kind="filter", text=texts[number % len(texts)])


def report_pages(store: Store) -> None:
    """Print how long pages of lists take."""
    pages = {
        "page": SubscriptionQuery(owner="many"),
        "page of a status": SubscriptionQuery(owner="many", status="active"),
        "page of a status nobody has": SubscriptionQuery(owner="many", status="paused"),
        "page of a label nobody has": SubscriptionQuery(owner="many", label="none"),
        "search that finds nothing": SubscriptionQuery(owner="many", text="nothing has this"),
    }
    for name, query in pages.items():
        with timing(name):
            store.subscriptions.list(query)
    with timing("count"):
        store.subscriptions.count("many")


def report_matches(store: Store, count: int, *, rounds: int) -> None:
    """Print rows of matches a second, spread over all subscriptions, over few that are full, and all of one."""
    size = min(40_000, count)
    spreads = {"all subscriptions": count, "1,000 subscriptions": 1_000, "one subscription": 1}
    for name, width in spreads.items():
        rates = []
        for number in range(rounds + 1):
            rows = make_matches(size, width, seed=number)
            begin = time.perf_counter()
            store.matches.write(f"{name} {time.time_ns()}", number, rows, at=datetime.now(UTC), keep=100)
            rates.append(size / (time.perf_counter() - begin))
        median = statistics.median(rates[1:])
        print(f"  {'matches of ' + name:32} {median:12,.0f} rows a second")
    with timing("latest matches of one"):
        store.matches.list_latest("many", "s0")
    with timing("matches since, of an owner"):
        store.matches.list_since("many", 0)


def make_matches(count: int, width: int, *, seed: int) -> list[MatchRow]:
    """Return rows of events that match subscriptions at random."""
    chosen, rows = random.Random(seed), []
    at = datetime.now(UTC)
    for number in range(count // EVENT_MATCHES):
        values = {"make": "ford", "price": 9_000 + number, "place": {"lon": 8.5, "lat": 47.4}, "text": "x" * 200}
        for _ in range(EVENT_MATCHES):
            fields = {"subscription": f"s{chosen.randrange(width)}", "event": f"{seed}-{number}"}
            rows.append(MatchRow(owner="many", kind="match", at=at, values=values, **fields))
    return rows


@contextmanager
def timing(name: str) -> Iterator[None]:
    """Print how long the block took."""
    begin = time.perf_counter()
    yield
    spent = time.perf_counter() - begin
    print(f"  {name:32} {spent * 1000:12,.1f} ms")


if __name__ == "__main__":
    main()
