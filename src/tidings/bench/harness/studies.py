"""A study repeats a paper's figures: charts of measured lines, and facts that decide the paper's claims.

A checkout has them under `benchmarks/papers/KEY`: `run.py` with `TITLE` and `study(scale, seed=..., say=...)`, and
`claims.toml` beside it, which names for each claim the fact that decides it. `tidings bench run papers/KEY` runs one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from tidings.bench.harness.timing import Figure

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class StudyFunction(Protocol):
        """The function `study` of a `run.py`."""

        def __call__(self, scale: Scale, *, seed: int, say: Callable[[str], None]) -> Study:
            """Measure, and return the charts and facts."""


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
    notes: tuple[str, ...] = field(default=())
