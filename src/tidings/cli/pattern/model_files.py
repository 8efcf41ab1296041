"""Where models are read from and written to, with words for what goes wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.cli import render
from tidings.cli.pattern import pattern_origin
from tidings.errors import FileError, StateError
from tidings.forecast import Model
from tidings.forecast.model import pattern_key
from tidings.forecast.model_file import MAGIC

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
    unknown = [one.name for one in detector.watched if pattern_key(one.pattern, one.mode) not in model.patterns]
    if unknown:
        names = ", ".join(f"`{name}`" for name in unknown[:SHOWN]) + " and others" * (len(unknown) > SHOWN)
        render.warning(
            f"the model has counted nothing of {names}; how often their filters are satisfied is all there is"
        )


def check_place(path: Path) -> None:
    """Refuse a place where no model can go, before hours of work."""
    pattern_origin.check_place(path, magic=MAGIC, called="model")


def write(model: Model, path: Path) -> int:
    """Write a model, whole or not at all; return how many bytes it has."""
    try:
        model.save(path)
        return path.stat().st_size
    except FileError:
        raise
    except (OSError, ValueError) as problem:
        raise pattern_origin.unwritable(path, problem, "model") from problem
