"""Finding studies: `benchmarks/papers/KEY/run.py` of a checkout, which is no part of the installed package."""

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

    from tidings.bench.harness.studies import StudyFunction

PREFIX = "papers/"
"""Keys of `tidings bench run` with this prefix name studies."""

PACKAGE = "benchmarks"


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
                case ast.AnnAssign(target=ast.Name("TITLE"), value=ast.Constant(str(title))):
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
