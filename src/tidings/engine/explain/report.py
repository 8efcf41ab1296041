"""The report of `explain`: the plan of each segment, the cost of its parts, and what makes matching slow.

Everything is computed from the index as it is, so that an opened snapshot has the same report as what was just built.
Figures are estimates by the planner's constants for events that come in batches, without reading the events and writing
the matches: they tell which part costs most, not how long a machine takes.
"""

from __future__ import annotations

import pickle
import sys
from collections import Counter
from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.engine.compile.source_text import FilterSource, PackedSources
from tidings.engine.exact.exact_checks import LawItem
from tidings.engine.explain.cost_estimate import AccessPath, estimate_segment, find_unselective, reduce_rates
from tidings.model import Compare, Has, walk_tests

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from tidings.engine.compile.columns import EventSample
    from tidings.engine.segment import Segment
    from tidings.engine.state import EngineState, LiveSegment
    from tidings.kernels.array_types import CodeArray

TREE_NS, CANDIDATE_NS, LAW_NS, AREA_NS, TEXT_NS, LOOSE_NS = 0.03, 600.0, 8000.0, 1000.0, 10_000.0, 100.0
"""Nanoseconds for one instruction of a tree and one of 512 events, for a whole tree and one event, for a test that
`algebra.holds` decides, for an area, for scanning a text, and for an expression without a literal and one text."""

LAW_TESTS = {Compare: "comparison of attributes", Has: "has"}
"""What the report calls tests that are decided by the law, besides patterns."""

MANY_SEGMENTS = 4
"""From so many segments on, the report counts them among what is slow."""

SAMPLED = 256
"""Written filters whose size is measured; the others are taken to be like them."""


def describe_state(state: EngineState, sample: EventSample | None) -> dict[str, object]:
    """Return the plan of a state in plain values; with a sample, estimates go by its events."""
    segments = [_describe_segment(part, sample) for part in state.parts]
    waiting = len(state.waiting) * LAW_NS
    return {
        "subscriptions": len(state),
        "nanoseconds": round(waiting + sum(segment["nanoseconds"] for segment in segments)),
        "statistics": "subscriptions" if sample is None else "events",
        "slow": _list_slow_parts(state, segments),
        "segments": segments,
        "waiting": {"subscriptions": len(state.waiting), "nanoseconds": round(waiting)},
    }


def _describe_segment(part: LiveSegment, sample: EventSample | None) -> dict[str, Any]:
    segment = part.segment
    paths, codes = estimate_segment(segment, sample)
    parts = {
        "trees": _describe_trees(segment),
        "text": _describe_text(segment),
        "second phase": _describe_checks(part, codes),
        "found trees": _describe_candidate_trees(part, codes),
    }
    size = measure_segment(segment)
    tiles = segment.index.tiles
    checked = np.maximum.reduceat(tiles.rest, tiles.rest_start[:-1]) if len(tiles.row) else tiles.rest
    exact = 0 if len(tiles.doubted) else int(np.count_nonzero(checked == 0))
    costs = [path.nanoseconds for path in paths]
    costs += [description["nanoseconds"] for description in parts.values() if description]
    return {
        "subscriptions": len(part),
        "removed": part.deleted_count,
        "rows": len(segment.index.rows.start) - 1 - int(np.count_nonzero(segment.index.copy)),
        "bytes": size,
        "bytes a subscription": round(size / max(1, len(segment)), 1),
        "nanoseconds": round(sum(costs)),
        "paths": [_describe_path(path, segment) for path in sorted(paths, key=lambda path: -path.nanoseconds)],
        "bitmaps": {"decide": exact, "need a check": len(tiles.row) - exact},
        **{name: description for name, description in parts.items() if description},
        "unselective": _count_live(part, find_unselective(segment, paths, codes)),
    }


def _describe_path(path: AccessPath, segment: Segment) -> dict[str, Any]:
    columns = [str(segment.columns[number]) for number in path.columns]
    names, one_of = " and ".join(columns), path.rows_per_candidate
    share = "all" if one_of < 1.5 else f"1 of {one_of:,.0f}"
    reason = f"ranges of {names} lie together: {share}"
    if path.kind == "always":
        reason = "nothing selective, or too few to part"
    elif path.kind.startswith("key"):
        reason = f"equality on {names}: {share}"
    rounded = {"candidates": round(path.candidates, 1), "nanoseconds": round(path.nanoseconds)}
    return {**asdict(path), "columns": columns, **rounded, "reason": reason}


def _describe_trees(segment: Segment) -> dict[str, Any] | None:
    if segment.trees is None or not len(segment.trees.forest):
        return None
    summary = segment.trees.forest.summarize()
    items = [segment.exact_checks.items[number] for number in segment.trees.items.tolist()]
    law = sum(isinstance(item, LawItem) for item in items)
    cost = summary["instructions"] * TREE_NS + law * LAW_NS + (len(items) - law) * AREA_NS
    return {**summary, "areas": len(items) - law, "by the law": law, "nanoseconds": round(cost)}


def _describe_candidate_trees(part: LiveSegment, codes: CodeArray) -> dict[str, Any] | None:
    """Describe the trees that rows find: each is decided for the events that pass its row."""
    segment = part.segment
    if segment.candidate_trees is None:
        return None
    forest = segment.candidate_trees.forest
    summary, slots = forest.summarize(), forest.slots
    survivors = float(reduce_rates(np.multiply, segment, segment.row_of[slots], codes).sum())
    return {
        "trees": len(slots) if part.deleted is None else int(np.count_nonzero(~part.deleted[slots])),
        "leaves": summary["leaves"],
        "survivors": round(survivors, 1),
        "nanoseconds": round(min(survivors * CANDIDATE_NS, summary["instructions"] * TREE_NS)),
    }


