"""An Arrow array read as the kind that filters ask for: all its values at once, the same as row by row.

Numbers, truth and times become arrays without a look at single values. Everything else (text, numbers or
times written as text, addresses, concepts, decimals) is looked at once for each distinct value, through the
very functions that read rows. What cannot be read is marked, and the reader says why; where that makes no event
bad, it is `UNREADABLE` among numbers and a `Mismatch` among other values.
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
from tidings.algebra.law.event_reading import is_missing
from tidings.algebra.law.typed_attribute import AS_IS, Mismatch, TypedAttribute
from tidings.engine.compile.columns import UNREADABLE
from tidings.engine.events.views import EPOCH, micros
from tidings.model import Kind
from tidings.model.arrow_types import find_kind, is_text_type
from tidings.model.values import INT_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

Mask: TypeAlias = NDArray[np.bool_]
"""Truth for each event, or for each place."""

ReadCache: TypeAlias = "dict[ReadSpec, dict[Any, Any]]"
"""What raw values mean, for each need."""

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000}
_FIRST, _LAST = micros(datetime.min.replace(tzinfo=UTC)), micros(datetime.max.replace(tzinfo=UTC))
_FIRST_DAY, _LAST_DAY = ((end - EPOCH.date()).days for end in (date.min, date.max))
_DAY = 86_400_000_000
_BROKEN = object()


class NotPlain(Exception):
    """Says that a column is not of a shape that is read at once."""


@dataclass(frozen=True, slots=True)
class ArrayValues:
    """The values at the places of an array: `there` says where, `bad` where they cannot be read (nothing: all, none).

    They are `numbers` (integers, floats or truth; an infinity is `UNREADABLE`), or `times` (microseconds since 1970),
    or `points` (longitudes and latitudes), or one of the `distinct` values, of which `index` says which (-1: no value
    here), or nothing that any view could see.
    """

    present: Mask | None = None
    unreadable: Mask | None = None
    numbers: NDArray[Any] | None = None
    times: NDArray[np.int64] | None = None
    points: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    index: NDArray[np.int64] | None = None
    distinct: tuple[Any, ...] = ()

    def select(self, places: Mask) -> ArrayValues:
        """Return what is held at some of the places, none of them bad."""
        there = None if self.present is None else self.present[places]
        return ArrayValues(
            present=None if there is None or there.all() else there,
            numbers=None if self.numbers is None else self.numbers[places],
            times=None if self.times is None else self.times[places],
            points=None if self.points is None else (self.points[0][places], self.points[1][places]),
            index=None if self.index is None else self.index[places],
            distinct=self.distinct,
        )


def read_array(
    array: pa.Array, source: str, *, need: ReadSpec, setting: Setting, seen: bool, memo: ReadCache
) -> ArrayValues:
    """Read the column `source` of scalars or records; unless `seen`, no view looks at it and only mistakes count.

    `memo` remembers values that were read for the same need, in this column or another.
    """
    kind, told = need.kind, array.type
    if kind in (None, Kind.OPAQUE):  # it only exists
        return ArrayValues(np.zeros(len(array), dtype=bool) if t.is_null(told) else find_present(array))
    if kind is Kind.PLACE:
        return _read_places(array, strict=need.strict)
    if t.is_nested(told) or (not need.strict and _never_fits(kind, told)):
        return mark_unreadable(array, strict=need.strict)
    if kind is Kind.NUMBER and (need.unit is None or need.bare) and (t.is_integer(told) or t.is_floating(told)):
        return _read_numbers(array, strict=need.strict)
    if kind is Kind.BOOL and t.is_boolean(told):
        return ArrayValues(find_valid(array), numbers=array.fill_null(False).to_numpy(zero_copy_only=False))
    if kind is Kind.TIME and (t.is_timestamp(told) or t.is_date(told)):
        return _read_times(array, strict=need.strict)
    if kind in (Kind.TEXT, Kind.CONCEPT) and is_text_type(told) and not need.folded:
        sound = not seen and _is_valid_utf8(array)
        return ArrayValues(find_valid(array)) if sound else _read_distinct(array, str, {}, strict=need.strict)
    return _read_distinct(array, _build_reader(need, source, setting), memo.setdefault(need, {}), strict=need.strict)


def find_present(array: pa.Array) -> Mask | None:
    """Return where a value is: not where there is null, nor NaN; nothing means everywhere."""
    found = find_valid(array)
    if not t.is_floating(array.type):
        return found
    known: Mask = ~np.isnan(_view_buffer(array, array.type.to_pandas_dtype()))
    if known.all():
        return found
    return known if found is None else known & found


def _never_fits(kind: Kind, told: pa.DataType) -> bool:
    """Tell whether no value of a type can be read as the kind, so that none has to be tried."""
    if t.is_dictionary(told):
        return _never_fits(kind, told.value_type)
    return kind is not find_kind(told) and not is_text_type(told) and not t.is_null(told)


def find_valid(array: pa.Array) -> Mask | None:
    """Return where an array is not null; nothing means everywhere."""
    found: Mask
    if t.is_dictionary(array.type) or t.is_null(array.type):  # nulls may stand in the dictionary
        found = array.is_valid().to_numpy(zero_copy_only=False)
        return None if found.all() else found
    if not array.null_count:
        return None
    start, skipped = divmod(array.offset, 8)
    bits = np.frombuffer(array.buffers()[0], np.uint8, offset=start)
    found = np.unpackbits(bits, count=skipped + len(array), bitorder="little")[skipped:].view(bool)
    return found


def mark_unreadable(array: pa.Array, *, strict: bool = True) -> ArrayValues:
    """Return that no value of the array can be read."""
    present = find_present(array)
    if strict:
        return ArrayValues(present, np.ones(len(array), dtype=bool) if present is None else present)
    index = np.zeros(len(array), np.int64) if present is None else np.where(present, 0, -1)
    return ArrayValues(present, index=index, distinct=(Mismatch(find_kind(array.type) or Kind.OPAQUE),))


def _is_valid_utf8(array: pa.Array) -> bool:
    """Tell whether text is UTF-8 throughout."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _view_buffer(array: pa.Array, dtype: Any) -> NDArray[Any]:
    """Return the numbers of an array as they lie in memory; under a null stands anything."""
    buffer = array.buffers()[1]
    if not len(array) or buffer is None:
        return np.zeros(len(array), dtype=dtype)
    found: NDArray[Any] = np.frombuffer(buffer, dtype, len(array), array.offset * np.dtype(dtype).itemsize)
    return found


