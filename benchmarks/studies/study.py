"""A study repeats a paper's figures: charts of measured lines, and facts that decide the paper's claims.

It is a folder of `benchmarks/papers`: `run.py` with `TITLE` and `study(scale, seed=..., say=...)`, and `claims.toml`
beside it, which names for each claim the fact that decides it. `tidings bench run papers/KEY` runs one.
"""

from __future__ import annotations

import ast
import importlib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from benchmarks.studies.charts import Chart
from tidings.cli.bench.studies import STUDY_PREFIX
from tidings.concepts.spelling import did_you_mean
from tidings.errors import FileError, TidingsError

if TYPE_CHECKING:
    from collections.abc import Callable


class Scale(StrEnum):
    """How much of a paper's experiment is run."""

    QUICK = "quick"
    """Small sizes and few repeats: some minutes on two cores, shapes and ratios only."""
    USUAL = "usual"
    """Sizes large enough to draw conclusions, within half an hour or so."""
    FULL = "full"
    """The paper's own ranges, however long they take."""


@dataclass(frozen=True, slots=True)
class Study:
    """The outcome of a study; `notes` tell a reader what was changed, scaled or left out."""

    title: str
    charts: tuple[Chart, ...]
    facts: dict[str, float]
    notes: tuple[str, ...] = ()


StudyFunction: TypeAlias = "Callable[..., Study]"
"""The function `study` of a `run.py`: it takes the scale, and the keywords `seed` and `say`."""


# Finding them ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StudyFolder:
    """A study in a checkout: `root` is the checkout, `key` the name of the study's folder."""

    root: Path
    key: str

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return self.root / "benchmarks" / "papers" / self.key

    @property
    def claims(self) -> Path:
        """The path of its claims."""
        return self.folder / "claims.toml"

    @property
    def title(self) -> str:
        """The `TITLE` of its `run.py`, which is parsed and not run: a listing should not import every study."""
        try:
            tree = ast.parse((self.folder / "run.py").read_text(encoding="utf-8"))
        except (OSError, ValueError, SyntaxError):
            return ""
        for statement in tree.body:
            match statement:
                case ast.Assign(targets=[ast.Name("TITLE")], value=ast.Constant(str(title))):
                    return title
        return ""

    def load(self) -> StudyFunction:
        """Import its `run.py` and return the function that measures."""
        module = importlib.import_module(f"benchmarks.papers.{self.key}.run")
        study: StudyFunction | None = getattr(module, "study", None)
        if not callable(study) or not isinstance(getattr(module, "TITLE", None), str):
            msg = f"`{self.folder / 'run.py'}` is no study; it must have `TITLE` and `study(scale, *, seed, say)`"
            raise FileError(msg)
        return study


def list_studies(root: Path) -> list[StudyFolder]:
    """Return the studies of a checkout, by key."""
    paths = sorted((root / "benchmarks" / "papers").glob("*/run.py"))
    return [StudyFolder(root, path.parent.name) for path in paths if path.parent.name.isidentifier()]


def find_study(root: Path, key: str) -> StudyFolder:
    """Return the study of a key such as `papers/hem`; that of `papers/p-topss` is in the folder `p_topss`."""
    name = key.removeprefix(STUDY_PREFIX).replace("-", "_")
    studies = {study.key: study for study in list_studies(root)}
    if name not in studies:
        keys = [f"{STUDY_PREFIX}{other}" for other in studies]
        listed = ", ".join(f"`{other}`" for other in keys) or "none yet"
        guess = did_you_mean(key, keys)
        msg = f"unknown study `{key}`{guess}; there are {listed}"
        raise TidingsError(msg)
    return studies[name]
