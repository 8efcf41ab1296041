"""Read-only arrays: those of a segment never change, whether it was built here or is mapped from a file.

Numba compiles a kernel for writable and for read-only arrays separately. So built arrays are made read-only as well:
then one compiled kernel serves both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Group = TypeVar("Group", bound=tuple[Any, ...])


def freeze(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of an array, its items in one piece.

    >>> frozen(np.arange(3)).flags.writeable
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
