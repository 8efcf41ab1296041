"""The values that events bind to variables: read as the attribute is declared, else as they are; and their numbers.

Equal values have equal numbers: `1` and `1.0` are one value; text is never a number, and a boolean never either. When
few numbers are in use, they are given anew.

`ip = $x` takes one value. Several of them, a record, or anything that is not a text, number, truth value or time is no
value for a variable: the event does not satisfy that named filter, and nobody else hears of it. What an attribute
gives depends on declarations and the event alone, never on the patterns; so one number for each event and attribute
serves them all.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as t

from tidings.algebra import AttributeReader, ReadSpec, Requirements, RequirementTracker
from tidings.algebra.law.coerce import coerce
from tidings.algebra.law.raw_values import is_missing
from tidings.algebra.law.typed_attribute import Mismatch, TypedAttribute, describe_type
from tidings.errors import BadEvent
from tidings.model import Kind
from tidings.model.arrow_types import find_kind, to_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidings.concepts import Ontology, Vocabulary
    from tidings.kernels.array_types import IntArray
    from tidings.patterns.run.mismatch_counts import PatternMismatchCounts

NO_VALUE = -1
"""Stands for the number of a value where there is no value."""


@dataclass(frozen=True, slots=True)
class _Truth:
    """A boolean, which Python would take for 0 or 1."""

    value: bool


class ValueNumbers:
    """The numbers of values; tuples of values (keys of several variables) are values too."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self.values: list[Any] = list(values)
        self._numbers = {_to_canonical(value): number for number, value in enumerate(self.values)}

    def __len__(self) -> int:
        return len(self.values)

    def number(self, value: Any) -> int:
        """Return a value's number, new or known; `NO_VALUE` for no value, and for one that no variable takes."""
        if type(value) is int or (type(value) is str and value.isascii()):  # most are, and stand for themselves
            kept: Any = value
        else:
            value = value.item() if isinstance(value, np.generic) else value
            kept = None if is_missing(value) else _to_canonical(value)
        if kept is None:
            return NO_VALUE
        number = self._numbers.get(kept)
        if number is None:
            number = self._numbers[kept] = len(self.values)
            self.values.append(value)
        return number

    def number_column(self, column: pa.Array | pa.ChunkedArray) -> IntArray:
        """Return the numbers of an Arrow column of single values."""
        coded = to_dictionary(column)
        by_code = np.array([self.number(value) for value in coded.dictionary.to_pylist()] + [NO_VALUE], np.int64)
        codes = coded.indices.fill_null(len(by_code) - 1).to_numpy(zero_copy_only=False)
        return np.asarray(by_code[codes])

    def number_tuples(self, columns: list[IntArray]) -> IntArray:
        """Return the numbers of tuples whose parts are columns of numbers; `NO_VALUE` where a part is."""
        rows = np.stack(columns, axis=1)
        numbers = np.full(len(rows), NO_VALUE, np.int64)
        is_complete = (rows >= 0).all(axis=1)
        distinct, inverse = np.unique(rows[is_complete], axis=0, return_inverse=True)
        by_row = [self.number(tuple(self.values[number] for number in row)) for row in distinct.tolist()]
        numbers[is_complete] = np.array(by_row, np.int64)[inverse.reshape(-1)]
        return numbers

    def keep(self, kept: IntArray) -> ValueNumbers:
        """Return a table of the values whose numbers are in `kept` alone, numbered by their position there."""
        return ValueNumbers(self.values[number] for number in kept.tolist())


def _to_canonical(value: Any) -> Any:
    """Return the dictionary key of a value, equal for equal values; `None` for a value that no variable can take."""
    match value:
        case bool():
            return _Truth(value)
        case int() | Decimal():
            return value
        case float():
            return value if math.isfinite(value) else None
        case str():
            return value if value.isascii() or _is_encodable(value) else None
        case tuple():  # a key of several variables
            return tuple(_to_canonical(part) for part in value)
        case datetime():
            return value if value.tzinfo else value.replace(tzinfo=UTC)
        case date():
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return None


def _is_encodable(text: str) -> bool:
    """Tell whether text encodes as UTF-8; a lone surrogate does not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def to_dictionary(column: pa.Array | pa.ChunkedArray) -> pa.DictionaryArray:
    """Return an Arrow column by its distinct values."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    return column if t.is_dictionary(column.type) else column.dictionary_encode()


# Reading values ------------------------------------------------------------------------------------

_RAW = ReadSpec(Kind.OPAQUE)
"""How a value is read that nobody declares: not at all."""

_DIRECT: dict[Kind | None, tuple[type, ...]] = {
    Kind.TEXT: (str,),
    Kind.NUMBER: (int, float, Decimal),
    Kind.BOOL: (bool,),
    Kind.TIME: (datetime,),
}
"""Of each kind, the types of values that are its readings already; an undeclared attribute takes all of them."""


