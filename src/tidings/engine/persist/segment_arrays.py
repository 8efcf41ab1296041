"""A segment as flat arrays and a little description, and back: for snapshots and for pickles.

The arrays are those the segment matches with, under names like `rows.start` and `space.3.ends`. Restoring
reads none of them: filters, areas and laws are made when they are asked for. So a segment that is mapped
from a file costs milliseconds to open, whatever its size.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from tidings.engine.compile.code_spaces import open_space, pack_bytes
from tidings.engine.compile.columns import Column, View
from tidings.engine.compile.row_table import Literals
from tidings.engine.compile.source_text import FilterSources
from tidings.engine.exact.exact_checks import ExactChecks, ExactItem, LawItem, PlaceItem
from tidings.engine.exact.forest import TreeForest
from tidings.engine.exact.place_tests import PlaceTable
from tidings.engine.exact.text_automaton import TextAutomaton
from tidings.engine.ids import Ids
from tidings.engine.index.builder import SegmentIndex
from tidings.engine.readonly import freeze
from tidings.engine.segment import FilterTrees, Segment
from tidings.engine.state import LiveSegment
from tidings.kernels.match.layout import IndexPaths, IndexRows, IndexTiles
from tidings.lang import parse, render
from tidings.model import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from tidings.engine.persist.mapped_arrays import Arrays
    from tidings.model import Filter

GROUPS: dict[str, Any] = {"rows": IndexRows, "paths": IndexPaths, "tiles": IndexTiles}
"""The parts of an index that kernels are handed as groups; whatever else an index has are arrays."""

NO_UNITS: Mapping[str, str] = MappingProxyType({})

SECOND = ("row", "item", "place_of", "name_of", "op_of")
TREES = ("column_start", "items")
LEAVES = tuple(one.name for one in dataclasses.fields(Literals))

_kept: WeakKeyDictionary[Segment, Arrays] = WeakKeyDictionary()
"""What segments were restored from: saving one again takes the same arrays, and reads nothing back."""


# Taking apart --------------------------------------------------------------------------------------


def segment_to_arrays(segment: Segment) -> Arrays:
    """Return all arrays of a segment by name; with `description_of`, all there is to it."""
    known = _kept.get(segment)
    if known is not None:
        return known
    found: Arrays = {}
    for name in GROUPS:
        found |= _prefix_names(name, getattr(segment.index, name)._asdict())
    rest = [one.name for one in dataclasses.fields(SegmentIndex) if one.name not in GROUPS]
    found |= _prefix_names("index", {name: getattr(segment.index, name) for name in rest})
    for number, space in enumerate(segment.spaces):
        found |= _prefix_names(f"space.{number}", space.to_arrays())
    second = segment.exact_checks
    found |= _prefix_names("second", {name: getattr(second, name) for name in SECOND})
    blob, start = pack_bytes([_render_law(item) for item in second.items])
    found |= _prefix_names("law", {"blob": blob, "start": start})
    found |= _prefix_names("places", second.places.to_arrays())
    for number, automaton in enumerate(segment.automata.values()):
        found |= _prefix_names(f"automaton.{number}", automaton.to_arrays())
    for prefix, trees in (("", segment.trees), ("asked.", segment.candidate_trees)):
        if trees is not None:
            found |= _prefix_names(f"{prefix}leaves", {name: getattr(trees.leaves, name) for name in LEAVES})
            found |= _prefix_names(f"{prefix}trees", {name: getattr(trees, name) for name in TREES})
            found |= _prefix_names(f"{prefix}forest", trees.forest.to_arrays())
    found |= _prefix_names("ids", segment.ids.to_arrays())
    found |= _prefix_names("sources", segment.sources.to_arrays())
    return found


def _prefix_names(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def _render_law(item: ExactItem) -> bytes:
    """Return what the law decides as JSON; a place is kept otherwise."""
    return render(item.filter, notation="json").encode() if isinstance(item, LawItem) else b""


def describe_segment(segment: Segment) -> dict[str, Any]:
    """Return what is no array, in plain values that JSON can hold."""
    return {
        "columns": [
            [
                column.attribute,
                column.view.value,
                column.tree,
                column.kind and column.kind.value,
                kind.value,
                column.unit,
            ]
            for column, kind in zip(segment.columns, segment.kinds, strict=True)
        ],
        "places": list(segment.exact_checks.names),
        "patterns": list(segment.automata),
        "choice": dict(segment.choice),
    }


# Putting together ----------------------------------------------------------------------------------


def open_segment(
    description: Mapping[str, Any],
    arrays: Arrays,
    bind: Callable[[Filter], Filter],
    units: Mapping[str, str] = NO_UNITS,
) -> Segment:
    """Return the segment of a description and arrays; `bind` gives what a filter means.

    `units` are those that filters ask of attributes, for descriptions that were written without them.
    """
    parts = _group_arrays(arrays)
    columns = [_parse_column(units, *told) for told in description["columns"]]
    index: dict[str, Any] = {**{name: made(**parts[name]) for name, made in GROUPS.items()}, **parts["index"]}
    segment = Segment(
        columns=tuple(column for column, _ in columns),
        kinds=tuple(kind for _, kind in columns),
        spaces=tuple(open_space(parts[f"space.{number}"]) for number in range(len(columns))),
        index=SegmentIndex(**index),
        exact_checks=_open_checks(tuple(description["places"]), parts, bind),
        automata={
            name: TextAutomaton.from_arrays(parts[f"automaton.{number}"])
            for number, name in enumerate(description["patterns"])
        },
        trees=_open_trees(parts, ""),
        candidate_trees=_open_trees(parts, "asked."),
        ids=Ids.from_arrays(parts["ids"]),
        sources=FilterSources.from_arrays(parts["sources"]),
        choice=dict(description["choice"]),
    )
    _kept[segment] = arrays
    return segment


def _parse_column(
    units: Mapping[str, str], attribute: str, view: str, tree: str | None, own: str | None, kind: str, *unit: str | None
) -> tuple[Column, Kind]:
    """Read one column's words; without a word for the unit, all filters asked the attribute for the same one."""
    known = unit[0] if unit else units.get(attribute) if view == View.NUMBER else None
    return Column(attribute, View(view), tree, None if own is None else Kind(own), known), Kind(kind)


