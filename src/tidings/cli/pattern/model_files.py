"""Models read from files and written to files, with messages for what goes wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.cli import render
from tidings.cli.pattern.pattern_origin import check_target, make_write_error
from tidings.errors import FileError, StateError
from tidings.forecast import Model
from tidings.forecast.model import pattern_key
from tidings.forecast.model_file import MAGIC

if TYPE_CHECKING:
    from pathlib import Path

    from tidings.forecast import Detector

MAX_NAMED = 5
"""Patterns that a warning names."""


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
        if pattern_key(pattern.pattern, pattern.mode) not in model.patterns
    ]
    if uncounted:
        names = ", ".join(f"`{name}`" for name in uncounted[:MAX_NAMED])
        names += " and others" * (len(uncounted) > MAX_NAMED)
        render.warn(f"the model has counted nothing of {names}; how often their filters are satisfied is all there is")


def check_model_target(path: Path) -> None:
    """Refuse a path where no model can be written, before hours of work."""
    check_target(path, magic=MAGIC, called="model")


def save_model(model: Model, path: Path) -> int:
    """Write a model, whole or not at all; return its size in bytes."""
    try:
        model.save(path)
        return path.stat().st_size
    except FileError:
        raise
    except (OSError, ValueError) as problem:
        raise make_write_error(path, problem, "model") from problem
