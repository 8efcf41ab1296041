"""Where models are read from and written to, with words for what goes wrong."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tidings.cli import render
from tidings.errors import FileError, StateError
from tidings.forecast import Model
from tidings.forecast.files import MAGIC
from tidings.forecast.model import key_of

if TYPE_CHECKING:
    from pathlib import Path

    from tidings.forecast import Detector

SHOWN = 5
"""Patterns that are named."""


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


def warn_of_unknown(model: Model, detector: Detector) -> None:
    """Say on standard error which patterns a model has counted nothing of: what is foretold of them is a guess."""
    unknown = [one.name for one in detector.watched if key_of(one.pattern, one.mode) not in model.known]
    if unknown:
        names = ", ".join(f"`{name}`" for name in unknown[:SHOWN]) + " and others" * (len(unknown) > SHOWN)
        render.warning(
            f"the model has counted nothing of {names}; how often their filters are satisfied is all there is"
        )


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
