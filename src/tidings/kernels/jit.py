"""Compiler flags of all kernels, in one place, and where compiled code is kept between runs.

Numba keeps compiled code beside the source or, where that is read-only, in the user's cache; where neither can be
written (an installed package, no home directory) it goes to a private folder in the system's temporary directory.
`NUMBA_DISABLE_JIT=1` runs every kernel as plain Python.

Choosing a decorator: `jit` by default; `jit_inline` for helpers of a few lines; `jit_lean` for kernels that take many
arrays, allocate none and are called or call others often; `jit_lean_inline` for their helpers, hidden from Python.

`forceinline` is always written out: a function that does not say inherits it from the one that it is first called by,
and then every rare branch of a kernel lands in its hottest loop: half as much code again in the runs of patterns, and
some processes a third slower than others.
"""

from __future__ import annotations

import getpass
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

Kernel: TypeAlias = Callable[..., Any]
"""A compiled function. Numba infers and checks argument types when it compiles, for each combination of dtypes anew."""


def is_writable(folder: Path) -> bool:
    """Tell whether a folder can be written or, where it does not exist, made."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return os.access(folder, os.W_OK)


def find_cache_folder() -> str | None:
    """Return the folder for compiled code if Numba's own places cannot be written, else None."""
    if os.environ.get("NUMBA_CACHE_DIR") or is_writable(Path(__file__).parent / "__pycache__"):
        return None
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    if is_writable(home):
        return None
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        name = str(os.getuid())
    return _make_private_folder(Path(tempfile.gettempdir()) / f"tidings-kernels-{name}")


def _make_private_folder(folder: Path) -> str:
    """Return the folder if nobody else can write there, else a fresh one: code from it is executed."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022:
            return str(folder)
    except OSError:
        pass
    return tempfile.mkdtemp(prefix="tidings-kernels-")


_folder = find_cache_folder()
if _folder is not None:
    os.environ["NUMBA_CACHE_DIR"] = _folder  # read by Numba when it is imported

import numba  # noqa: E402 - after the line above
import numpy as np  # noqa: E402
from numba.core.compiler_lock import global_compiler_lock  # noqa: E402

from tidings import forks  # noqa: E402

forks.guard_compiler(global_compiler_lock)  # a child that is forked while another thread compiles could compile nothing


def jit(function: Kernel) -> Kernel:
    """Compile at the first call, cache the result on disk, release the interpreter's lock while running."""
    return _compile(function, boundscheck=False, forceinline=False)


def jit_inline(function: Kernel) -> Kernel:
    """Do the same for small helpers; Numba copies them into their callers before it infers types."""
    return _compile(function, inline="always")


def jit_lean(function: Kernel) -> Kernel:
    """Do the same without reference counting, for kernels of many arrays that allocate none.

    Counting took most of the time where an event does little (patterns: 2 million events a second instead of 6).
    """
    return _compile(function, boundscheck=False, _nrt=False, forceinline=False)


def jit_lean_inline(function: Kernel) -> Kernel:
    """Do the same and let LLVM inline it: passing a dozen arrays costs more than a small step does."""
    wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # with them patterns take 32 s to compile, not 30
    return _compile(function, boundscheck=False, _nrt=False, forceinline=True, **wrappers)


def _compile(function: Kernel, **flags: Any) -> Kernel:
    # Plain Python warns where a hash overflows; compiled code does not.
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        plain: Kernel = np.errstate(over="ignore")(function)
        return plain
    compiled: Kernel = numba.njit(cache=True, nogil=True, error_model="numpy", **flags)(function)
    return compiled
