"""Detectors' states and models as files: read, checked before hours of work, and written, with messages for failures.

A state is written to a temporary file and then renamed, so that an interrupted command leaves the old one or the new
one; so is a model, by its own `save`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tidings.cli import render
from tidings.engine.persist.mapped_arrays import write_atomically
from tidings.errors import FileError, StateError
from tidings.forecast import Model
from tidings.forecast.model import make_pattern_key
from tidings.forecast.model_file import MAGIC as MODEL_MAGIC
from tidings.matcher.loading.row_readers import refuse_failure
from tidings.patterns.state.graph_bytes import MAGIC as STATE_MAGIC

if TYPE_CHECKING:
    from pathlib import Path

    from tidings.forecast import Detector

MAGICS = {"detector's state": STATE_MAGIC, "model": MODEL_MAGIC}
"""How the files begin."""

MAX_NAMED = 5
"""Patterns that a warning names."""


def read_state(path: Path) -> bytes:
    """Return the bytes of a state."""
    way_out = "; `tidings pattern compile -o STATE` writes a first one"
    with refuse_failure(f"read the state `{path}`", ValueError, way_out=way_out):
        return path.read_bytes()


def check_target(path: Path, kind: str) -> None:
    """Refuse a path that cannot be written, or a file of another kind, before hours of work.

    `kind` is a key of `MAGICS`; a file that begins as one of these is of the same kind, and may be replaced.
    """
    start, magic = b"", MAGICS[kind]
    with refuse_failure(f"write the {kind.rsplit(maxsplit=1)[-1]} to `{path}`", ValueError):
        if path.exists():
            with path.open("rb") as file:
                start = file.read(len(magic))
        elif not os.access(path.parent, os.W_OK):
            raise OSError("its folder cannot be written to")  # noqa: EM101 - becomes the reason
    if start not in (b"", magic):
        msg = f"`{path}` is no {kind}, and would be overwritten; choose another name"
        raise FileError(msg)


def save_state(detector: Detector, path: Path) -> None:
    """Write a detector's state, whole or not at all."""
    with refuse_failure(f"write the state to `{path}`", ValueError):
        write_atomically(path, iter([detector.snapshot()]))


def load_model(path: Path) -> Model:
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


def warn_of_uncounted(model: Model, detector: Detector) -> None:
    """Warn of patterns that a model has not counted: their forecasts are guesses."""
    uncounted = [
        pattern.name
        for pattern in detector.patterns
        if make_pattern_key(pattern.pattern, pattern.mode) not in model.patterns
    ]
    if uncounted:
        names = ", ".join(f"`{name}`" for name in uncounted[:MAX_NAMED])
        names += " and others" * (len(uncounted) > MAX_NAMED)
        render.warn(f"the model has counted nothing of {names}; how often their filters are satisfied is all there is")


def save_model(model: Model, path: Path) -> int:
    """Write a model, whole or not at all; return its size in bytes."""
    with refuse_failure(f"write the model to `{path}`", ValueError):
        model.save(path)
        return path.stat().st_size
