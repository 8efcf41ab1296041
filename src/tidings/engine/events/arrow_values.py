"""An Arrow array read as the kind that filters ask for: all its values at once, the same as row by row.

Numbers, truth values and times become arrays without touching single values. Everything else (text, numbers or times
written as text, addresses, concepts, decimals) is read once for each distinct value, by the functions that read rows.
Values that cannot be read are marked, and the row reader gives the reason; where they do not make an event bad, they
are `UNREADABLE` among numbers and a `Mismatch` among other values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as t
from numpy.typing import NDArray

from tidings.algebra import AttributeReader, ReadSpec, Requirements, Setting
from tidings.algebra.law.coerce import coerce
from tidings.algebra.law.raw_values import is_missing
from tidings.algebra.law.typed_attribute import AS_IS, Mismatch, TypedAttribute
from tidings.engine.arrays import view_buffer
from tidings.engine.compile.columns import UNREADABLE
from tidings.kernels.array_types import BoolArray, FloatArray, IntArray
from tidings.model import Kind
from tidings.model.arrow_types import find_kind, is_text_type, to_values
from tidings.model.values import EPOCH, INT_MAX, Unreadable, to_microseconds

if TYPE_CHECKING:
    from collections.abc import Callable

ReadCache: TypeAlias = "dict[ReadSpec, dict[Any, Any]]"
"""What raw values mean, for each need."""

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000}
_FIRST, _LAST = to_microseconds(datetime.min.replace(tzinfo=UTC)), to_microseconds(datetime.max.replace(tzinfo=UTC))
_FIRST_DAY, _LAST_DAY = ((end - EPOCH.date()).days for end in (date.min, date.max))
_DAY, _DAY_MS = 86_400_000_000, 86_400_000


class NotPlain(Exception):
    """A column has a shape that must be read row by row."""


@dataclass(frozen=True, slots=True)
class ArrayValues:
    """The values of an array: `present` is where there is one, `unreadable` where it is refused (None: all, none).

    They are `numbers` (integers, floats or truth; an infinity is `UNREADABLE`), or `times` (microseconds since 1970),
    or `points` (longitudes and latitudes), or `distinct[index]` (-1: no value), or none of these: no view reads them.
    """

    present: BoolArray | None = None
    unreadable: BoolArray | None = None
    numbers: NDArray[Any] | None = None
    times: IntArray | None = None
    points: tuple[FloatArray, FloatArray] | None = None
    index: IntArray | None = None
    distinct: tuple[Any, ...] = ()

    def select(self, chosen: BoolArray | IntArray) -> ArrayValues:
        """Return some of the values, none of them unreadable; `chosen` is a mask, or indexes."""
        present = None if self.present is None else self.present[chosen]
        return ArrayValues(
            present=None if present is None or present.all() else present,
            numbers=None if self.numbers is None else self.numbers[chosen],
            times=None if self.times is None else self.times[chosen],
            points=None if self.points is None else (self.points[0][chosen], self.points[1][chosen]),
            index=None if self.index is None else self.index[chosen],
            distinct=self.distinct,
        )


def read_array(
    array: pa.Array, source: str, *, need: ReadSpec, setting: Setting, seen: bool, memo: ReadCache
) -> ArrayValues:
    """Read the column `source` of scalars or records; unless `seen`, no view reads it, and only refusals count.

    `memo` remembers values that were read for the same need, in this column or another.
    """
    kind, type_ = need.kind, array.type
    if kind in (None, Kind.OPAQUE):  # only its existence is tested
        return ArrayValues(np.zeros(len(array), dtype=bool) if t.is_null(type_) else find_present(array))
    if kind is Kind.PLACE:
        return _read_places(array, strict=need.strict)
    if t.is_nested(type_) or (not need.strict and _is_never_read_as(kind, type_)):
        return mark_unreadable(array, strict=need.strict)
    if kind is Kind.NUMBER and (need.unit is None or need.bare) and (t.is_integer(type_) or t.is_floating(type_)):
        return _read_numbers(array, strict=need.strict)
    if kind is Kind.BOOL and t.is_boolean(type_):
        return ArrayValues(find_valid(array), numbers=array.fill_null(False).to_numpy(zero_copy_only=False))
    if kind is Kind.TIME and (t.is_timestamp(type_) or t.is_date(type_)):
        return _read_times(array, strict=need.strict)
    if kind in (Kind.TEXT, Kind.CONCEPT) and is_text_type(type_) and not need.folded:
        sound = not seen and _is_valid_utf8(array)
        return ArrayValues(find_valid(array)) if sound else _read_distinct(array, str, {}, strict=need.strict)
    return _read_distinct(array, _build_reader(need, source, setting), memo.setdefault(need, {}), strict=need.strict)


def find_present(array: pa.Array) -> BoolArray | None:
    """Return a mask of the values that are neither null nor NaN; None: all."""
    is_valid = find_valid(array)
    if not t.is_floating(array.type):
        return is_valid
    is_number: BoolArray = ~np.isnan(view_buffer(array, array.type.to_pandas_dtype()))
    if is_number.all():
        return is_valid
    return is_number if is_valid is None else is_number & is_valid


def _is_never_read_as(kind: Kind, type_: pa.DataType) -> bool:
    """Tell whether no value of a type can be read as the kind, so that none has to be tried."""
    if t.is_dictionary(type_):
        return _is_never_read_as(kind, type_.value_type)
    return kind is not find_kind(type_) and not is_text_type(type_) and not t.is_null(type_)


def find_valid(array: pa.Array) -> BoolArray | None:
    """Return a mask of the values that are not null; None: all."""
    mask: BoolArray
    if t.is_dictionary(array.type) or t.is_null(array.type):  # nulls may be in the dictionary
        mask = array.is_valid().to_numpy(zero_copy_only=False)
        return None if mask.all() else mask
    if not array.null_count:
        return None
    start, skipped = divmod(array.offset, 8)
    bits = np.frombuffer(array.buffers()[0], np.uint8, offset=start)
    mask = np.unpackbits(bits, count=skipped + len(array), bitorder="little")[skipped:].view(bool)
    return mask


def mark_unreadable(array: pa.Array, *, strict: bool = True) -> ArrayValues:
    """Return an array of which no value can be read."""
    present = find_present(array)
    if strict:
        return ArrayValues(present, np.ones(len(array), dtype=bool) if present is None else present)
    index = np.zeros(len(array), np.int64) if present is None else np.where(present, 0, -1)
    return ArrayValues(present, index=index, distinct=(Mismatch(find_kind(array.type) or Kind.OPAQUE),))


def _is_valid_utf8(array: pa.Array) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _mask_or_none(unreadable: BoolArray, present: BoolArray | None) -> BoolArray | None:
    unreadable = unreadable if present is None else unreadable & present
    return unreadable if unreadable.any() else None


def _read_numbers(array: pa.Array, *, strict: bool) -> ArrayValues:
    values, present = view_buffer(array, array.type.to_pandas_dtype()), find_present(array)
    if t.is_floating(array.type):
        infinite = _mask_or_none(np.isinf(values), present)
        values = values.astype(np.float64, copy=False)
        if infinite is None or strict:
            return ArrayValues(present, infinite, values)
        return ArrayValues(present, numbers=np.where(np.isinf(values), UNREADABLE, values))
    bad = _mask_or_none(values > np.uint64(INT_MAX), present) if t.is_uint64(array.type) else None
    _require_strict(bad, strict=strict)
    return ArrayValues(present, bad, values.astype(np.int64, copy=False))


def _require_strict(bad: BoolArray | None, *, strict: bool) -> None:
    """Leave an array with values that do not fit to the row reader, unless they make events bad anyway."""
    if bad is not None and not strict:
        raise NotPlain


def _read_times(array: pa.Array, *, strict: bool) -> ArrayValues:
    """Read times as microseconds; one outside Python's years 1 to 9999 is unreadable."""
    type_, present = array.type, find_valid(array)
    if t.is_date(type_):
        is_days = t.is_date32(type_)
        ticks = view_buffer(array, np.int32).astype(np.int64) if is_days else view_buffer(array, np.int64) // _DAY_MS
        tick_us = _DAY
        fits = (ticks >= _FIRST_DAY) & (ticks <= _LAST_DAY)
    else:
        if type_.unit == "ns":
            array, type_ = array.cast(pa.timestamp("us", type_.tz), safe=False), pa.timestamp("us")
        ticks, tick_us = view_buffer(array, np.int64), 1_000_000 // _PER_SECOND[type_.unit]
        fits = (ticks >= -(-_FIRST // tick_us)) & (ticks <= _LAST // tick_us)
    bad = _mask_or_none(~fits, present)
    _require_strict(bad, strict=strict)
    return ArrayValues(present, bad, times=np.where(fits, ticks, 0) * tick_us)


def _read_places(array: pa.Array, *, strict: bool) -> ArrayValues:
    type_ = array.type
    if not t.is_struct(type_):
        if t.is_nested(type_):
            raise NotPlain
        return mark_unreadable(array, strict=strict)
    if not {"lon", "lat"} <= {type_.field(number).name for number in range(type_.num_fields)}:
        return mark_unreadable(array, strict=strict)
    present = find_valid(array)
    lon, lat = (_read_degrees(array.field(name)) for name in ("lon", "lat"))
    fits = (np.abs(lon) <= 180) & (np.abs(lat) <= 90)  # false for NaN
    if not strict:
        return ArrayValues(present, points=(np.where(fits, lon, UNREADABLE), np.where(fits, lat, UNREADABLE)))
    return ArrayValues(present, _mask_or_none(~fits, present), points=(lon, lat))


def _read_degrees(array: pa.Array) -> FloatArray:
    """Return degrees, with NaN for a value that is not a number."""
    if t.is_boolean(array.type) or is_text_type(array.type) or t.is_null(array.type):
        return np.full(len(array), np.nan)
    if not (t.is_integer(array.type) or t.is_floating(array.type)):
        raise NotPlain
    degrees, is_valid = view_buffer(array, array.type.to_pandas_dtype()).astype(np.float64), find_valid(array)
    if is_valid is not None:
        degrees[~is_valid] = np.nan
    return degrees


def _build_reader(need: ReadSpec, source: str, setting: Setting) -> Callable[[Any], Any]:
    """Return the function that reads one raw value as the row reader does."""
    if not need.folded and (need.unit is None or need.kind is not Kind.NUMBER):
        return lambda raw: coerce(raw, need.kind)
    # Read under the column's own name: the attribute may be fed by many columns, and would be searched in all of them.
    alone = replace(need, several=True, strict=True, labels=(AS_IS,))
    reader = AttributeReader(Requirements({source: (alone,)}), setting.ontology)
    return lambda raw: reader.read({source: raw}, setting.now).values[TypedAttribute(source)][0]


def _read_distinct(array: pa.Array, read: Callable[[Any], Any], cache: dict[Any, Any], *, strict: bool) -> ArrayValues:
    index, raws = _encode_dictionary(array)
    values: list[Any] = []
    bad = np.zeros(len(raws) + 1, dtype=bool)
    for number, raw in enumerate(raws):
        if (type(raw), raw) in cache:
            values.append(cache[type(raw), raw])
            continue
        try:
            values.append(_read_value(raw, read))
        except ValueError:
            values.append(None if strict else Mismatch(raw))
            bad[number] = strict
        if not bad[number]:
            cache[type(raw), raw] = values[-1]
    # A dictionary may have a null of its own.
    nothing = [number for number, raw in enumerate(raws) if is_missing(raw)]
    if nothing:
        index = np.where(np.isin(index, nothing), -1, index)
    present = index >= 0
    return ArrayValues(
        None if present.all() else present, _mask_or_none(bad[index], None), index=index, distinct=tuple(values)
    )


def _read_value(raw: Any, read: Callable[[Any], Any]) -> Any:
    if isinstance(raw, Unreadable):
        raise ValueError(raw.reason)
    return None if is_missing(raw) else read(raw)


def _encode_dictionary(array: pa.Array) -> tuple[IntArray, list[Any]]:
    """Return the number of each place's distinct value, or -1, and the distinct values."""
    coded = array if t.is_dictionary(array.type) else array.dictionary_encode()
    index = coded.indices.cast(pa.int64()).fill_null(-1).to_numpy().astype(np.int64, copy=False)
    words = coded.dictionary
    if len(words) > len(array):  # a slice of a larger table brings all of the table's dictionary
        used = np.unique(index[index >= 0])
        index = np.where(index >= 0, np.searchsorted(used, index), -1)
        words = words.take(pa.array(used))
    return index, to_values(words)