def _mask_or_none(bad: Mask, there: Mask | None) -> Mask | None:
    bad = bad if there is None else bad & there
    return bad if bad.any() else None


def _read_numbers(array: pa.Array, *, strict: bool) -> ArrayValues:
    values, present = _view_buffer(array, array.type.to_pandas_dtype()), find_present(array)
    if t.is_floating(array.type):
        infinite = _mask_or_none(np.isinf(values), present)
        values = values.astype(np.float64, copy=False)
        if infinite is None or strict:
            return ArrayValues(present, infinite, values)
        return ArrayValues(present, numbers=np.where(np.isinf(values), UNREADABLE, values))
    bad = _mask_or_none(values > np.uint64(INT_MAX), present) if t.is_uint64(array.type) else None
    _require_strict(bad, strict=strict)
    return ArrayValues(present, bad, values.astype(np.int64, copy=False))


def _require_strict(bad: Mask | None, *, strict: bool) -> None:
    """Leave an array with values that integers and times cannot hold to the reader, unless they make events bad."""
    if bad is not None and not strict:
        raise NotPlain


def _read_times(array: pa.Array, *, strict: bool) -> ArrayValues:
    """Read times as microseconds; a row with a time that Python cannot hold is bad."""
    told, there = array.type, find_valid(array)
    if t.is_date(told):
        days = (
            _view_buffer(array, np.int32).astype(np.int64)
            if t.is_date32(told)
            else _view_buffer(array, np.int64) // 86_400_000
        )
        fits = (days >= _FIRST_DAY) & (days <= _LAST_DAY)
        _require_strict(_mask_or_none(~fits, there), strict=strict)
        return ArrayValues(there, _mask_or_none(~fits, there), times=np.where(fits, days, 0) * _DAY)
    if told.unit == "ns":
        array, told = array.cast(pa.timestamp("us", told.tz), safe=False), pa.timestamp("us")
    ticks, longer = _view_buffer(array, np.int64), 1_000_000 // _PER_SECOND[told.unit]
    fits = (ticks >= -(-_FIRST // longer)) & (ticks <= _LAST // longer)
    _require_strict(_mask_or_none(~fits, there), strict=strict)
    return ArrayValues(there, _mask_or_none(~fits, there), times=np.where(fits, ticks, 0) * longer)


def _read_places(array: pa.Array, *, strict: bool) -> ArrayValues:
    told = array.type
    if not t.is_struct(told):
        if t.is_nested(told):
            raise NotPlain
        return mark_unreadable(array, strict=strict)
    if not {"lon", "lat"} <= {told.field(at).name for at in range(told.num_fields)}:
        return mark_unreadable(array, strict=strict)
    there = find_valid(array)
    lon, lat = (_read_degrees(array.field(name)) for name in ("lon", "lat"))
    fits = (np.abs(lon) <= 180) & (np.abs(lat) <= 90)  # NaN fits nowhere
    if not strict:
        return ArrayValues(there, points=(np.where(fits, lon, UNREADABLE), np.where(fits, lat, UNREADABLE)))
    return ArrayValues(there, _mask_or_none(~fits, there), points=(lon, lat))


def _read_degrees(array: pa.Array) -> NDArray[np.float64]:
    """Return degrees, with NaN for what is none."""
    if t.is_boolean(array.type) or is_text_type(array.type) or t.is_null(array.type):
        return np.full(len(array), np.nan)
    if not (t.is_integer(array.type) or t.is_floating(array.type)):
        raise NotPlain
    found, there = _view_buffer(array, array.type.to_pandas_dtype()).astype(np.float64), find_valid(array)
    if there is not None:
        found[~there] = np.nan
    return found


def _build_reader(need: ReadSpec, source: str, setting: Setting) -> Callable[[Any], Any]:
    """Return the function that reads one raw value as rows are read."""
    if not need.folded and (need.unit is None or need.kind is not Kind.NUMBER):
        return lambda raw: coerce(raw, need.kind)
    # Read under the column's own name: the attribute's may have many columns, and would look for all of them.
    alone = replace(need, several=True, strict=True, labels=(AS_IS,))
    reader = AttributeReader(Requirements({source: (alone,)}), setting.ontology)
    return lambda raw: reader.read({source: raw}, setting.now).values[TypedAttribute(source)][0]


def _read_distinct(array: pa.Array, read: Callable[[Any], Any], known: dict[Any, Any], *, strict: bool) -> ArrayValues:
    """Read each distinct value once."""
    index, raws = _encode_dictionary(array)
    values: list[Any] = []
    bad = np.zeros(len(raws) + 1, dtype=bool)
    for at, raw in enumerate(raws):
        if (type(raw), raw) in known:
            values.append(known[type(raw), raw])
            continue
        try:
            values.append(_read_value(raw, read))
        except ValueError:
            values.append(None if strict else Mismatch(raw))
            bad[at] = strict
        if not bad[at]:
            known[type(raw), raw] = values[-1]
    # A dictionary may hold a null of its own.
    nothing = [at for at, raw in enumerate(raws) if raw is not _BROKEN and is_missing(raw)]
    if nothing:
        index = np.where(np.isin(index, nothing), -1, index)
    there = index >= 0
    return ArrayValues(
        None if there.all() else there, _mask_or_none(bad[index], None), index=index, distinct=tuple(values)
    )


def _read_value(raw: Any, read: Callable[[Any], Any]) -> Any:
    if raw is _BROKEN:
        msg = "the value cannot be held"
        raise ValueError(msg)
    return None if is_missing(raw) else read(raw)


def _encode_dictionary(array: pa.Array) -> tuple[NDArray[np.int64], list[Any]]:
    """Return for each place which distinct value stands there, or -1, and those values."""
    coded = array if t.is_dictionary(array.type) else array.dictionary_encode()
    index = coded.indices.cast(pa.int64()).fill_null(-1).to_numpy().astype(np.int64, copy=False)
    words = coded.dictionary
    if len(words) > len(array):  # a slice of a larger table brings all of the table's dictionary
        used = np.unique(index[index >= 0])
        index = np.where(index >= 0, np.searchsorted(used, index), -1)
        words = words.take(pa.array(used))
    return index, _to_pylist(words)


def _to_pylist(array: pa.Array) -> list[Any]:
    """Return the values as Python's, with `_BROKEN` for those it cannot hold."""
    try:
        return list(array.to_pylist())
    except (ValueError, OverflowError):
        return [_to_python(value) for value in array]


def _to_python(value: pa.Scalar) -> Any:
    try:
        return value.as_py()
    except (ValueError, OverflowError):
        return _BROKEN
