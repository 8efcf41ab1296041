"""Arrays that grow while a kernel fills them: by doubling, so an item costs a constant number of copies.

Called between the loops that write, never inside one: Numba counts references wherever an array changes hands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from tidings.kernels.jit import jit

if TYPE_CHECKING:
    from tidings.kernels.array_types import Int

Item = TypeVar("Item", bound=np.generic)


@jit
def grow(array: npt.NDArray[Item], least: Int) -> npt.NDArray[Item]:
    """Return a copy with twice the room, or room for `least` where that is more."""
    larger = np.empty(max(2 * len(array), least), array.dtype)
    larger[: len(array)] = array
    return larger


@jit
def ensure_room(array: npt.NDArray[Item], length: Int) -> npt.NDArray[Item]:
    """Return the array itself where it has room for `length`, else a larger copy."""
    return array if length <= len(array) else grow(array, length)
