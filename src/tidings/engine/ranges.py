"""Many ranges of an array, gathered at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def expand_ranges(first: NDArray[Any], sizes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the indexes of ranges one after the other: from each `first`, as many as its size.

    >>> runs(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    counts = sizes.astype(np.int64)
    begin = np.cumsum(counts) - counts
    return np.repeat(first.astype(np.int64) - begin, counts) + np.arange(counts.sum())
