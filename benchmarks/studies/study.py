"""A study repeats a paper's figures: charts of measured lines, and facts that decide the paper's claims.

A checkout has them under `benchmarks/papers/KEY`, which is no part of the installed package: `run.py` with `TITLE` and
`study(scale, seed=..., say=...)`, and `claims.toml` beside it, which names for each claim the fact that decides it.
`tidings bench run papers/KEY` runs one.
"""

from __future__ import annotations

import ast
import importlib
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tidings.bench.harness.timing import Figure
from tidings.concepts.spelling import did_you_mean
from tidings.errors import FileError, TidingsError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

PREFIX = "papers/"
"""Keys of `tidings bench run` with this prefix name studies."""

PACKAGE = "benchmarks"


class Scale(StrEnum):
    """How much of a paper's experiment is run."""

    QUICK = "quick"
    """Small sizes and few repeats: some minutes on two cores, shapes and ratios only."""
    USUAL = "usual"
    """Sizes large enough to draw conclusions, within half an hour or so."""
    FULL = "full"
    """The paper's own ranges, however long they take."""


@dataclass(frozen=True, slots=True)
class Line:
    """One curve: its name, and a figure for each x."""

    name: str
    points: tuple[tuple[float, Figure], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """One figure of a paper: `key` names its file (`figure-5`), `x` and `y` its axes with their units."""

    key: str
    title: str
    x: str
    y: str
    lines: tuple[Line, ...]
    log_x: bool = False
    log_y: bool = False
    note: str = ""


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
        return self.root / PACKAGE / "papers" / self.key

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
        module = _import_from(self.root, f"{PACKAGE}.papers.{self.key}.run")
        study: StudyFunction | None = getattr(module, "study", None)
        if not callable(study) or not isinstance(getattr(module, "TITLE", None), str):
            msg = f"`{self.folder / 'run.py'}` is no study; it must have `TITLE` and `study(scale, *, seed, say)`"
            raise FileError(msg)
        return study


def list_studies(start: Path) -> list[StudyFolder]:
    """Return the studies of the checkout that a folder is in, by key; outside a checkout, none."""
    root = find_checkout(start)
    if root is None:
        return []
    paths = sorted((root / PACKAGE / "papers").glob("*/run.py"))
    return [StudyFolder(root, path.parent.name) for path in paths if path.parent.name.isidentifier()]


def find_study(key: str, start: Path) -> StudyFolder:
    """Return the study of a key such as `papers/hem`; that of `papers/p-topss` is in the folder `p_topss`."""
    name = key.removeprefix(PREFIX).replace("-", "_")
    if find_checkout(start) is None:
        msg = (
            f"`{key}` is a study of a paper, and studies are in a checkout of Tidings, under `{PACKAGE}/papers`;"
            f" `{start}` is in none. Clone the repository, and run this inside it"
        )
        raise TidingsError(msg)
    studies = {study.key: study for study in list_studies(start)}
    if name not in studies:
        keys = [f"{PREFIX}{other}" for other in studies]
        listed = ", ".join(f"`{other}`" for other in keys) or "none yet"
        guess = did_you_mean(key, keys)
        msg = f"unknown study `{key}`{guess}; there are {listed}"
        raise TidingsError(msg)
    return studies[name]


def find_checkout(start: Path) -> Path | None:
    """Return the folder, this one or the nearest above, that has studies."""
    start = start.resolve()
    return next((folder for folder in (start, *start.parents) if (folder / PACKAGE / "papers").is_dir()), None)


def _import_from(root: Path, name: str) -> ModuleType:
    """Import a module of the checkout, even if another package called `benchmarks` was imported before."""
    package = sys.modules.get(PACKAGE)
    if package is not None and str(root / PACKAGE) not in list(getattr(package, "__path__", [])):
        for other in list(sys.modules):
            if other == PACKAGE or other.startswith(f"{PACKAGE}."):
                del sys.modules[other]
    if str(root) not in sys.path[:1]:
        sys.path.insert(0, str(root))
    importlib.invalidate_caches()
    return importlib.import_module(name)
