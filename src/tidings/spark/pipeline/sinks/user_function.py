"""The function of a `python` sink: found by its name, with modules beside `pipeline.toml` importable.

A finder on `sys.meta_path` makes the folder's modules importable, after everything that is installed, while the
function is looked up and while it runs (it may import more then). Nothing stays behind but the imported modules. Each
use has a finder of its own, so that two queries in one process do not end each other's.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.errors import SinkError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType


@dataclass(frozen=True, slots=True, eq=False)
class _FolderFinder:
    """Finds top-level modules in one folder; what lies in a package is found through the package."""

    folder: Path

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module is to be loaded from, or None."""
        return PathFinder.find_spec(name, [str(self.folder)], target) if path is None else None


@contextmanager
def import_from(folder: Path | None) -> Iterator[None]:
    """Let modules of the folder be imported inside the block."""
    if folder is None:
        yield
        return
    finder = _FolderFinder(folder)
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def import_function(name: str, folder: Path | None = None) -> Callable[..., object]:
    """Return the function that `package.module:name` names; `name` may have dots, for a member of a class."""
    module, colon, path = name.partition(":")
    if not (module and colon and path):
        msg = f"`{name}` names no function; write `package.module:name`"
        raise SinkError(msg)
    try:
        with import_from(folder):
            member: Any = importlib.import_module(module)
    except Exception as problem:
        msg = f"the module of the sink `{name}` cannot be imported: {type(problem).__name__}: {problem}"
        raise SinkError(msg) from problem
    for part in path.split("."):
        member = getattr(member, part, None)
    if not callable(member):
        msg = f"the sink `{name}` is no function: `{module}` has nothing of that name that can be called"
        raise SinkError(msg)
    return member  # type: ignore[no-any-return]
