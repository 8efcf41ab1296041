"""Arrays that grow: NumPy's by a larger copy, `array` in place, and blocks of any length in one pool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from array import array
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tidings.kernels.array_types import Int32Array

NO_ROWS: Int32Array = np.zeros(0, np.int32)
"""No rows."""


def grow(array: NDArray[Any], shape: tuple[int, ...], fill: float = 0) -> NDArray[Any]:
    """Return the array, or a larger one that begins with it and has `fill` elsewhere, so that `shape` fits.

    >>> grow(np.array([[1, 2]]), (2, 1), fill=9).tolist()
    [[1, 2], [9, 9]]
    """
    larger = tuple(map(max, array.shape, shape))
    if larger == array.shape:
        return array
    grown = np.full(larger, fill, array.dtype)
    grown[tuple(map(slice, array.shape))] = array
    return grown


def grow_rows(array: NDArray[Any], length: int) -> NDArray[Any]:
    """Return the array, or one of at least twice as many rows where it has fewer than `length`."""
    return array if length <= len(array) else grow(array, (max(length, 2 * len(array)), *array.shape[1:]))


def lengthen(pool: array[Any], length: int) -> None:
    """Fill an array up to a length with zeros."""
    if len(pool) < length:
        pool.frombytes(bytes(pool.itemsize * (length - len(pool))))


def as_numpy(values: array[Any]) -> NDArray[Any]:
    """Return the memory of an array without copying; while the result is referenced, the array cannot grow."""
    return np.frombuffer(values, values.typecode) if values else np.empty(0, values.typecode)


def concatenate(lists: Sequence[array[int]]) -> Int32Array:
    """Return the items of several arrays of C ints, one after the other."""
    return np.concatenate([np.frombuffer(rows, np.int32) for rows in lists]) if lists else NO_ROWS


class BlockAllocator:
    """Where blocks begin in pools of one growing length; the pools are the caller's. Freed blocks are used again."""

    def __init__(self) -> None:
        self.length = 0
        self._free: dict[int, list[int]] = {}

    def take_block(self, length: int) -> int:
        """Return where a block of this length begins; it may lie beyond the old end of the pools."""
        free = self._free.get(length)
        if free:
            return free.pop()
        start = self.length
        self.length += length
        return start

    def release_block(self, start: int, length: int) -> None:
        """Take a block back."""
        if length:
            self._free.setdefault(length, []).append(start)
