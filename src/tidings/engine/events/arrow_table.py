"""Arrow tables into columns, without making rows.

Every attribute that is declared or that filters name is looked up once in the table and read as a whole
(`events.arrow_values`), once for each kind that filters read it as. Rows with a value that must be refused are left to
the row reader, which gives the reason; all others are plain. Some shapes are read row by row altogether: maps, lists of
lists, arrays of records, derived attributes, and attributes whose unit is in another column. Columns that no
declaration and no filter names are not touched.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from tidings.engine.compile.columns import Column, EventColumns, View, to_typed_attribute
from tidings.engine.events import arrow_attribute, arrow_values
from tidings.engine.events.arrow_attribute import AttributeValues, SharedDictionary, SourceColumn, merge_columns
from tidings.engine.events.arrow_values import ArrayValues, NotPlain
from tidings.kernels.array_types import BoolArray, IntArray
from tidings.model import Kind
from tidings.model.arrow_types import is_list_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tidings.algebra import ReadSpec, Requirements, Setting
    from tidings.algebra.law.mismatches import MismatchCounts
    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.engine.events.event_columns import FinderLookup

_UNSEEN = (View.EXISTS, View.NULL)


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of a table's `plain` rows, in their order; the `odd` rows must be read one by one."""

    batch: EventColumns
    plain: IntArray
    odd: IntArray


def build_table_columns(
    table: pa.Table | pa.RecordBatch,
    required: Requirements,
    *,
    wanted: Iterable[Column],
    setting: Setting,
    automata: FinderLookup,
    mismatches: MismatchCounts | None = None,
) -> TableColumns | None:
    """Return the columns that `event_columns.build_columns` would make row by row; None if some column needs that.

    Values of plain rows that could not be read as the kind that filters want are counted in `mismatches`.
    """
    columns: dict[TypedAttribute, list[Column]] = {}
    for column in wanted:
        columns.setdefault(to_typed_attribute(column), []).append(column)
    all_rows = np.arange(table.num_rows, dtype=np.int64)
    if not len(all_rows):
        return TableColumns({}, all_rows, all_rows)
    try:
        fields = _TableFields(table)
        names = [name for field in table.schema for name in _iterate_names(field)] if required.wildcards else []
        declared = {
            name: (need,) for prefix, need in required.wildcards for name in names if name.startswith(f"{prefix}.")
        }  # what a declaration `prefix.*` covers
        needs = {**declared, **required.attributes}
        return _TableReader(fields, needs, columns, setting).read(all_rows, automata, mismatches)
    except (NotPlain, pa.ArrowNotImplementedError):  # Arrow cannot do everything with its younger types
        return None


def _iterate_names(field: pa.Field, prefix: str = "") -> Iterator[str]:
    """Yield the dotted names of a column and of the fields inside it."""
    name = prefix + field.name
    yield name
    if t.is_map(field.type):
        raise NotPlain  # its keys are in the rows
    inner = field.type.value_type if is_list_type(field.type) else field.type
    if t.is_struct(inner):
        for number in range(inner.num_fields):
            yield from _iterate_names(inner.field(number), f"{name}.")


class _TableFields(dict[str, pa.Array]):
    """The columns of a table by name, each in one piece, taken from the table when first needed."""

    def __init__(self, table: pa.Table | pa.RecordBatch) -> None:
        super().__init__()
        self._table = table
        self._places = {name: place for place, name in enumerate(table.schema.names)}

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __missing__(self, name: str) -> pa.Array:
        column = self._table.column(self._places[name])
        self[name] = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return self[name]


