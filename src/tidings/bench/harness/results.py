"""Results of a run: one for each matcher, baseline and peer, kept as JSON lines with the circumstances of the run."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.bench.harness.timing import Figure
from tidings.errors import FileError
from tidings.installation import find_version
from tidings.matcher.loading.row_readers import refuse_failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

BATCH = "batch"
"""The figure that ratios are computed from: time per event in batches."""

FIGURES = {
    "build_columns": "build, columns",
    "build_text": "build, text",
    "build_filters": "build, filters",
    "bytes": "bytes / sub",
    "single": "single / event",
    BATCH: "batch / event",
    "to_arrow": "to_arrow / event",
    "matches": "matches / event",
    "insert": "insert / row",
    "delete": "delete / row",
}
"""Every figure with its label in tables, in the order of the rows."""


class Role(StrEnum):
    """What kind of subject a result belongs to."""

    MATCHER = "matcher"
    BASELINE = "baseline"
    PEER = "peer"


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of one matcher, baseline or peer with `n` subscriptions.

    `ratios` give, for each other subject, how many times longer it took for an event in a batch. `note` is what a
    reader must know to trust the figures: a sample, fewer subscriptions, how memory was measured. `right` is false
    for a peer whose answers differ from the scan's; no ratio is computed from its time.
    """

    workload: str
    n: int
    subject: str
    role: Role
    events: int
    figures: dict[str, Figure]
    ratios: dict[str, float] = field(default_factory=dict)
    note: str = ""
    right: bool = True

    def to_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        figures = {name: figure.to_dict() for name, figure in self.figures.items()}
        return {name: getattr(self, name) for name in self.__slots__} | {"role": str(self.role), "figures": figures}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Result:
        """Rebuild a result from `to_dict`; other keys, such as `run`, are ignored."""
        figures = {name: Figure.from_dict(figure) for name, figure in record["figures"].items()}
        values = {name: record[name] for name in cls.__slots__}
        return cls(**values | {"role": Role(record["role"]), "figures": figures})


def describe_run(command: str, **settings: object) -> dict[str, object]:
    """Return the circumstances that a figure is meaningless without: machine, date, command and versions."""
    from tidings import __version__

    packages = ("numpy", "numba", "pyarrow", "mokaccino", "duckdb")
    return {
        "command": command,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": __version__,
        "machine": describe_machine(),
        "python": platform.python_version(),
        "packages": {name: version for name in packages if (version := find_version(name))},
        **settings,
    }


def describe_machine() -> str:
    """Return the processor's name with the numbers of its cores and its memory."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text(encoding="utf-8").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    try:
        memory = f", {os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    except (ValueError, OSError, AttributeError):
        memory = ""
    return f"{model}, {os.cpu_count()} cores{memory}"


def write_results(results: Iterable[Result], path: Path, *, run: Mapping[str, object]) -> None:
    """Write the results, a line of JSON each, with the circumstances of the run in every one."""
    lines = [json.dumps({**result.to_dict(), "run": run}, ensure_ascii=False) for result in results]
    with refuse_failure(f"write the results to `{path}`"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_results(path: Path) -> list[Result]:
    """Read a file written by `write_results`."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [Result.from_dict(json.loads(line)) for line in lines if line.strip()]
    except OSError as problem:
        msg = f"cannot read `{path}`: {problem.strerror}"
        raise FileError(msg) from problem
    except (ValueError, KeyError, TypeError) as problem:
        msg = f"`{path}` is not a file of results; `tidings bench run KEY --out FOLDER` writes one"
        raise FileError(msg) from problem
