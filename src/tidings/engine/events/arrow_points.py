"""The views of an Arrow array that was read as a whole: `ArrayValues` in, column values out, all places at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.engine.compile.columns import UNREADABLE, Column, ColumnValues, Numbers, Texts, View
from tidings.engine.compile.encoders import to_microseconds
from tidings.engine.events.event_columns import EXACT, pack_numbers, pack_texts
from tidings.engine.events.views import select_encoder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidings.algebra import Setting
    from tidings.engine.events.arrow_values import ArrayValues, Mask

_TWO_TO_63 = 2.0**63


def to_points(column: Column, values: ArrayValues, setting: Setting) -> ColumnValues | None:
    """Return the values of a column's view, or None where the view has none."""
    if values.present is not None and not values.present.any():
        return None
    if values.index is not None:
        return _view_distinct(column, values.index, values.distinct, setting)
    if values.points is not None and column.view in (View.LONGITUDE, View.LATITUDE):
        return _to_floats(values.points[column.view is View.LATITUDE], values.present)
    if values.times is not None and column.view is View.AGE:
        return _to_floats(_to_seconds(to_microseconds(setting.now) - values.times), values.present)
    if values.times is not None and column.view is View.NUMBER:
        return to_exact_numbers(values.times, values.present)
    if values.numbers is not None and column.view is View.NUMBER:
        kind = values.numbers.dtype.kind
        return (
            to_exact_numbers(values.numbers, values.present)
            if kind == "i"
            else _to_floats(values.numbers, values.present)
        )
    return None


def _view_distinct(
    column: Column, index: NDArray[np.int64], distinct: tuple[Any, ...], setting: Setting
) -> ColumnValues | None:
    """Encode each distinct value once; -1 in `index` points to the last place, which stands for no value."""
    encode = select_encoder(column, setting)
    codes: list[Any] = [None if value is None else encode(value) for value in distinct]
    codes = [
        UNREADABLE if code is None and value is not None else code for code, value in zip(codes, distinct, strict=True)
    ]
    if not any(code is not None for code in codes):
        return None
    if column.view.is_bytewise:
        words = pack_texts([*codes, None])
        return Texts(words.index[index], words.distinct)
    numbers = pack_numbers([*codes, None])
    return Numbers(numbers.near[index], None if numbers.rest is None else numbers.rest[index])


def _to_floats(values: NDArray[Any], present: Mask | None) -> Numbers:
    near = values.astype(
        np.float64
    )  # a copy: Arrow's memory is read-only, and kernels would be compiled once more for it
    if present is not None:
        near[~present] = np.nan
    return Numbers(near)


def _to_seconds(ages: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return microseconds as seconds, rounded like `timedelta.total_seconds`."""
    if np.abs(ages).max(initial=0) <= EXACT:
        return ages / 1e6
    return np.array([age / 1_000_000 for age in ages.tolist()])


def to_exact_numbers(values: NDArray[np.int64], present: Mask | None = None) -> Numbers:
    """Return integers as `Numbers`, with NaN where no value is present.

    >>> exact(np.array([1, 2**53 + 1])).rest
    array([0, 1], dtype=int16)
    """
    near = values.astype(np.float64)
    rest = None if np.abs(near).max(initial=0) < EXACT else _compute_rest(values, near)
    if present is not None:
        near[~present] = np.nan
        rest = None if rest is None else np.where(present, rest, 0).astype(np.int16)
    return Numbers(near, rest if rest is not None and rest.any() else None)


def _compute_rest(values: NDArray[np.int64], near: NDArray[np.float64]) -> NDArray[np.int16]:
    over = near >= _TWO_TO_63  # the largest integers round up to 2**63, which is no int64
    rest = values - np.where(over, 0, near).astype(np.int64)
    rest[over] = values[over] - (2**63 - 1) - 1
    return rest.astype(np.int16)
