"""Flat arrays: views without a copy, ranges gathered at once, starts of parts that lie one after the other.

Numba compiles a kernel for writable and for read-only arrays separately. So the arrays of a segment are read-only
whether it was built here or is mapped from a file: then one compiled kernel serves both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import ArrayLike, NDArray

    from tidings.kernels.array_types import ByteArray, IntArray

Group = TypeVar("Group", bound=tuple[Any, ...])


def freeze(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of an array, its items in one piece.

    >>> freeze(np.arange(3)).flags.writeable
    False
    """
    if not array.flags.writeable and array.flags.c_contiguous and type(array) is np.ndarray:
        return array
    view = np.ascontiguousarray(array).view(np.ndarray)
    view.flags.writeable = False
    return view


def freeze_group(group: Group) -> Group:
    """Return a named tuple of arrays (`kernels.match.layout`) with all of them read-only."""
    return type(group)(*map(freeze, group))


def view_buffer(array: pa.Array, dtype: Any) -> NDArray[Any]:
    """Return the numbers of an Arrow array as they lie in memory; at a null stands an arbitrary one."""
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros(len(array), dtype)
    return np.frombuffer(data, dtype, len(array), array.offset * np.dtype(dtype).itemsize)


def compute_starts(counts: ArrayLike, dtype: Any = np.int64) -> NDArray[Any]:
    """Return where each part begins, with the end of the last one behind.

    >>> compute_starts([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    sizes = np.asarray(counts)
    starts = np.zeros(len(sizes) + 1, dtype)
    np.cumsum(sizes, out=starts[1:])
    return starts


def list_owners(starts: NDArray[Any]) -> IntArray:
    """Return for each item the number of the part that has it.

    >>> list_owners(np.array([0, 2, 2, 5])).tolist()
    [0, 0, 2, 2, 2]
    """
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def find_starts(owners: NDArray[Any], count: int) -> IntArray:
    """Return where the items of each of `count` parts begin, from the ascending part of each: undoes `list_owners`.

    >>> find_starts(np.array([0, 0, 2, 2, 2]), 3).tolist()
    [0, 2, 2, 5]
    """
    return np.searchsorted(owners, np.arange(count + 1)).astype(np.int64, copy=False)


def expand_ranges(first: NDArray[Any], sizes: NDArray[Any]) -> IntArray:
    """Return the indexes of ranges one after the other: from each `first`, as many as its size.

    >>> expand_ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    counts = sizes.astype(np.int64, copy=False)
    begin = np.cumsum(counts) - counts
    return np.repeat(first.astype(np.int64, copy=False) - begin, counts) + np.arange(counts.sum())


def invert(order: NDArray[Any], size: int, missing: int = 0) -> IntArray:
    """Return the place of each number below `size` in `order`; numbers that are not in it have `missing`."""
    places = np.full(size, missing, np.int64)
    places[order] = np.arange(len(order))
    return places


def pack_bytes(texts: Sequence[bytes]) -> tuple[ByteArray, IntArray]:
    """Return byte strings as one array, and where each begins, with the end of the last one behind."""
    starts = compute_starts(np.fromiter(map(len, texts), np.int64, len(texts)))
    return np.frombuffer(b"".join(texts), np.uint8), starts
