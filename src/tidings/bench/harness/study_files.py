"""Where studies are: `benchmarks/papers/KEY/run.py` of a checkout, which is no part of the installed package."""

from __future__ import annotations

import ast
import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tidings.concepts.spelling import did_you_mean
from tidings.errors import FileError, TidingsError

if TYPE_CHECKING:
    from types import ModuleType

    from tidings.bench.harness.studies import StudyOf

PREFIX = "papers/"
"""A key of `tidings bench run` that begins so is a study's."""

PACKAGE = "benchmarks"


@dataclass(frozen=True, slots=True)
class Place:
    """A study in a checkout: `root` is the checkout, `key` the name of its folder."""

    root: Path
    key: str

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self.root / PACKAGE / "papers" / self.key

    @property
    def claims(self) -> Path:
        """Its claims."""
        return self.folder / "claims.toml"

    @property
    def title(self) -> str:
        """The `TITLE` of its `run.py`, which is read and not run: a listing should not load a laboratory."""
        try:
            written = ast.parse((self.folder / "run.py").read_text(encoding="utf-8"))
        except (OSError, ValueError, SyntaxError):
            return ""
        for line in written.body:
            match line:
                case ast.Assign(targets=[ast.Name("TITLE")], value=ast.Constant(str(title))):
                    return title
                case ast.AnnAssign(target=ast.Name("TITLE"), value=ast.Constant(str(title))):
                    return title
        return ""

    def study(self) -> StudyOf:
        """Load its `run.py` and return what measures."""
        module = _imported(self.root, f"{PACKAGE}.papers.{self.key}.run")
        made: StudyOf | None = getattr(module, "study", None)
        if not callable(made) or not isinstance(getattr(module, "TITLE", None), str):
            msg = f"`{self.folder / 'run.py'}` is no study; it must have `TITLE` and `study(scale, *, seed, say)`"
            raise FileError(msg)
        return made


def studies(start: Path) -> list[Place]:
    """Return the studies of the checkout that a folder is in, by key; outside a checkout, none."""
    root = checkout(start)
    if root is None:
        return []
    found = sorted((root / PACKAGE / "papers").glob("*/run.py"))
    return [Place(root, path.parent.name) for path in found if path.parent.name.isidentifier()]


def study_place(key: str, start: Path) -> Place:
    """Return the study of a key such as `papers/hem`; that of `papers/p-topss` is in the folder `p_topss`."""
    name = key.removeprefix(PREFIX).replace("-", "_")
    if checkout(start) is None:
        msg = (
            f"`{key}` is a study of a paper, and studies are in a checkout of Tidings, under `{PACKAGE}/papers`;"
            f" `{start}` is in none. Clone the repository, and run this inside it"
        )
        raise TidingsError(msg)
    there = {place.key: place for place in studies(start)}
    if name not in there:
        listed = ", ".join(f"`{PREFIX}{one}`" for one in there) or "none yet"
        guess = did_you_mean(key, [f"{PREFIX}{one}" for one in there])
        msg = f"unknown study `{key}`{guess}; there are {listed}"
        raise TidingsError(msg)
    return there[name]


def checkout(start: Path) -> Path | None:
    """Return the folder, this one or the nearest above, that has studies."""
    here = start.resolve()
    return next((folder for folder in (here, *here.parents) if (folder / PACKAGE / "papers").is_dir()), None)


def _imported(root: Path, name: str) -> ModuleType:
    """Import a module of the checkout, whatever else is called `benchmarks` on this machine."""
    known = sys.modules.get(PACKAGE)
    if known is not None and str(root / PACKAGE) not in list(getattr(known, "__path__", [])):
        for other in [one for one in sys.modules if one == PACKAGE or one.startswith(f"{PACKAGE}.")]:
            del sys.modules[other]
    if str(root) not in sys.path[:1]:
        sys.path.insert(0, str(root))
    importlib.invalidate_caches()
    return importlib.import_module(name)
