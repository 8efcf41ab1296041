"""Arrow tables into columns, without making rows.

Every attribute that is declared or that filters ask for is looked up once in the table and read as a whole
(`held.py`), once for each kind that is asked of it. Rows that hold something the reader would refuse are left to the
reader, which says why; all others are plain. A table of a shape that is not read at once goes row by row: maps, lists
in lists, arrays of records, attributes that are derived, or whose unit stands in another column. Columns that nobody
declares or asks for are not touched.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t
from numpy.typing import NDArray

from tidings.engine.compile.columns import Column, EventColumn, EventColumns, View, to_typed_attribute
from tidings.engine.events.arrow_attribute import AttributeValues, SharedDictionary, SourceColumn, merge_columns
from tidings.engine.events.arrow_points import to_points
from tidings.engine.events.arrow_values import (
    ArrayValues,
    Mask,
    NotPlain,
    ReadCache,
    find_present,
    find_valid,
    mark_unreadable,
    read_array,
)
from tidings.engine.events.event_columns import (
    FinderLookup,
    build_flags,
    build_pattern_column,
    counts_to_starts,
    find_patterns,
)
from tidings.model import Kind
from tidings.model.arrow_types import is_list_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tidings.algebra import ReadSpec, Requirements, Setting
    from tidings.algebra.law.mismatches import MismatchCounts
    from tidings.algebra.law.typed_attribute import TypedAttribute

_UNSEEN = (View.EXISTS, View.NULL)


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of a table's `plain` rows, in their order; the `odd` rows are for the reader."""

    batch: EventColumns
    plain: NDArray[np.int64]
    odd: NDArray[np.int64]


def build_table_columns(
    table: pa.Table | pa.RecordBatch,
    required: Requirements,
    *,
    wanted: Iterable[Column],
    setting: Setting,
    automata: FinderLookup,
    mismatches: MismatchCounts | None = None,
) -> TableColumns | None:
    """Return what reading every row and `columns_of` would give, or nothing where the rows must be read.

    Values of plain rows that could not be read as they are asked for are counted in `mismatches`.
    """
    columns: dict[TypedAttribute, list[Column]] = {}
    for column in wanted:
        columns.setdefault(to_typed_attribute(column), []).append(column)
    every = np.arange(table.num_rows, dtype=np.int64)
    if not len(every):
        return TableColumns({}, every, every)
    try:
        fields = _TableFields(table)
        needs = {**_expand_wildcards(table.schema, required), **required.attributes}
        return _TableReader(fields, needs, columns, setting).read(every, automata, mismatches)
    except (NotPlain, pa.ArrowNotImplementedError):  # Arrow cannot do everything with its younger types
        return None


def _expand_wildcards(schema: pa.Schema, required: Requirements) -> dict[str, tuple[ReadSpec, ...]]:
    """Return the needs of the columns that a declaration `prefix.*` speaks for."""
    if not required.wildcards:
        return {}
    names = [name for field in schema for name in _iterate_names(field)]
    return {name: (need,) for prefix, need in required.wildcards for name in names if name.startswith(f"{prefix}.")}


def _iterate_names(field: pa.Field, prefix: str = "") -> Iterator[str]:
    """Yield the dotted names of a column and of the fields inside it."""
    name = prefix + field.name
    yield name
    if t.is_map(field.type):
        raise NotPlain  # its names stand in the rows
    inner = field.type.value_type if is_list_type(field.type) else field.type
    if t.is_struct(inner):
        for at in range(inner.num_fields):
            yield from _iterate_names(inner.field(at), f"{name}.")


class _TableFields(dict[str, pa.Array]):
    """The columns of a table by name, each in one piece, taken from the table when first asked for."""

    def __init__(self, table: pa.Table | pa.RecordBatch) -> None:
        super().__init__()
        self._table = table
        self._places = {name: place for place, name in enumerate(table.schema.names)}

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __missing__(self, name: str) -> pa.Array:
        found = self._table.column(self._places[name])
        self[name] = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
        return self[name]


