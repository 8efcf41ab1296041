"""Studies of papers, for `tidings bench list` and `tidings bench run papers/KEY`.

They belong to a checkout, which the installed package does not contain: `benchmarks/papers/KEY` measures, and the
package `benchmarks.studies`, imported from the checkout that a command is called in, runs, prints and writes it.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from tidings.errors import TidingsError

PACKAGE, STUDY_PREFIX = "benchmarks", "papers/"
"""The package of a checkout that has studies, and the prefix of their keys."""


def list_studies() -> list[Any]:
    """Return the studies of the checkout that this folder is in, each with `key` and `title`; outside one, none."""
    root = _find_checkout()
    studies: list[Any] = [] if root is None else _import_from(root, "study").list_studies(root)
    return studies


def run(key: str, scale: str, *, seed: int, out: Path | None, as_json: bool) -> None:
    """Run a study of the checkout that this folder is in at a scale of `quick`, `usual` or `full`."""
    root = _find_checkout()
    if root is None:
        msg = (
            f"`{key}` is a study of a paper, and studies are in a checkout of Tidings, under `{PACKAGE}/papers`;"
            f" `{Path.cwd()}` is in none. Clone the repository, and run this inside it"
        )
        raise TidingsError(msg)
    scale = _import_from(root, "study").Scale(scale)
    _import_from(root, "run_study").run(root, key, scale, seed=seed, out=out, as_json=as_json)


def _find_checkout() -> Path | None:
    """Return the folder, this one or the nearest above, that has studies."""
    start = Path.cwd().resolve()
    runner = Path(PACKAGE, "studies", "run_study.py")
    return next((folder for folder in (start, *start.parents) if (folder / runner).is_file()), None)


def _import_from(root: Path, module: str) -> ModuleType:
    """Import a module of the checkout's studies, even if another package called `benchmarks` was imported before."""
    package = sys.modules.get(PACKAGE)
    if package is not None and str(root / PACKAGE) not in list(getattr(package, "__path__", [])):
        for other in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
            del sys.modules[other]
    # Stays there: studies import each other when they run, and so do the processes that they spawn with this path.
    if str(root) not in sys.path[:1]:
        sys.path.insert(0, str(root))
    importlib.invalidate_caches()
    return importlib.import_module(f"{PACKAGE}.studies.{module}")
