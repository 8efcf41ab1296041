"""The results of the demo in words, from what came back over HTTP, as any program would have it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from tidings.concepts.spelling import join_first
from tidings.matcher import Matcher
from tidings.service.demo.demo_world import DemoWorld, get_number

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.console import Console

SHOWN = 3
"""The number of examples of each sort."""

ADDED, REMOVED = 1, 3
"""The acts in which searches are added and removed."""


@dataclass(frozen=True, slots=True)
class DemoResults:
    """What came back: matches by ad and by search, detections of the pattern, and why ads were refused."""

    world: DemoWorld
    matches: list[dict[str, Any]]
    detections: list[dict[str, Any]]
    refusals: Mapping[str, str]
    by_ad: dict[str, list[dict[str, Any]]]
    by_search: dict[str, list[str]]

    @classmethod
    def sort(cls, world: DemoWorld, rows: list[dict[str, Any]], refusals: Mapping[str, str]) -> DemoResults:
        """Sort the rows of the stream."""
        matches = sorted(
            (row for row in rows if row["kind"] == "match"),
            key=lambda row: (get_number(row["event"]), row["subscription"]),
        )
        by_ad: dict[str, list[dict[str, Any]]] = defaultdict(list)
        by_search: dict[str, list[str]] = defaultdict(list)
        for row in matches:
            by_ad[row["event"]].append(row)
            by_search[row["subscription"]].append(row["event"])
        return cls(world, matches, [row for row in rows if row["kind"] == "detection"], refusals, by_ad, by_search)


def print_summary(console: Console, results: DemoResults, folder: Path, *, seconds: float) -> None:
    """Print the summary."""
    console.print(_build_table(results, seconds))
    for heading, lines in (
        ("A few ads, and the searches that caught them:", _show_caught(results)),
        ("A search that was added while it ran:", _show_added(results)),
        ("A search that was removed while it ran:", _show_removed(results)),
        ("A pattern over several ads, two bargains of one dealer:", _show_detections(results)),
        ("A few ads that could not be taken, and why:", _show_refused(results)),
    ):
        console.print(f"\n{heading}")
        for line in lines:
            console.print(Text(f"  {line}"), no_wrap=True, overflow="ellipsis")
    _print_places(console, folder)


def _build_table(results: DemoResults, seconds: float) -> Table:
    table = Table(title="Tidings: car ads against saved searches", title_justify="left", show_header=False)
    table.add_column(justify="left")
    table.add_column(justify="right")
    searches, added, changed, removed = (len(act.changes) for act in results.world.acts)
    for name, value in {
        "ads posted": f"{results.world.ads:,}",
        "saved searches": f"{searches:,}, then {added:,} added, {changed:,} changed, {removed:,} removed",
        "matches": f"{len(results.matches):,}",
        "ads that somebody wants": f"{len(results.by_ad):,}",
        "detections of a pattern": f"{len(results.detections):,}",
        "ads refused": f"{len(results.refusals):,}",
        "time": f"{seconds:.0f} s, the service's start included",
    }.items():
        table.add_row(name, value)
    return table


def _show_caught(results: DemoResults) -> Iterator[str]:
    """Show ads that few searches match, each with the filters that were in force then."""
    few = [rows for rows in results.by_ad.values() if len(rows) <= 2]
    step = max(1, len(few) // SHOWN)
    for rows in few[::step][:SHOWN]:
        ad = rows[0]
        values = ad["values"]
        price = f"for {values['price']}" if values.get("price") else "without a price"
        yield f"{ad['event']}: {values['make']} {values['model']}, {values['year']}, {price}"
        in_force = results.world.find_searches_before(results.world.find_act(ad["event"]) + 1)
        for row in rows:
            yield f"  {row['subscription']}: {in_force[row['subscription']]}"


def _show_added(results: DemoResults) -> Iterator[str]:
    world, hits, added = results.world, results.by_search, results.world.acts[ADDED].changes
    id = _choose_typical({id: len(hits[id]) for id in added if id in hits})
    if id is None:
        yield "none of them has caught an ad yet"
        return
    yield f"{id}: {added[id]}"
    yield f"caught {_format_ads(hits[id])}; it was added before ad-{world.find_first_ad(ADDED)}"


def _show_removed(results: DemoResults) -> Iterator[str]:
    """Show a removed search that would have matched more: later ads are matched against the removed searches."""
    world, hits = results.world, results.by_search
    before, gone, first = world.find_searches_before(REMOVED), world.acts[REMOVED].changes, world.find_first_ad(REMOVED)
    searches = Matcher()
    searches.add_many([(id, before[id]) for id in gone])
    later = [ad for ad in world.acts[REMOVED].ads if ad["id"] not in world.damages]
    missed: dict[str, list[str]] = defaultdict(list)
    for index, search in searches.match_many(later):
        missed[str(search)].append(later[index]["id"])
    id = _choose_typical({id: len(ads) for id, ads in missed.items() if id in hits})
    if id is None:
        yield "none of them would have caught an ad since"
        return
    reported = [ad for ad in hits.get(id, ()) if get_number(ad) >= first]
    matched = _format_ads(reported) if reported else "none"
    yield f"{id}: {before[id]}"
    yield f"caught {_format_ads(hits.get(id, []))}; it was removed before ad-{first}"
    yield f"{_format_ads(missed[id])} would have been for it, and it heard of {matched}"


def _show_detections(results: DemoResults) -> Iterator[str]:
    step = max(1, len(results.detections) // SHOWN)
    for row in results.detections[::step][:SHOWN]:
        yield f"{' and '.join(row['events'])}"


def _show_refused(results: DemoResults) -> Iterator[str]:
    for id, reason in sorted(results.refusals.items(), key=lambda item: get_number(item[0]))[: SHOWN + 1]:
        yield f"{id}: {reason}"


def _choose_typical(counts: dict[str, int]) -> str | None:
    """Return the id with the median count, or nothing where there are no counts."""
    ordered = sorted(counts, key=lambda search: (counts[search], search))
    return ordered[len(ordered) // 2] if ordered else None


def _print_places(console: Console, folder: Path) -> None:
    places = {
        "the service": "service.toml",
        "its store": "data/store.db",
        "the admin key": "data/admin.key",
        "its logs": "data/logs/*.log",
    }
    console.print()
    for name, place in places.items():
        console.print(Text(f"{name + ':':<14} {folder}/{place}"), soft_wrap=True)
    onward = f"\nTo go on: tidings serve {folder}/service.toml, then subscribe and post as the curl lines above do."
    console.print(Text(onward), soft_wrap=True)


def _format_ads(ads: list[str]) -> str:
    """Return a few ads in words.

    >>> _format_ads(["ad-7"]), _format_ads(["ad-1", "ad-2", "ad-3", "ad-4", "ad-5"])
    ('ad-7', 'ad-1, ad-2, ad-3 and 2 more')
    """
    return join_first(ads, SHOWN) if ads else "no ad"