class _TableReader:
    """Reads the attributes of a table that filters need."""

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
        self._memo: arrow_values.ReadCache = {}
        # A column that feeds several attributes is read once for all of them.
        trees = setting.ontology.attribute_trees.values()
        self._fed = {name for tree in trees if len(tree) > 1 for name in tree.names} & needs.keys()

    def read(self, all_rows: IntArray, automata: FinderLookup, mismatches: MismatchCounts | None) -> TableColumns:
        """Read all needed attributes, and build the columns of the plain rows."""
        attributes = [
            (need.list_keys(name), need, attribute)
            for name, needs in self.needs.items()
            for need in needs
            if (attribute := self.read_attribute(name, need)) is not None
        ]
        odd = np.zeros(len(all_rows), dtype=bool)
        for _, _, attribute in attributes:
            if (refused := attribute.find_refused()) is not None:
                odd |= refused
        plain_rows, odd_rows = all_rows[~odd], all_rows[odd]
        if len(odd_rows):
            attributes = [(keys, need, attribute.select(~odd, len(plain_rows))) for keys, need, attribute in attributes]
        batch: EventColumns = {}
        for keys, need, attribute in attributes:
            if mismatches is not None and not need.strict and need.kind is not None:
                attribute.tally_mismatches(keys[0], mismatches)
            for column in [column for key in keys for column in self.columns.get(key, ())]:
                event_column = arrow_attribute.build_view(column, attribute, self.setting, automata)
                if event_column is not None:
                    batch[column] = event_column
        return TableColumns(batch, plain_rows, odd_rows)

    def read_attribute(self, name: str, need: ReadSpec) -> AttributeValues | None:
        """Read an attribute as one kind; None: the table has no column for it."""
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
        self, name: str, need: ReadSpec, source: str, array: pa.Array, alive: BoolArray | None
    ) -> AttributeValues:
        """Read one column that feeds an attribute; `alive` is where the record around it exists."""
        present = arrow_values.find_present(array)
        null = None if present is None else ~present  # an explicit null, or NaN
        if alive is not None:
            null = None if null is None else null & alive
            array = array.take(pa.array(np.arange(len(array)), mask=~alive))
        if need.kind is Kind.RECORD:
            return AttributeValues(self.read_record(name, need, array), len(array), null)
        if is_list_type(array.type):
            return self.read_lists(name, need, array, source, null)
        return AttributeValues(self.read_values(name, need, array, source), len(array), null)

    def read_merged(self, name: str, need: ReadSpec, sources: tuple[str, ...]) -> AttributeValues | None:
        """Read all columns that feed an attribute, each once for all attributes that are read in the same way."""
        if need.kind is Kind.RECORD:
            raise NotPlain
        pieces: list[SourceColumn] = []
        any_number = replace(need, several=True)  # how many values an event has is known once all columns are read
        words = self._words.setdefault(any_number, SharedDictionary())
        for source in sources:
            if (source, any_number) not in self._pieces:
                leaves = _iterate_leaves(self.fields, tuple(source.split(".")), None)
                columns = [self.read_column(name, any_number, source, array, alive) for array, alive in leaves]
                self._pieces[source, any_number] = [SourceColumn.from_attribute(column, words) for column in columns]
            pieces += self._pieces[source, any_number]
        if not need.several and any(piece.attribute.owners is not None for piece in pieces):
            raise NotPlain  # a list of one is refused too
        return merge_columns(pieces, several=need.several, words=words) if pieces else None

    def read_values(self, name: str, need: ReadSpec, array: pa.Array, source: str) -> ArrayValues:
        views = [column.view for key in need.list_keys(name) for column in self.columns.get(key, ())]
        seen = name in self._fed or any(view not in _UNSEEN for view in views)
        _refuse_strange(array.type)
        return arrow_values.read_array(array, source, need=need, setting=self.setting, seen=seen, memo=self._memo)

    def read_lists(
        self, name: str, need: ReadSpec, array: pa.Array, source: str, null: BoolArray | None
    ) -> AttributeValues:
        """Read a column of lists, whose elements are the values; lists are refused where an attribute has one value."""
        if is_list_type(array.type.value_type) or (need.kind is Kind.PLACE and not t.is_struct(array.type.value_type)):
            raise NotPlain
        if not need.several:
            nothing = ArrayValues(np.zeros(len(array), dtype=bool))
            return AttributeValues(nothing, len(array), null, refused=arrow_values.mark_unreadable(array).unreadable)
        counts = pc.list_value_length(array).fill_null(0).to_numpy()
        owners = np.repeat(np.arange(len(array)), counts)
        values = self.read_values(name, need, pc.list_flatten(array), source)
        attribute = AttributeValues(values, len(array), null, owners=owners)
        if values.present is None or values.unreadable is not None:
            return attribute
        return attribute.select(np.ones(len(array), dtype=bool), len(array))

    def read_record(self, name: str, need: ReadSpec, array: pa.Array) -> ArrayValues:
        """Read a record; the attributes inside it are needs of their own, and read as such."""
        if not t.is_struct(array.type):
            if t.is_nested(array.type):
                raise NotPlain
            return arrow_values.mark_unreadable(array) if need.strict else ArrayValues(arrow_values.find_present(array))
        prefix, ontology = f"{name}.", self.setting.ontology
        inside = [other[len(prefix) :] for other in self.needs if other.startswith(prefix)]
        if not array.type.num_fields or any(
            other in ontology.derived or ontology.sources(other) != (other,) for other in inside
        ):
            raise NotPlain
        return ArrayValues(arrow_values.find_valid(array))

    def find_leaves(self, name: str) -> list[tuple[str, pa.Array, BoolArray | None]]:
        """Return every column that feeds the attribute, and where the record around it exists."""
        return [
            (source, array, alive)
            for source in self.setting.ontology.sources(name)
            for array, alive in _iterate_leaves(self.fields, tuple(source.split(".")), None)
        ]


def _iterate_leaves(
    fields: Mapping[str, pa.Array], path: tuple[str, ...], alive: BoolArray | None
) -> Iterator[tuple[pa.Array, BoolArray | None]]:
    """Yield the arrays at a dotted path, through records and names with dots (as `algebra.law.raw_values` does)."""
    for split in range(1, len(path) + 1):
        key = ".".join(path[:split])
        if key not in fields:
            continue
        array = fields[key]
        if split == len(path):
            yield array, alive
        elif t.is_struct(array.type):
            _refuse_strange(array.type)
            exists = arrow_values.find_valid(array)
            around = exists if alive is None else alive if exists is None else alive & exists
            inside = {array.type.field(number).name: array.field(number) for number in range(array.type.num_fields)}
            yield from _iterate_leaves(inside, path[split:], around)
        elif t.is_nested(array.type) or t.is_dictionary(array.type):
            raise NotPlain


def _refuse_strange(type_: pa.DataType) -> None:
    """Refuse types whose Python values differ from what Arrow stores."""
    if t.is_struct(type_):
        names = [type_.field(number).name for number in range(type_.num_fields)]
        if len(set(names)) == len(names) and names:
            return
    elif t.is_dictionary(type_):
        if not t.is_nested(type_.value_type):
            return
    elif not t.is_nested(type_) and not isinstance(type_, pa.BaseExtensionType) and not t.is_run_end_encoded(type_):
        return
    raise NotPlain