def _describe_text(segment: Segment) -> dict[str, Any] | None:
    if not segment.automata:
        return None
    counts: Counter[str] = Counter()
    for automaton in segment.automata.values():
        counts.update(automaton.describe())
    cost = len(segment.automata) * TEXT_NS + counts["expressions without"] * LOOSE_NS
    return {"attributes": sorted(segment.automata), **counts, "nanoseconds": round(cost)}


def _describe_checks(part: LiveSegment, codes: CodeArray) -> dict[str, Any] | None:
    """Describe the exact checks: each item is decided once for an event that passes some row which needs it."""
    checks = part.segment.exact_checks
    if not len(checks.row):
        return None
    by_law = np.array([isinstance(item, LawItem) for item in checks.items], bool)
    law = by_law[checks.item]
    share = reduce_rates(np.multiply, part.segment, checks.row.astype(np.int64), codes)
    decided = np.minimum(1, np.bincount(checks.item, weights=share, minlength=len(by_law)))
    cost = float(decided @ np.where(by_law, LAW_NS, AREA_NS))
    return {
        "areas": int(np.count_nonzero(~by_law)),
        "filters with areas": _count_live(part, checks.row[~law]),
        "tests by the law": int(np.count_nonzero(by_law)),
        "filters by the law": _count_live(part, checks.row[law]),
        "nanoseconds": round(cost),
    }


def _count_live(part: LiveSegment, rows: NDArray[Any]) -> int:
    """Count the subscriptions of some rows that are not deleted."""
    slots = np.unique(part.segment.list_slots(np.unique(rows).astype(np.int64))[0])
    return len(slots) if part.deleted is None else int(np.count_nonzero(~part.deleted[slots]))


def _list_slow_parts(state: EngineState, segments: list[dict[str, Any]]) -> list[str]:
    sentences = []
    if count := sum(segment["unselective"] for segment in segments):
        sentences.append(f"{pluralize(count, 'filter has', 'filters have')} no selective predicate")
    if count := sum(segment.get("text", {}).get("expressions without", 0) for segment in segments):
        sentences.append(f"{pluralize(count, 'expression')} without a literal")
    if count := sum(segment.get("trees", {}).get("trees", 0) for segment in segments):
        kept = pluralize(count, "filter is kept as a tree (its", "filters are kept as trees (their")
        sentences.append(f"{kept} normal form is too large)")
    if law := [
        item.filter for part in state.parts for item in part.segment.exact_checks.items if isinstance(item, LawItem)
    ]:
        count = sum(segment.get("second phase", {}).get("filters by the law", 0) for segment in segments)
        whole = sum(segment.get("trees", {}).get("by the law", 0) for segment in segments)
        subjects = [pluralize(count, "filter is", "filters are")] if count else []
        subjects += [pluralize(whole, "leaf of trees is", "leaves of trees are")] if whole else []
        first_tests = (next(walk_tests(filter))[1] for filter in law)  # a law item has one, or the `has` around others
        kinds = sorted({LAW_TESTS.get(type(test.condition), "patterns on all values") for test in first_tests})
        sentences += [f"{subject} decided by the law ({', '.join(kinds)})" for subject in subjects]
    if len(segments) >= MANY_SEGMENTS:
        sentences.append(f"{len(segments)} segments are asked one after the other until they are merged")
    if len(segments) and state.waiting:
        waits = pluralize(len(state.waiting), "subscription is", "subscriptions are")
        sentences.append(f"{waits} asked one by one until compiled")
    return sentences


def pluralize(count: int, singular: str, plural: str = "") -> str:
    """Return how many there are of what; without a plural, it is the singular and an s."""
    return f"{count:,} {singular if count == 1 else plural or f'{singular}s'}"


def measure_segment(segment: Segment) -> int:
    """Return the bytes of all arrays of a segment, mapped from a file or not, and of its written filters."""
    automata = [automaton.to_arrays() for automaton in segment.automata.values()]
    trees = [segment.trees, segment.candidate_trees]
    parts = [segment.spaces, segment.index, segment.exact_checks, automata, trees, segment.ids.to_arrays()]
    # By address: arrays that share their memory count once.
    arrays = _iterate_arrays([parts, segment.sources.slots])
    sizes = {array.__array_interface__["data"][0]: array.nbytes for array in arrays}
    return sum(sizes.values()) + _measure_sources(segment.sources.filters)


def _iterate_arrays(part: Any) -> Iterator[NDArray[Any]]:
    """Yield the arrays in tuples, lists, dictionaries and dataclasses; decoded items are passed over."""
    if isinstance(part, np.ndarray):
        if part.nbytes:
            yield part
        return
    inner: Iterable[Any] = part if isinstance(part, tuple | list) else ()
    if isinstance(part, dict):
        inner = part.values()
    elif is_dataclass(part):
        inner = [getattr(part, field.name) for field in fields(part) if field.name not in ("items", "decoded")]
    for value in inner:
        yield from _iterate_arrays(value)


def _measure_sources(filters: Sequence[FilterSource]) -> int:
    if isinstance(filters, PackedSources):
        return filters.nbytes
    if not len(filters):
        return 0
    sampled = [filters[index] for index in range(0, len(filters), max(1, len(filters) // SAMPLED))]
    sizes = [sys.getsizeof(source) if isinstance(source, str) else len(pickle.dumps(source)) for source in sampled]
    return len(filters) * sum(sizes) // len(sizes)
