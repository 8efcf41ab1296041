"""A segment as flat arrays and a little description, and back: for snapshots and for pickles.

The arrays are those the segment matches with, under names like `rows.start` and `space.3.ends`; they come from the
fields of the classes here, so renaming a field changes the format. Opening reads none of them: filters, areas and law
items are decoded when they are first needed, so a segment that is mapped from a file costs milliseconds to open,
whatever its size.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from tidings.engine.arrays import freeze, pack_bytes
from tidings.engine.compile.code_spaces import open_space
from tidings.engine.compile.columns import Column, View
from tidings.engine.compile.row_table import Literals
from tidings.engine.compile.source_text import FilterSources
from tidings.engine.exact.exact_checks import ExactChecks, ExactItem, LawItem, PlaceItem
from tidings.engine.exact.place_tests import PlaceTable
from tidings.engine.exact.text_automaton import TextAutomaton
from tidings.engine.exact.tree_forest import TreeForest
from tidings.engine.ids import Ids
from tidings.engine.index.builder import SegmentIndex
from tidings.engine.segment import FilterTrees, Segment
from tidings.engine.state import LiveSegment
from tidings.kernels.match.layout import IndexPaths, IndexRows, IndexTiles
from tidings.lang import parse_rendered, render
from tidings.model import Filter, Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidings.kernels.array_types import NamedArrays

GROUPS: dict[str, Any] = {"rows": IndexRows, "paths": IndexPaths, "tiles": IndexTiles}
"""The fields of an index that are named groups of arrays; the others are arrays."""

# Names that files have had since their format began, and that are called otherwise in the code.
SECOND = ("row", "item", "place_of", "name_of", "op_of")  # of the exact checks: the group `second`
TREES = ("column_start", "items")
CANDIDATES = "asked."  # before the groups of candidate trees

_opened: WeakKeyDictionary[Segment, NamedArrays] = WeakKeyDictionary()
"""The arrays that segments were opened from: saving one again takes the same arrays, and decodes nothing."""


def segment_to_arrays(segment: Segment) -> NamedArrays:
    """Return all arrays of a segment by name; with `describe_segment`, all there is to it."""
    opened = _opened.get(segment)
    if opened is not None:
        return opened
    groups: dict[str, Mapping[str, NDArray[Any]]] = {}
    groups |= {name: getattr(segment.index, name)._asdict() for name in GROUPS}
    rest = [field.name for field in dataclasses.fields(SegmentIndex) if field.name not in GROUPS]
    groups["index"] = {name: getattr(segment.index, name) for name in rest}
    groups |= {f"space.{number}": space.to_arrays() for number, space in enumerate(segment.spaces)}
    checks = segment.exact_checks
    groups["second"] = {name: getattr(checks, name) for name in SECOND}
    laws = [render(item.filter, notation="json") if isinstance(item, LawItem) else "" for item in checks.items]
    blob, start = pack_bytes([law.encode() for law in laws])
    groups["law"] = {"blob": blob, "start": start}
    groups["places"] = checks.places.to_arrays()
    groups |= {
        f"automaton.{number}": automaton.to_arrays() for number, automaton in enumerate(segment.automata.values())
    }
    for prefix, trees in (("", segment.trees), (CANDIDATES, segment.candidate_trees)):
        if trees is not None:
            groups[f"{prefix}leaves"] = trees.leaves._asdict()
            groups[f"{prefix}trees"] = {name: getattr(trees, name) for name in TREES}
            groups[f"{prefix}forest"] = trees.forest.to_arrays()
    groups |= {"ids": segment.ids.to_arrays(), "sources": segment.sources.to_arrays()}
    return {f"{group}.{name}": array for group, arrays in groups.items() for name, array in arrays.items()}


def describe_segment(segment: Segment) -> dict[str, Any]:
    """Return what is not in the arrays, in plain values that JSON can hold."""
    return {
        "columns": [
            [
                column.attribute,
                column.view.value,
                column.tree,
                column.kind and column.kind.value,
                column.value_kind.value,
                column.unit,
            ]
            for column in segment.columns
        ],
        "places": list(segment.exact_checks.names),
        "patterns": list(segment.automata),
        "choice": dict(segment.choice),
    }


def open_segment(
    description: Mapping[str, Any],
    arrays: NamedArrays,
    bind: Callable[[Filter], Filter],
    units: Mapping[str, str] = MappingProxyType({}),
) -> Segment:
    """Return the segment of a description and arrays; `bind` resolves the names of a filter.

    `units` are those that filters read attributes in, for descriptions of an older version, which lack them.
    """
    parts = _group_arrays(arrays)
    columns = tuple(_parse_column(units, *words) for words in description["columns"])
    names, places = tuple(description["places"]), PlaceTable.from_arrays(parts["places"])
    items = _LazyItems(names, parts, places, bind)
    index: dict[str, Any] = {**{name: group(**parts[name]) for name, group in GROUPS.items()}, **parts["index"]}
    segment = Segment(
        columns=columns,
        spaces=tuple(open_space(parts[f"space.{number}"]) for number in range(len(columns))),
        index=SegmentIndex(**index),
        exact_checks=ExactChecks(items, places=places, names=names, **{name: parts["second"][name] for name in SECOND}),
        automata={
            name: TextAutomaton(parts[f"automaton.{number}"]) for number, name in enumerate(description["patterns"])
        },
        trees=_open_trees(parts, ""),
        candidate_trees=_open_trees(parts, CANDIDATES),
        ids=Ids.from_arrays(parts["ids"]),
        sources=FilterSources.from_arrays(parts["sources"]),
        choice=dict(description["choice"]),
    )
    _opened[segment] = arrays
    return segment


def _parse_column(
    units: Mapping[str, str], attribute: str, view: str, tree: str | None, kind: str | None, _: str, *unit: str | None
) -> Column:
    """Parse the words of one column; an older version wrote no unit, and all filters read the attribute in the same."""
    column_unit = unit[0] if unit else units.get(attribute) if view == View.NUMBER else None
    return Column(attribute, View(view), tree, None if kind is None else Kind(kind), column_unit)


def _group_arrays(arrays: NamedArrays) -> dict[str, NamedArrays]:
    groups: dict[str, NamedArrays] = {}
    for name, array in arrays.items():
        group, _, last = name.rpartition(".")
        groups.setdefault(group, {})[last] = freeze(array)
    return groups


def _open_trees(parts: dict[str, NamedArrays], prefix: str) -> FilterTrees | None:
    if f"{prefix}trees" not in parts:
        return None
    leaves, forest = Literals(**parts[f"{prefix}leaves"]), TreeForest.from_arrays(parts[f"{prefix}forest"])
    return FilterTrees(leaves=leaves, forest=forest, **parts[f"{prefix}trees"])


class _LazyItems(Sequence[ExactItem]):
    """The exact checks of an opened segment, each decoded when first needed; `decoded` has those so far."""

    def __init__(
        self, names: Sequence[str], parts: dict[str, NamedArrays], places: PlaceTable, bind: Callable[[Filter], Filter]
    ) -> None:
        self._names, self._arrays, self._law = names, parts["second"], parts["law"]
        self._places, self._bind = places, bind
        self.decoded: dict[int, ExactItem] = {}

    def __len__(self) -> int:
        return len(self._arrays["op_of"])

    def __getitem__(self, index: Any) -> Any:
        item = self.decoded.get(index)
        if item is None:
            if not 0 <= index < len(self):
                msg = f"item `{index}` is not among the {len(self)}"
                raise IndexError(msg)
            item = self.decoded[index] = self._decode(index)
        return item

    def _decode(self, index: int) -> ExactItem:
        place = int(self._arrays["place_of"][index])
        if place >= 0:
            name = self._names[self._arrays["name_of"][index]]
            return PlaceItem(name, int(self._arrays["op_of"][index]), self._places[place])
        start = self._law["start"]
        text = self._law["blob"][start[index] : start[index + 1]].tobytes().decode()
        return LawItem(self._bind(parse_rendered(text)))


def collect_deleted(parts: Iterable[LiveSegment]) -> NamedArrays:
    """Return the deleted slots of the parts that have some, by the number of the part."""
    return {
        str(number): np.flatnonzero(part.deleted).astype(np.uint32)
        for number, part in enumerate(parts)
        if part.deleted is not None and part.deleted_count
    }


def build_parts(segments: Sequence[Segment], deleted: NamedArrays) -> list[LiveSegment]:
    """Return segments with the deleted slots of `collect_deleted`."""
    none = np.zeros(0, np.uint32)
    return [
        LiveSegment(segment).delete_slots(deleted.get(str(number), none)) for number, segment in enumerate(segments)
    ]
