"""Where models are read from and written to, with words for what goes wrong."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tidings.errors import FileError, StateError
from tidings.forecast import Model
from tidings.forecast.files import MAGIC

if TYPE_CHECKING:
    from pathlib import Path


def read(path: Path) -> Model:
    """Return the model of a file."""
    try:
        return Model.load(path)
    except FileError as problem:
        msg = f"{problem}; `tidings pattern train` writes a model"
        raise FileError(msg) from problem
    except StateError:
        raise
    except ValueError as problem:  # a name that no file can have
        msg = f"cannot read `{path}`: {problem}"
        raise FileError(msg) from problem


def check_place(path: Path) -> None:
    """Refuse a place where no model can go, before hours of work: a folder, or a file that is something else."""
    try:
        begins = _beginning(path)
    except (OSError, ValueError) as problem:
        raise _unwritable(path, problem) from problem
    if begins not in (None, b"", MAGIC):
        msg = f"`{path}` is no model, and would be overwritten; choose another name"
        raise FileError(msg)


def _beginning(path: Path) -> bytes | None:
    if path.exists():
        with path.open("rb") as file:
            return file.read(len(MAGIC))
    if not os.access(path.parent, os.W_OK):
        raise OSError("its folder cannot be written to")  # noqa: EM101 - joins the reasons above
    return None


def write(model: Model, path: Path) -> int:
    """Write a model, whole or not at all; return how many bytes it has."""
    try:
        model.save(path)
        return path.stat().st_size
    except FileError:
        raise
    except (OSError, ValueError) as problem:
        raise _unwritable(path, problem) from problem


def _unwritable(path: Path, problem: Exception) -> FileError:
    reason = (problem.strerror if isinstance(problem, OSError) else None) or problem
    return FileError(f"cannot write the model to `{path}`: {reason}")