def _group_arrays(arrays: Arrays) -> dict[str, Arrays]:
    found: dict[str, Arrays] = {}
    for name, array in arrays.items():
        group, _, last = name.rpartition(".")
        found.setdefault(group, {})[last] = freeze(array)
    return found


def _open_checks(names: tuple[str, ...], parts: dict[str, Arrays], bind: Callable[[Filter], Filter]) -> ExactChecks:
    arrays, places = parts["second"], PlaceTable.from_arrays(parts["places"])
    items = _LazyItems(names, arrays, places, parts["law"], bind)
    return ExactChecks(items=items, places=places, names=names, **{name: arrays[name] for name in SECOND})


def _open_trees(parts: dict[str, Arrays], prefix: str) -> FilterTrees | None:
    if f"{prefix}trees" not in parts:
        return None
    leaves, forest = Literals(**parts[f"{prefix}leaves"]), TreeForest.from_arrays(parts[f"{prefix}forest"])
    return FilterTrees(leaves=leaves, forest=forest, **parts[f"{prefix}trees"])


class _LazyItems(Sequence[ExactItem]):
    """Second-phase items, each made when it is first asked for."""

    def __init__(
        self, names: tuple[str, ...], arrays: Arrays, places: PlaceTable, law: Arrays, bind: Callable[[Filter], Filter]
    ) -> None:
        self._names, self._arrays, self._places, self._law, self._bind = names, arrays, places, law, bind
        self.decoded: dict[int, ExactItem] = {}

    def __len__(self) -> int:
        return len(self._arrays["op_of"])

    def __getitem__(self, at: Any) -> Any:
        made = self.decoded.get(at)
        if made is None:
            if not 0 <= at < len(self):
                msg = f"item `{at}` is not among the {len(self)}"
                raise IndexError(msg)
            made = self.decoded[at] = self._decode(at)
        return made

    def _decode(self, at: int) -> ExactItem:
        place = int(self._arrays["place_of"][at])
        if place >= 0:
            name = self._names[self._arrays["name_of"][at]]
            return PlaceItem(name, int(self._arrays["op_of"][at]), self._places[place])
        start = self._law["start"]
        text = self._law["blob"][start[at] : start[at + 1]].tobytes().decode()
        return LawItem(self._bind(parse(text, notation="json")))


# Parts: what is dead -------------------------------------------------------------------------------


def collect_deleted(parts: Iterable[LiveSegment]) -> Arrays:
    """Return the dead slots of the parts that have some, by the number of the part."""
    return {
        str(number): np.flatnonzero(part.deleted).astype(np.uint32)
        for number, part in enumerate(parts)
        if part.deleted is not None and part.deleted_count
    }


def build_parts(segments: Sequence[Segment], dead: Arrays) -> list[LiveSegment]:
    """Return segments as parts, with their dead."""
    none = np.zeros(0, np.uint32)
    return [LiveSegment(segment).delete_slots(dead.get(str(number), none)) for number, segment in enumerate(segments)]
