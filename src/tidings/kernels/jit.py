"""The one place where kernels get their compiler flags, and where compiled code is kept between runs.

Numba keeps compiled code beside the source or, where that is read-only, in the user's cache; where
neither can be written (an installed package, a home that is not there) a folder of the system's
temporary directory serves. `NUMBA_DISABLE_JIT=1` runs every kernel as plain Python.
"""

from __future__ import annotations

import getpass
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

Kernel: TypeAlias = Callable[..., Any]
"""A compiled function: flat arrays and numbers in and out. Types are Numba's to check, when it compiles."""


def _writable(folder: Path) -> bool:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return os.access(folder, os.W_OK)


def cache_folder() -> str | None:
    """Return where compiled code goes when Numba's own places cannot be written, or nothing."""
    if os.environ.get("NUMBA_CACHE_DIR") or _writable(Path(__file__).parent / "__pycache__"):
        return None
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    if _writable(home):
        return None
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        name = str(os.getuid())
    return str(Path(tempfile.gettempdir()) / f"tidings-kernels-{name}")


_folder = cache_folder()
if _folder is not None:
    os.environ["NUMBA_CACHE_DIR"] = _folder  # read by Numba when it is imported

import numba  # noqa: E402 - after the line above
import numpy as np  # noqa: E402


def jit(function: Kernel) -> Kernel:
    """Compile when first called, keep the result on disk, release the lock while running."""
    return _compiled(function, boundscheck=False)


def inlined(function: Kernel) -> Kernel:
    """The same for small helpers that belong inside their callers' loops."""
    return _compiled(function, inline="always")


def _compiled(function: Kernel, **flags: Any) -> Kernel:
    # Plain Python warns where a hash goes around; compiled code does not.
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        plain: Kernel = np.errstate(over="ignore")(function)
        return plain
    compiled: Kernel = numba.njit(cache=True, nogil=True, error_model="numpy", **flags)(function)
    return compiled
