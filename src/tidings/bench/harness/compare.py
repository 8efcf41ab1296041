"""Two runs side by side: what is faster, what is slower, and what is noise.

A figure has changed when the repeats of the two runs do not overlap and the medians lie more than a twentieth
apart; a single repeat has no spread of its own and is given a tenth.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tidings.bench.harness.results import FIGURES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.bench.harness.results import Result
    from tidings.bench.harness.timing import Figure

LEAST = 0.05
"""Changes below this share are noise on any machine of ours."""

SINGLE = 0.1
"""What a single repeat may be off by."""


class Verdict(StrEnum):
    """What became of a figure."""

    NOISE = "noise"
    FASTER = "faster"
    SLOWER = "slower"
    SMALLER = "smaller"
    LARGER = "larger"
    SAME = "same"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class Change:
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
        """How many times the first the second is."""
        return self.after / self.before if self.before else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {**asdict(self), "verdict": str(self.verdict), "ratio": self.ratio}


def compared(before: Iterable[Result], after: Iterable[Result]) -> list[Change]:
    """Return every figure that both runs have."""
    known = {(result.workload, result.n, result.subject): result for result in before}
    changes = []
    for result in after:
        old = known.get((result.workload, result.n, result.subject))
        if old is not None:
            names = [name for name in FIGURES if name in old.figures and name in result.figures]
            changes += [_change(old, result, name) for name in names]
    return changes


def _change(old: Result, new: Result, name: str) -> Change:
    before, after = old.figures[name], new.figures[name]
    # A slow matcher gets as many events as fit its time, and other events have other matches.
    verdict = Verdict.NOISE if name == "matches" and old.events != new.events else judged(name, before, after)
    return Change(new.workload, new.n, new.subject, name, before.median, after.median, after.unit, verdict)


def judged(name: str, old: Figure, new: Figure) -> Verdict:
    """Say what became of a figure."""
    if name == "matches":
        return Verdict.SAME if old.median == new.median else Verdict.DIFFERENT
    better, worse = (Verdict.SMALLER, Verdict.LARGER) if name == "bytes" else (Verdict.FASTER, Verdict.SLOWER)
    (old_low, old_high), (new_low, new_high) = _reach(old), _reach(new)
    if new_high < old_low and new.median < old.median * (1 - LEAST):
        return better
    if new_low > old_high and new.median > old.median * (1 + LEAST):
        return worse
    return Verdict.NOISE


def _reach(figure: Figure) -> tuple[float, float]:
    if len(figure.repeats) > 1:
        return figure.low, figure.high
    return figure.median * (1 - SINGLE), figure.median * (1 + SINGLE)
