"""Values of variables as small numbers: equal values have equal numbers. When few are in use, numbers are given anew.

`1` and `1.0` are one value; text is never a number, and a boolean never either. What is no text, number, truth value
or time has no number: a variable cannot take it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as t

from tidings.algebra.law.event_reading import is_missing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.kernels.array_types import IntArray

ABSENT = -1
"""The number of no value."""


@dataclass(frozen=True, slots=True)
class _Truth:
    """A boolean, which Python would take for 0 or 1."""

    value: bool


class ValueNumbers:
    """The numbers of values; tuples of values (keys of several variables) are values too."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self.values: list[Any] = list(values)
        self._numbers = {_canonical_value(value): number for number, value in enumerate(self.values)}

    def __len__(self) -> int:
        return len(self.values)

    def number(self, value: Any) -> int:
        """Return a value's number, new or known; `ABSENT` for no value, and for one that no variable takes."""
        if type(value) is int or (type(value) is str and value.isascii()):  # most are, and stand for themselves
            kept: Any = value
        else:
            value = value.item() if isinstance(value, np.generic) else value
            kept = None if is_missing(value) else _canonical_value(value)
        if kept is None:
            return ABSENT
        number = self._numbers.get(kept)
        if number is None:
            number = self._numbers[kept] = len(self.values)
            self.values.append(value)
        return number

    def numbers(self, column: pa.Array | pa.ChunkedArray) -> IntArray:
        """Return the numbers of an Arrow column of single values."""
        coded = dictionary_encode(column)
        by_code = np.array([self.number(value) for value in coded.dictionary.to_pylist()] + [ABSENT], np.int64)
        codes = coded.indices.fill_null(len(by_code) - 1).to_numpy(zero_copy_only=False)
        return np.asarray(by_code[codes])

    def tuples(self, columns: list[IntArray]) -> IntArray:
        """Return the numbers of tuples whose parts are columns of numbers; `ABSENT` where a part is."""
        rows = np.stack(columns, axis=1)
        numbers = np.full(len(rows), ABSENT, np.int64)
        whole = (rows >= 0).all(axis=1)
        kinds, places = np.unique(rows[whole], axis=0, return_inverse=True)
        by_kind = [self.number(tuple(self.values[number] for number in kind)) for kind in kinds.tolist()]
        numbers[whole] = np.array(by_kind, np.int64)[places.reshape(-1)]
        return numbers

    def keep(self, kept: IntArray) -> ValueNumbers:
        """Return a table of the values whose numbers are in `kept` alone, numbered by their position there."""
        return ValueNumbers(self.values[number] for number in kept.tolist())


def _canonical_value(value: Any) -> Any:
    """Return the dictionary key of a value, equal for equal values; `None` for a value that no variable can take."""
    match value:
        case bool():
            return _Truth(value)
        case int() | Decimal():
            return value
        case float():
            return value if math.isfinite(value) else None
        case str():
            return value if value.isascii() or _is_written(value) else None
        case tuple():  # a key of several variables
            return tuple(_canonical_value(part) for part in value)
        case datetime():
            return value if value.tzinfo else value.replace(tzinfo=UTC)
        case date():
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return None


def _is_written(text: str) -> bool:
    """Tell whether text can be stored at all: half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def dictionary_encode(column: pa.Array | pa.ChunkedArray) -> pa.DictionaryArray:
    """Return an Arrow column by its distinct values."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    return column if t.is_dictionary(column.type) else column.dictionary_encode()