class _TableReader:
    """A table, and what is asked of it."""

    def __init__(
        self,
        fields: Mapping[str, pa.Array],
        needs: Mapping[str, tuple[ReadSpec, ...]],
        columns: dict[TypedAttribute, list[Column]],
        setting: Setting,
    ) -> None:
        self.fields, self.needs, self.columns, self.setting = fields, needs, columns, setting
        self._pieces: dict[tuple[str, ReadSpec], list[SourceColumn]] = {}
        self._words: dict[ReadSpec, SharedDictionary] = {}
        self._memo: ReadCache = {}
        # What feeds several attributes is read once for all of them, whoever asks first.
        trees = setting.ontology.attribute_trees.values()
        self._fed = {name for tree in trees if len(tree) > 1 for name in tree.names} & needs.keys()

    def read(self, every: NDArray[np.int64], automata: FinderLookup, mismatches: MismatchCounts | None) -> TableColumns:
        """Read all needed attributes, and show those of the plain rows to the views."""
        ways = [
            (need.keys(name), need, self.read_attribute(name, need)) for name, of in self.needs.items() for need in of
        ]
        found = [(keys, need, each) for keys, need, each in ways if each is not None]
        odd = np.zeros(len(every), dtype=bool)
        for _, _, each in found:
            if (refused := each.find_refused()) is not None:
                odd |= refused
        plain, odds = every[~odd], every[odd]
        if len(odds):
            found = [(keys, need, each.select(~odd, len(plain))) for keys, need, each in found]
        batch: EventColumns = {}
        for keys, need, each in found:
            if mismatches is not None and not need.strict and need.kind is not None:
                each.tally_mismatches(keys[0], mismatches)
            for column in [column for key in keys for column in self.columns.get(key, ())]:
                made = _build_view(column, each, self.setting, automata)
                if made is not None:
                    batch[column] = made
        return TableColumns(batch, plain, odds)

    def read_attribute(self, name: str, need: ReadSpec) -> AttributeValues | None:
        """Read what the table holds for one attribute in one way, if anything."""
        if name in self.setting.ontology.derived:
            raise NotPlain
        if need.unit_from is not None and self.find_leaves(need.unit_from):
            raise NotPlain
        if name in self._fed:
            return self.read_merged(name, need, self.setting.ontology.sources(name))
        leaves = self.find_leaves(name)
        if len(leaves) > 1:
            raise NotPlain
        return self.read_column(name, need, *leaves[0]) if leaves else None

    def read_column(
        self, name: str, need: ReadSpec, source: str, array: pa.Array, alive: Mask | None
    ) -> AttributeValues:
        """Read the column that feeds an attribute."""
        null = _find_nulls(array, alive)
        if alive is not None:
            array = array.take(pa.array(np.arange(len(array)), mask=~alive))
        if need.kind is Kind.RECORD:
            return AttributeValues(self.read_record(name, need, array), len(array), null)
        if is_list_type(array.type):
            return self.read_lists(name, need, array, source, null)
        return AttributeValues(self.read_values(name, need, array, source), len(array), null)

    def read_merged(self, name: str, need: ReadSpec, sources: tuple[str, ...]) -> AttributeValues | None:
        """Read all columns that feed an attribute, each once for all attributes that are read alike."""
        if need.kind is Kind.RECORD:
            raise NotPlain
        pieces: list[SourceColumn] = []
        alike = replace(need, several=True)  # how many values an event has is seen when all columns are there
        for source in sources:
            if (source, alike) not in self._pieces:
                self._pieces[source, alike] = list(self._read_source(name, alike, source))
            pieces += self._pieces[source, alike]
        if not need.several and any(piece.attribute.owners is not None for piece in pieces):
            raise NotPlain  # a list of one is refused too
        return merge_columns(pieces, several=need.several, words=self._words[alike]) if pieces else None

    def _read_source(self, name: str, need: ReadSpec, source: str) -> Iterator[SourceColumn]:
        words = self._words.setdefault(need, SharedDictionary())
        for array, alive in _iterate_leaves(self.fields, tuple(source.split(".")), None):
            yield SourceColumn.from_attribute(self.read_column(name, need, source, array, alive), words)

    def read_values(self, name: str, need: ReadSpec, array: pa.Array, source: str) -> ArrayValues:
        views = [column.view for key in need.keys(name) for column in self.columns.get(key, ())]
        seen = name in self._fed or any(view not in _UNSEEN for view in views)
        _refuse_strange(array.type)
        return read_array(array, source, need=need, setting=self.setting, seen=seen, memo=self._memo)

    def read_lists(self, name: str, need: ReadSpec, array: pa.Array, source: str, null: Mask | None) -> AttributeValues:
        """Read a column of lists: their elements are the values, and where there is one value a list is bad."""
        if is_list_type(array.type.value_type) or (need.kind is Kind.PLACE and not t.is_struct(array.type.value_type)):
            raise NotPlain
        if not need.several:
            return AttributeValues(
                ArrayValues(np.zeros(len(array), dtype=bool)),
                len(array),
                null,
                refused=mark_unreadable(array).unreadable,
            )
        counts = pc.list_value_length(array).fill_null(0).to_numpy()
        owners = np.repeat(np.arange(len(array)), counts)
        read = self.read_values(name, need, pc.list_flatten(array), source)
        found = AttributeValues(read, len(array), null, owners=owners)
        return (
            found
            if read.present is None or read.unreadable is not None
            else found.select(np.ones(len(array), dtype=bool), len(array))
        )

    def read_record(self, name: str, need: ReadSpec, array: pa.Array) -> ArrayValues:
        """Read a record; the attributes inside it are needs of their own, and read as such."""
        if not t.is_struct(array.type):
            if t.is_nested(array.type):
                raise NotPlain
            return mark_unreadable(array) if need.strict else ArrayValues(find_present(array))
        prefix, ontology = f"{name}.", self.setting.ontology
        inside = [other[len(prefix) :] for other in self.needs if other.startswith(prefix)]
        if not array.type.num_fields or any(
            other in ontology.derived or ontology.sources(other) != (other,) for other in inside
        ):
            raise NotPlain
        return ArrayValues(find_valid(array))

    def find_leaves(self, name: str) -> list[tuple[str, pa.Array, Mask | None]]:
        """Return every column that feeds the attribute, and where the record around it is there."""
        sources = self.setting.ontology.sources(name)
        return [
            (s, array, alive)
            for s in sources
            for array, alive in _iterate_leaves(self.fields, tuple(s.split(".")), None)
        ]


