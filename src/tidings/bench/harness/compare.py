"""Two runs side by side: what is faster, what is slower, and what is noise.

A figure has changed when the repeats of the two runs do not overlap and the medians lie more than a twentieth
apart; a single repeat has no spread of its own and is given a tenth.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tidings.bench.harness.results import FIGURES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.bench.harness.results import Result
    from tidings.bench.harness.timing import Figure

LEAST = 0.05
"""Changes below this share are noise on every machine that was tried."""

SINGLE = 0.1
"""Assumed error of a single repeat, as a share."""


class Verdict(StrEnum):
    """How a figure changed from one run to the next."""

    NOISE = "noise"
    FASTER = "faster"
    SLOWER = "slower"
    SMALLER = "smaller"
    LARGER = "larger"
    SAME = "same"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class FigureChange:
    """One figure in both runs."""

    workload: str
    n: int
    subject: str
    figure: str
    before: float
    after: float
    unit: str
    verdict: Verdict

    @property
    def ratio(self) -> float:
        """The second run's figure divided by the first's."""
        return self.after / self.before if self.before else float("nan")

    def to_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return {**asdict(self), "verdict": str(self.verdict), "ratio": self.ratio}


def compare_results(before: Iterable[Result], after: Iterable[Result]) -> list[FigureChange]:
    """Return the change of every figure that both runs have."""
    earlier = {(result.workload, result.n, result.subject): result for result in before}
    changes = []
    for result in after:
        old = earlier.get((result.workload, result.n, result.subject))
        if old is not None:
            names = [name for name in FIGURES if name in old.figures and name in result.figures]
            changes += [_compare_figure(old, result, name) for name in names]
    return changes


def _compare_figure(old: Result, new: Result, name: str) -> FigureChange:
    before, after = old.figures[name], new.figures[name]
    # A slow matcher gets as many events as fit its budget, and other events have other matches.
    verdict = Verdict.NOISE if name == "matches" and old.events != new.events else judge_figure(name, before, after)
    return FigureChange(new.workload, new.n, new.subject, name, before.median, after.median, after.unit, verdict)


def judge_figure(name: str, old: Figure, new: Figure) -> Verdict:
    """Return how a figure changed; `name` says whether less is faster, smaller or simply different."""
    if name == "matches":
        return Verdict.SAME if old.median == new.median else Verdict.DIFFERENT
    better, worse = (Verdict.SMALLER, Verdict.LARGER) if name == "bytes" else (Verdict.FASTER, Verdict.SLOWER)
    (old_low, old_high), (new_low, new_high) = _find_range(old), _find_range(new)
    if new_high < old_low and new.median < old.median * (1 - LEAST):
        return better
    if new_low > old_high and new.median > old.median * (1 + LEAST):
        return worse
    return Verdict.NOISE


def _find_range(figure: Figure) -> tuple[float, float]:
    if len(figure.repeats) > 1:
        return figure.low, figure.high
    return figure.median * (1 - SINGLE), figure.median * (1 + SINGLE)
