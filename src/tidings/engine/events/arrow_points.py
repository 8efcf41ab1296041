"""What the views see of an Arrow array that was read as a whole: `Held` in, points out, all places at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.engine.compile.columns import UNREADABLE, Column, ColumnValues, Numbers, Texts, View
from tidings.engine.events.event_columns import EXACT, pack_numbers, pack_texts
from tidings.engine.events.views import micros, select_encoder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidings.algebra import Setting
    from tidings.engine.events.arrow_values import ArrayValues, Mask

_TWO_TO_63 = 2.0**63


def to_points(column: Column, read: ArrayValues, setting: Setting) -> ColumnValues | None:
    """Return the values that a column's view sees at the places, or nothing where it sees none."""
    if read.present is not None and not read.present.any():
        return None
    if read.index is not None:
        return _view_distinct(column, read.index, read.distinct, setting)
    if read.points is not None and column.view in (View.LONGITUDE, View.LATITUDE):
        return _to_floats(read.points[column.view is View.LATITUDE], read.present)
    if read.times is not None and column.view is View.AGE:
        return _to_floats(_to_seconds(micros(setting.now) - read.times), read.present)
    if read.times is not None and column.view is View.NUMBER:
        return to_exact_numbers(read.times, read.present)
    if read.numbers is not None and column.view is View.NUMBER:
        kind = read.numbers.dtype.kind
        return to_exact_numbers(read.numbers, read.present) if kind == "i" else _to_floats(read.numbers, read.present)
    return None


def _view_distinct(
    column: Column, index: NDArray[np.int64], distinct: tuple[Any, ...], setting: Setting
) -> ColumnValues | None:
    """Show each distinct value to the view once; the last place stands for no value, where -1 points."""
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
    found = pack_numbers([*codes, None])
    return Numbers(found.near[index], None if found.rest is None else found.rest[index])


def _to_floats(values: NDArray[Any], there: Mask | None) -> Numbers:
    near = values.astype(
        np.float64
    )  # a copy: Arrow's memory is read-only, and kernels would be compiled once more for it
    if there is not None:
        near[~there] = np.nan
    return Numbers(near)


def _to_seconds(ages: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return microseconds as seconds, rounded as `timedelta.total_seconds` rounds."""
    if np.abs(ages).max(initial=0) <= EXACT:
        return ages / 1e6
    return np.array([age / 1_000_000 for age in ages.tolist()])


def to_exact_numbers(values: NDArray[np.int64], there: Mask | None = None) -> Numbers:
    """Return integers as `Numbers`; places where nothing is there hold NaN.

    >>> exact(np.array([1, 2**53 + 1])).rest
    array([0, 1], dtype=int16)
    """
    near = values.astype(np.float64)
    rest = None if np.abs(near).max(initial=0) < EXACT else _compute_rest(values, near)
    if there is not None:
        near[~there] = np.nan
        rest = None if rest is None else np.where(there, rest, 0).astype(np.int16)
    return Numbers(near, rest if rest is not None and rest.any() else None)


def _compute_rest(values: NDArray[np.int64], near: NDArray[np.float64]) -> NDArray[np.int16]:
    over = near >= _TWO_TO_63  # the largest integers round up to 2**63, which is none
    rest = values - np.where(over, 0, near).astype(np.int64)
    rest[over] = values[over] - (2**63 - 1) - 1
    return rest.astype(np.int16)
