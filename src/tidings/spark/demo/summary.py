"""The results of the demo in words, read from the files that the pipeline left, as any program would."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from tidings.bench import workloads
from tidings.concepts.spelling import join_first
from tidings.matcher import Matcher

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.console import Console

    from tidings.spark.demo.demo_world import DemoWorld

SHOWN = 3
"""The number of examples of each sort."""

ADDED, REMOVED = 1, 3
"""The acts in which searches are added and removed."""


@dataclass(frozen=True, slots=True)
class DemoResults:
    """The rows in the pipeline's folders; matches also by ad, and the ads of each search."""

    matches: list[dict[str, Any]]
    letters: list[dict[str, Any]]
    batches: list[dict[str, Any]]
    by_ad: dict[int, list[dict[str, Any]]]
    by_search: dict[str, list[int]]

    @classmethod
    def read(cls, folder: Path) -> DemoResults:
        """Read the sinks, and the pipeline's reports on its batches."""
        batches = [line for line in _read_rows(folder, "progress.jsonl") if line["kind"] == "batch"]
        matches = sorted(
            _read_rows(folder, "matches/batch=*/*.json"), key=lambda row: (row["event"], row["subscription"])
        )
        letters = sorted(_read_rows(folder, "dead_letters/batch=*/*.json"), key=lambda row: row.get("event") or -1)
        by_ad: dict[int, list[dict[str, Any]]] = defaultdict(list)
        by_search: dict[str, list[int]] = defaultdict(list)
        for row in matches:
            by_ad[row["event"]].append(row)
            by_search[row["subscription"]].append(row["event"])
        return cls(matches, letters, batches, by_ad, by_search)


def _read_rows(folder: Path, pattern: str) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob(pattern)):
        yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())


def print_summary(console: Console, world: DemoWorld, folder: Path, *, seconds: float) -> None:
    """Print the summary."""
    results = DemoResults.read(folder)
    console.print(_build_table(world, results, seconds))
    for heading, lines in (
        ("A few ads, and the searches that caught them:", _show_caught(world, results)),
        ("A search that was added while it ran:", _show_added(world, results)),
        ("A search that was removed while it ran:", _show_removed(world, results)),
        ("A few ads that could not be read, and why:", _show_unread(results)),
    ):
        console.print(f"\n{heading}")
        for line in lines:
            console.print(Text(f"  {line}"), no_wrap=True, overflow="ellipsis")
    _print_places(console, folder)


def _build_table(world: DemoWorld, results: DemoResults, seconds: float) -> Table:
    table = Table(title="Tidings: car ads against saved searches", title_justify="left", show_header=False)
    table.add_column(justify="left")
    table.add_column(justify="right")
    searches, added, changed, removed = (len(act.changes) for act in world.acts)
    versions = sorted({batch["version"] for batch in results.batches})
    for name, value in {
        "ads": f"{world.ads:,} in {len(results.batches):,} batches",
        "saved searches": f"{searches:,}, then {added:,} added, {changed:,} changed, {removed:,} removed",
        "versions of them used": ", ".join(map(str, versions)),
        "matches": f"{len(results.matches):,}",
        "ads that somebody wants": f"{len(results.by_ad):,}",
        "dead letters": f"{len(results.letters):,}",
        "time": f"{seconds:.0f} s, Spark's start included",
    }.items():
        table.add_row(name, value)
    return table


def _show_caught(world: DemoWorld, results: DemoResults) -> Iterator[str]:
    """Show ads that few searches match, each with the filters that were in force then."""
    few = [rows for rows in results.by_ad.values() if len(rows) <= 2]
    step = max(1, len(few) // SHOWN)
    for rows in few[::step][:SHOWN]:
        ad = rows[0]
        price = f"for {ad['price']}" if ad.get("price") else "without a price"
        yield f"ad {ad['event']}: {ad['make']} {ad['model']}, {ad['year']}, {price}"
        act = max(act for act in range(len(world.acts)) if world.find_first_ad(act) <= ad["event"])
        in_force = world.find_searches_before(act + 1)
        for row in rows:
            yield f"  {row['subscription']}: {in_force[row['subscription']]}"


def _show_added(world: DemoWorld, results: DemoResults) -> Iterator[str]:
    hits, added = results.by_search, world.acts[ADDED].changes
    id = _choose_typical({id: len(hits[id]) for id in added if id in hits})
    if id is None:
        yield "none of them has caught an ad yet"
        return
    yield f"{id}: {added[id]}"
    yield f"caught {_format_ads(hits[id])}; it was added before ad {world.find_first_ad(ADDED)}"


def _show_removed(world: DemoWorld, results: DemoResults) -> Iterator[str]:
    """Show a removed search that would have matched more: later ads are matched against the removed searches."""
    before, gone = world.find_searches_before(REMOVED), world.acts[REMOVED].changes
    searches = Matcher(now=workloads.NOW)
    searches.add_many([(id, before[id]) for id in gone])
    later = [ad for ad in world.acts[REMOVED].ads if ad["id"] not in world.damages]
    missed: dict[str, list[int]] = defaultdict(list)
    for index, search in searches.match_many(later):
        missed[str(search)].append(later[index]["id"])
    hits = results.by_search
    id = _choose_typical({id: len(ads) for id, ads in missed.items() if id in hits})
    if id is None:
        yield "none of them would have caught an ad since"
        return
    reported = [ad for ad in hits.get(id, ()) if ad >= world.find_first_ad(REMOVED)]
    matched = _format_ads(reported) if reported else "none"
    yield f"{id}: {before[id]}"
    yield f"caught {_format_ads(hits.get(id, []))}; it was removed before ad {world.find_first_ad(REMOVED)}"
    yield f"{_format_ads(missed[id])} would have been for it, and it heard of {matched}"


def _choose_typical(counts: dict[str, int]) -> str | None:
    """Return the id with the median count, or nothing where there are no counts."""
    ordered = sorted(counts, key=lambda search: (counts[search], search))
    return ordered[len(ordered) // 2] if ordered else None


def _show_unread(results: DemoResults) -> Iterator[str]:
    examples = {letter["reason"]: letter for letter in results.letters}
    for letter in list(examples.values())[: SHOWN + 1]:
        id = f"ad {letter['event']}" if letter.get("event") is not None else "a line"
        yield f"{id}: {letter['reason']}"


def _print_places(console: Console, folder: Path) -> None:
    places = {
        "the pipeline": "pipeline.toml",
        "the ads": "ads/*.json",
        "the searches": "searches/*.jsonl",
        "matches": "matches/batch=*/*.json",
        "dead letters": "dead_letters/batch=*/*.json",
        "its batches": "progress.jsonl",
        "Spark's log": "state/spark.log",
    }
    console.print()
    for name, place in places.items():
        console.print(Text(f"{name + ':':<14} {folder}/{place}"), soft_wrap=True)
    onward = f"\nTo go on: tidings run {folder}/pipeline.toml, then drop files into ads/ and searches/."
    console.print(Text(onward), soft_wrap=True)


def _format_ads(numbers: list[int]) -> str:
    """Return a few numbers in words.

    >>> _format_ads([7]), _format_ads([3, 9]), _format_ads([1, 2, 3, 4, 5])
    ('ad 7', 'ads 3, 9', 'ads 1, 2, 3 and 2 more')
    """
    if not numbers:
        return "no ad"
    return f"{'ad' if len(numbers) == 1 else 'ads'} {join_first([*map(str, numbers)], SHOWN)}"
