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

from tidings.engine.compile.code_spaces import packed, restored
from tidings.engine.compile.columns import Column, View
from tidings.engine.compile.row_table import Literals
from tidings.engine.compile.source_text import Sources
from tidings.engine.exact.exact_checks import Item, LawItem, PlaceItem, Second
from tidings.engine.exact.forest import Forest
from tidings.engine.exact.place_tests import Places
from tidings.engine.exact.text_automaton import Automaton
from tidings.engine.ids import Ids
from tidings.engine.index.builder import Index
from tidings.engine.readonly import frozen
from tidings.engine.segment import Segment, Trees
from tidings.engine.state import Part
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


def arrays_of(segment: Segment) -> Arrays:
    """Return all arrays of a segment by name; with `description_of`, all there is to it."""
    known = _kept.get(segment)
    if known is not None:
        return known
    found: Arrays = {}
    for name in GROUPS:
        found |= _named(name, getattr(segment.index, name)._asdict())
    rest = [one.name for one in dataclasses.fields(Index) if one.name not in GROUPS]
    found |= _named("index", {name: getattr(segment.index, name) for name in rest})
    for number, space in enumerate(segment.spaces):
        found |= _named(f"space.{number}", space.arrays())
    second = segment.second
    found |= _named("second", {name: getattr(second, name) for name in SECOND})
    blob, start = packed([_law(item) for item in second.items])
    found |= _named("law", {"blob": blob, "start": start})
    found |= _named("places", second.places.arrays())
    for number, automaton in enumerate(segment.automata.values()):
        found |= _named(f"automaton.{number}", automaton.arrays())
    for prefix, trees in (("", segment.trees), ("asked.", segment.asked)):
        if trees is not None:
            found |= _named(f"{prefix}leaves", {name: getattr(trees.leaves, name) for name in LEAVES})
            found |= _named(f"{prefix}trees", {name: getattr(trees, name) for name in TREES})
            found |= _named(f"{prefix}forest", trees.forest.arrays())
    found |= _named("ids", segment.ids.arrays())
    found |= _named("sources", segment.sources.arrays())
    return found


def _named(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def _law(item: Item) -> bytes:
    """Return what the law decides as JSON; a place is kept otherwise."""
    return render(item.filter, notation="json").encode() if isinstance(item, LawItem) else b""


def description_of(segment: Segment) -> dict[str, Any]:
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
        "places": list(segment.second.names),
        "patterns": list(segment.automata),
        "choice": dict(segment.choice),
    }


# Putting together ----------------------------------------------------------------------------------


def segment_of(
    description: Mapping[str, Any],
    arrays: Arrays,
    bind: Callable[[Filter], Filter],
    units: Mapping[str, str] = NO_UNITS,
) -> Segment:
    """Return the segment of a description and arrays; `bind` gives what a filter means.

    `units` are those that filters ask of attributes, for descriptions that were written without them.
    """
    parts = _grouped(arrays)
    columns = [_column(units, *told) for told in description["columns"]]
    index: dict[str, Any] = {**{name: made(**parts[name]) for name, made in GROUPS.items()}, **parts["index"]}
    segment = Segment(
        columns=tuple(column for column, _ in columns),
        kinds=tuple(kind for _, kind in columns),
        spaces=tuple(restored(parts[f"space.{number}"]) for number in range(len(columns))),
        index=Index(**index),
        second=_second(tuple(description["places"]), parts, bind),
        automata={
            name: Automaton.of(parts[f"automaton.{number}"]) for number, name in enumerate(description["patterns"])
        },
        trees=_trees(parts, ""),
        asked=_trees(parts, "asked."),
        ids=Ids.of_arrays(parts["ids"]),
        sources=Sources.of_arrays(parts["sources"]),
        choice=dict(description["choice"]),
    )
    _kept[segment] = arrays
    return segment


def _column(
    units: Mapping[str, str], attribute: str, view: str, tree: str | None, own: str | None, kind: str, *unit: str | None
) -> tuple[Column, Kind]:
    """Read one column's words; without a word for the unit, all filters asked the attribute for the same one."""
    known = unit[0] if unit else units.get(attribute) if view == View.NUMBER else None
    return Column(attribute, View(view), tree, None if own is None else Kind(own), known), Kind(kind)


def _grouped(arrays: Arrays) -> dict[str, Arrays]:
    found: dict[str, Arrays] = {}
    for name, array in arrays.items():
        group, _, last = name.rpartition(".")
        found.setdefault(group, {})[last] = frozen(array)
    return found


def _second(names: tuple[str, ...], parts: dict[str, Arrays], bind: Callable[[Filter], Filter]) -> Second:
    arrays, places = parts["second"], Places.of(parts["places"])
    items = _Items(names, arrays, places, parts["law"], bind)
    return Second(items=items, places=places, names=names, **{name: arrays[name] for name in SECOND})


def _trees(parts: dict[str, Arrays], prefix: str) -> Trees | None:
    if f"{prefix}trees" not in parts:
        return None
    leaves, forest = Literals(**parts[f"{prefix}leaves"]), Forest.of(parts[f"{prefix}forest"])
    return Trees(leaves=leaves, forest=forest, **parts[f"{prefix}trees"])


class _Items(Sequence[Item]):
    """Second-phase items, each made when it is first asked for."""

    def __init__(
        self, names: tuple[str, ...], arrays: Arrays, places: Places, law: Arrays, bind: Callable[[Filter], Filter]
    ) -> None:
        self._names, self._arrays, self._places, self._law, self._bind = names, arrays, places, law, bind
        self._made: dict[int, Item] = {}

    def __len__(self) -> int:
        return len(self._arrays["op_of"])

    def __getitem__(self, at: Any) -> Any:
        made = self._made.get(at)
        if made is None:
            if not 0 <= at < len(self):
                msg = f"item `{at}` is not among the {len(self)}"
                raise IndexError(msg)
            made = self._made[at] = self._item(at)
        return made

    def _item(self, at: int) -> Item:
        place = int(self._arrays["place_of"][at])
        if place >= 0:
            name = self._names[self._arrays["name_of"][at]]
            return PlaceItem(name, int(self._arrays["op_of"][at]), self._places[place])
        start = self._law["start"]
        text = self._law["blob"][start[at] : start[at + 1]].tobytes().decode()
        return LawItem(self._bind(parse(text, notation="json")))


# Parts: what is dead -------------------------------------------------------------------------------


def dead_of(parts: Iterable[Part]) -> Arrays:
    """Return the dead slots of the parts that have some, by the number of the part."""
    return {
        str(number): np.flatnonzero(part.dead).astype(np.uint32)
        for number, part in enumerate(parts)
        if part.dead is not None and part.deaths
    }


def parts_of(segments: Sequence[Segment], dead: Arrays) -> list[Part]:
    """Return segments as parts, with their dead."""
    none = np.zeros(0, np.uint32)
    return [Part(segment).without(dead.get(str(number), none)) for number, segment in enumerate(segments)]