@dataclass(frozen=True, slots=True)
class VariableSource:
    """How a variable reads its value from an attribute; `field` is the single field that is read, where one suffices.

    Values of the types in `direct`, and columns of `direct_kinds`, are taken as they are. Numbers stay exact: only text
    is parsed.
    """

    name: str
    field: str | None
    relevant_fields: frozenset[str] | None  # those that its value depends on; None: all of them
    parses_text: bool  # as a number
    direct: frozenset[type]
    direct_kinds: frozenset[Kind | None]
    reader: AttributeReader
    key: TypedAttribute

    def read(self, fields: Mapping[str, Any], value_numbers: ValueNumbers) -> tuple[int, str]:
        """Return the number of an event's value; or `NO_VALUE` and a word for what is there instead."""
        if self.field is not None:
            raw = fields.get(self.field)
            if raw is None:
                return NO_VALUE, ""
            if type(raw) in self.direct:
                return _number_value(raw, value_numbers)
        try:
            values = self.reader.read(fields, datetime.now(UTC)).values.get(self.key, ())
        except BadEvent:  # by a declaration: filters have told of it
            return NO_VALUE, "unreadable"
        if len(values) != 1:
            return NO_VALUE, "several values" if values else ""
        value: Any = values[0]
        if self.parses_text and isinstance(value, str):
            try:
                value = coerce(value, Kind.NUMBER)
            except ValueError:
                value = Mismatch(value)
        return _number_value(str(value) if isinstance(value, IPv4Address | IPv6Address) else value, value_numbers)

    def read_table(self, table: pa.Table, value_numbers: ValueNumbers, counts: PatternMismatchCounts) -> IntArray:
        """Return the numbers of a whole table; what is there once is read once."""
        fields = [name for name in table.column_names if self.relevant_fields is None or name in self.relevant_fields]
        if not fields:
            return np.full(table.num_rows, NO_VALUE, np.int64)
        coded = None
        if self.field is not None and not t.is_nested(table.column(fields[0]).type):
            with suppress(pa.ArrowNotImplementedError):
                coded = to_dictionary(table.column(self.field))
        if coded is None:
            return self._read_rows(table.select(fields), np.ones(table.num_rows, np.int64), value_numbers, counts)
        codes = coded.indices.fill_null(len(coded.dictionary)).to_numpy(zero_copy_only=False)
        # All values of such a column are taken: only floats may be NaN or infinite, and times out of range.
        if not t.is_floating(coded.dictionary.type) and find_kind(coded.type) in self.direct_kinds - {Kind.TIME}:
            numbers = value_numbers.number_column(coded)
            counts.count(self.name, "", has_value=True, events=int((numbers >= 0).sum()))
            return numbers
        often = np.bincount(codes, minlength=len(coded.dictionary) + 1)
        by_code = self._read_rows(pa.table({self.field: coded.dictionary}), often, value_numbers, counts)
        return np.asarray(np.append(by_code, NO_VALUE)[codes])

    def _read_rows(
        self, table: pa.Table, often: IntArray, value_numbers: ValueNumbers, counts: PatternMismatchCounts
    ) -> IntArray:
        """Return the numbers of rows, where row `i` occurs in `often[i]` events."""
        numbers = np.full(table.num_rows, NO_VALUE, np.int64)
        for place, row in enumerate(to_rows(table)):
            numbers[place], instead = self.read(row, value_numbers)
            counts.count(self.name, instead, has_value=numbers[place] != NO_VALUE, events=int(often[place]))
        return numbers


def _number_value(value: Any, value_numbers: ValueNumbers) -> tuple[int, str]:
    number = value_numbers.number(value)
    if number != NO_VALUE or is_missing(value):
        return number, ""
    raw = value.raw if type(value) is Mismatch else value
    return NO_VALUE, "infinite" if isinstance(raw, float) else describe_type(raw)


class VariableReader:
    """The attributes that give variables their values."""

    def __init__(self, names: Iterable[str], vocabulary: Vocabulary) -> None:
        needs = RequirementTracker(vocabulary)
        self._sources = {name: _find_source(name, needs, vocabulary.concepts) for name in names}

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes, as patterns write them."""
        return tuple(self._sources)

    def read_row(
        self, fields: Mapping[str, Any], value_numbers: ValueNumbers, counts: PatternMismatchCounts
    ) -> list[int]:
        """Return the number of each attribute's value in one event."""
        numbers = []
        for source in self._sources.values():
            number, instead = source.read(fields, value_numbers)
            counts.count(source.name, instead, has_value=number != NO_VALUE)
            numbers.append(number)
        return numbers

    def read_table(
        self, table: pa.Table, value_numbers: ValueNumbers, counts: PatternMismatchCounts
    ) -> dict[str, IntArray]:
        """Return the same of a whole table, by attribute."""
        return {name: source.read_table(table, value_numbers, counts) for name, source in self._sources.items()}

    def takes_as_is(self, name: str, kind: pa.DataType) -> bool:
        """Tell whether values of a column of this type are taken without conversion."""
        return self._sources[name].field == name and find_kind(kind) in self._sources[name].direct_kinds


def _find_source(name: str, needs: RequirementTracker, ontology: Ontology) -> VariableSource:
    own = ontology.attribute(name)
    declared = next((need for need in needs.read_specs(own) if need.kind is not None), _RAW)
    kind = declared.kind
    exact = kind is Kind.NUMBER and declared.unit is None
    need = _RAW if exact else declared
    plain_kinds = _DIRECT.keys() if kind is Kind.OPAQUE else _DIRECT.keys() & {kind}
    direct_kinds = frozenset[Kind | None](() if declared.folded else plain_kinds)
    sources = ontology.sources(own)
    alone = sources == (own,) and own not in ontology.derived and "." not in own and declared.unit is None
    return VariableSource(
        name,
        field=own if alone else None,
        relevant_fields=None if own in ontology.derived or declared.unit_from else list_path_prefixes(sources),
        parses_text=exact,
        direct=frozenset(plain_type for direct_kind in direct_kinds for plain_type in _DIRECT[direct_kind]),
        direct_kinds=direct_kinds,
        reader=AttributeReader(Requirements({own: (need,)}), ontology),
        key=need.list_keys(own)[0],
    )


def list_path_prefixes(sources: Iterable[str]) -> frozenset[str]:
    """Return every field at which a dotted name may begin."""
    paths = [source.split(".") for source in sources]
    return frozenset(".".join(path[:count]) for path in paths for count in range(1, len(path) + 1))