def _iterate_leaves(
    fields: Mapping[str, pa.Array], path: tuple[str, ...], alive: Mask | None
) -> Iterator[tuple[pa.Array, Mask | None]]:
    """Yield what stands at a dotted path, through records and names that hold dots; see `reading.leaves`."""
    for split in range(1, len(path) + 1):
        key = ".".join(path[:split])
        if key not in fields:
            continue
        array = fields[key]
        if split == len(path):
            yield array, alive
        elif t.is_struct(array.type):
            _refuse_strange(array.type)
            there = find_valid(array)
            around = there if alive is None else alive if there is None else alive & there
            inside = {array.type.field(at).name: array.field(at) for at in range(array.type.num_fields)}
            yield from _iterate_leaves(inside, path[split:], around)
        elif t.is_nested(array.type) or t.is_dictionary(array.type):
            raise NotPlain


def _find_nulls(array: pa.Array, alive: Mask | None) -> Mask | None:
    """Return where there is an explicit null, or NaN: not where the whole record is missing."""
    present = find_present(array)
    if present is None:
        return None
    return ~present if alive is None else ~present & alive


def _refuse_strange(told: pa.DataType) -> None:
    """Refuse types whose values Python sees otherwise than Arrow keeps them."""
    if t.is_struct(told):
        names = [told.field(at).name for at in range(told.num_fields)]
        if len(set(names)) == len(names) and names:
            return
    elif t.is_dictionary(told):
        if not t.is_nested(told.value_type):
            return
    elif not t.is_nested(told) and not isinstance(told, pa.BaseExtensionType) and not t.is_run_end_encoded(told):
        return
    raise NotPlain


# --- views ----------------------------------------------------------------------------------------


def _build_view(column: Column, found: AttributeValues, setting: Setting, automata: FinderLookup) -> EventColumn | None:
    if column.view is View.NULL:
        return None if found.null is None else build_flags(found.null)
    if column.view is View.EXISTS:
        return build_flags(_find_existing(found))
    if column.view is View.PATTERNS:
        return _build_patterns(column, found, automata)
    seen = to_points(column, found.values, setting)
    if seen is None or not len(seen):
        return None
    starts = None if found.owners is None else counts_to_starts(np.bincount(found.owners, minlength=found.count))
    return EventColumn(seen, starts=starts)


def _find_existing(found: AttributeValues) -> Mask:
    if found.owners is not None:
        return np.bincount(found.owners, minlength=found.count) > 0
    return np.ones(found.count, dtype=bool) if found.values.present is None else found.values.present


def _build_patterns(column: Column, found: AttributeValues, automata: FinderLookup) -> EventColumn | None:
    index, words = found.values.index, found.values.distinct
    if index is None:
        return None
    present = index >= 0
    if not present.any():
        return None
    owners = np.arange(found.count) if found.owners is None else found.owners
    # What is no text satisfies no pattern: the last place.
    readable = np.array([isinstance(word, str) for word in words])
    ids = find_patterns([word if isinstance(word, str) else "" for word in words], automata(column))
    index = np.where(readable[index], index, -1)[present]
    return build_pattern_column(found.count, owners[present], index=index, found=ids)
