"""Names for the array types that kernels take and return, defined once for the whole project.

Every array is one-dimensional unless its docstring says otherwise; a type says what an element is, not how many there
are. Kernels are compiled for the dtypes they are called with, so a type here is the widest one a caller passes:
an `IntArray` parameter documents int64 and accepts what Numba accepts. Import cost: NumPy alone.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.int64]
"""Counts, offsets, row numbers, timestamps."""

Int32Array: TypeAlias = npt.NDArray[np.int32]
"""Row and node numbers where half the memory pays; -1 means none."""

CodeArray: TypeAlias = npt.NDArray[np.uint32]
"""Codes of values (see `kernels.match.literals`), and rows and slots of an index."""

WordArray: TypeAlias = npt.NDArray[np.uint64]
"""Bitmaps: bit `i % 64` of word `i // 64` stands for item `i`."""

ByteArray: TypeAlias = npt.NDArray[np.uint8]
"""UTF-8 text, small enumerations and flags that are stored as bytes."""

BoolArray: TypeAlias = npt.NDArray[np.bool_]
"""Masks."""

FloatArray: TypeAlias = npt.NDArray[np.float64]
"""Values and probabilities."""

Float32Array: TypeAlias = npt.NDArray[np.float32]
"""Selectivities and other estimates."""

NamedArrays: TypeAlias = dict[str, npt.NDArray[Any]]
"""Arrays by name: what a snapshot's file or a part of it holds."""

Int: TypeAlias = int
"""An integer inside a kernel: 64 bits wide once compiled, whichever of Python's and NumPy's integers goes in."""

Float: TypeAlias = float
"""A floating-point number inside a kernel, by the same reading."""
