"""What the demo found, in words: read back from the files that the pipeline left, as any program would."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from tidings.bench import workloads
from tidings.matcher import Matcher

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.console import Console

    from tidings.spark.demo.world import World

SHOWN = 3
"""Examples of each sort."""

ADDED, REMOVED = 1, 3
"""The acts in which searches are added and removed."""


@dataclass(frozen=True, slots=True)
class Found:
    """What lies in the pipeline's folders."""

    matches: list[dict[str, Any]]
    letters: list[dict[str, Any]]
    batches: list[dict[str, Any]]

    @classmethod
    def read(cls, folder: Path) -> Found:
        """Read the sinks, and what the pipeline told of its batches."""
        told = [one for one in _rows(folder, "progress.jsonl") if one["kind"] == "batch"]
        return cls(
            sorted(_rows(folder, "matches/batch=*/*.json"), key=lambda row: (row["event"], row["subscription"])),
            sorted(_rows(folder, "dead_letters/batch=*/*.json"), key=lambda row: row.get("event") or -1),
            told,
        )

    def by_ad(self) -> dict[int, list[dict[str, Any]]]:
        """Return the matches of each ad."""
        return _grouped(self.matches, "event")

    def by_search(self) -> dict[str, list[int]]:
        """Return the ads of each search."""
        return {id: [row["event"] for row in rows] for id, rows in _grouped(self.matches, "subscription").items()}


def _rows(folder: Path, pattern: str) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob(pattern)):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


def _grouped(rows: list[dict[str, Any]], key: str) -> dict[Any, list[dict[str, Any]]]:
    found: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        found[row[key]].append(row)
    return found


def tell(console: Console, world: World, folder: Path, *, seconds: float) -> None:
    """Print the summary."""
    found = Found.read(folder)
    console.print(_numbers(world, found, seconds))
    for heading, lines in (
        ("A few ads, and the searches that caught them:", _caught(world, found)),
        ("A search that was added while it ran:", _added(world, found)),
        ("A search that was removed while it ran:", _removed(world, found)),
        ("A few ads that could not be read, and why:", _unread(found)),
    ):
        console.print(f"\n{heading}")
        for line in lines:
            console.print(Text(f"  {line}"), no_wrap=True, overflow="ellipsis")
    _print_places(console, folder)


def _numbers(world: World, found: Found, seconds: float) -> Table:
    table = Table(title="Tidings: car ads against saved searches", title_justify="left", show_header=False)
    table.add_column(justify="left")
    table.add_column(justify="right")
    searches, added, changed, removed = (len(act.changes) for act in world.acts)
    versions = sorted({batch["version"] for batch in found.batches})
    for name, value in {
        "ads": f"{world.ads:,} in {len(found.batches):,} batches",
        "saved searches": f"{searches:,}, then {added:,} added, {changed:,} changed, {removed:,} removed",
        "versions of them used": ", ".join(map(str, versions)),
        "matches": f"{len(found.matches):,}",
        "ads that somebody wants": f"{len(found.by_ad()):,}",
        "dead letters": f"{len(found.letters):,}",
        "time": f"{seconds:.0f} s, Spark's start included",
    }.items():
        table.add_row(name, value)
    return table


def _caught(world: World, found: Found) -> Iterator[str]:
    """Show ads that a few searches caught, each with the text that was in force then."""
    few = [rows for rows in found.by_ad().values() if len(rows) <= 2]
    step = max(1, len(few) // SHOWN)
    for rows in few[::step][:SHOWN]:
        ad = rows[0]
        price = f"for {ad['price']}" if ad.get("price") else "without a price"
        yield f"ad {ad['event']}: {ad['make']} {ad['model']}, {ad['year']}, {price}"
        in_force = world.before(_act_of(world, ad["event"]) + 1)
        for row in rows:
            yield f"  {row['subscription']}: {in_force[row['subscription']]}"


def _added(world: World, found: Found) -> Iterator[str]:
    hits = found.by_search()
    added = world.acts[ADDED].changes
    id = _typical({id: len(hits[id]) for id in added if id in hits})
    if id is None:
        yield "none of them has caught an ad yet"
        return
    yield f"{id}: {added[id]}"
    yield f"caught {_ads(hits[id])}; it was added before ad {_first(world, ADDED)}"


def _removed(world: World, found: Found) -> Iterator[str]:
    """Show one that would have caught more: the ads after it went, matched once more with those that went."""
    before, gone = world.before(REMOVED), world.acts[REMOVED].changes
    searches = Matcher(now=workloads.NOW)
    searches.add_many([(id, before[id]) for id in gone])
    later = [ad for ad in world.acts[REMOVED].ads if ad["id"] not in world.spoilt]
    missed: dict[str, list[int]] = defaultdict(list)
    for at, one in searches.match_many(later):
        missed[str(one)].append(later[at]["id"])
    hits = found.by_search()
    id = _typical({id: len(ads) for id, ads in missed.items() if id in hits})
    if id is None:
        yield "none of them would have caught an ad since"
        return
    heard = [ad for ad in hits.get(id, ()) if ad >= _first(world, REMOVED)]
    yield f"{id}: {before[id]}"
    yield f"caught {_ads(hits.get(id, []))}; it was removed before ad {_first(world, REMOVED)}"
    yield f"{_ads(missed[id])} would have been for it, and it heard of {_ads(heard) if heard else 'none'}"


def _typical(counts: dict[str, int]) -> str | None:
    """Return neither the luckiest search nor one with a single ad."""
    ordered = sorted(counts, key=lambda one: (counts[one], one))
    return ordered[len(ordered) // 2] if ordered else None


def _unread(found: Found) -> Iterator[str]:
    shown = {letter["reason"]: letter for letter in found.letters}
    for letter in list(shown.values())[: SHOWN + 1]:
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


def _first(world: World, act: int) -> int:
    """Return the number of the first ad of an act."""
    return sum(len(one.ads) for one in world.acts[:act])


def _act_of(world: World, ad: int) -> int:
    return max(act for act in range(len(world.acts)) if _first(world, act) <= ad)


def _ads(numbers: list[int]) -> str:
    """Return a few numbers in words.

    >>> _ads([7]), _ads([3, 9]), _ads([1, 2, 3, 4, 5])
    ('ad 7', 'ads 3, 9', 'ads 1, 2, 3 and 2 more')
    """
    if not numbers:
        return "no ad"
    shown = ", ".join(map(str, numbers[:SHOWN]))
    more = f" and {len(numbers) - SHOWN:,} more" if len(numbers) > SHOWN else ""
    return f"{'ad' if len(numbers) == 1 else 'ads'} {shown}{more}"
