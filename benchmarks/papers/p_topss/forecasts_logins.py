"""How likely a series of failed logins is to end in a success: `python -m benchmarks.papers.p_topss.forecasts_logins`.

The logs and patterns are those of `logins`. A model of the first tenth of a log goes on learning through the rest, so
every forecast is made before what it is about was counted. At each login the address that it came from is forecast:
within so many logins of its own, of the whole log, or within a span of time. What the log ends before is left out. In
the real logs nobody who failed three times got in, so the intrusion is scored in the copy with planted successes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

import tidings as td
from benchmarks.papers.p_topss.logins import LOGS, MINUTE, PATTERNS, build_detector, build_table, plant_attacks, read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.papers.p_topss.logins import Login
    from tidings.forecast import Score

HORIZONS = ("10 own events", "100 events", "5 min")
"""How far ahead: logins of the same address, of the log, and minutes."""

BEGINNING = 10
"""One in so many logins, the first of the log, is trained on alone."""

LEAST = 0.001
"""With fewer matches ahead than this share of the forecasts there is nothing to score."""


@dataclass(frozen=True, slots=True, eq=False)
class PatternForecasts:
    """Forecasts of one pattern whose outcome is known: how likely, and whether it came."""

    p: NDArray[np.float64]
    y: NDArray[np.bool_]


def forecast(logins: list[Login], horizon: str, estimator: str = "both") -> dict[str, PatternForecasts]:
    """Let a detector learn and forecast through a log; return each pattern's forecasts and what became of them."""
    first = len(logins) // BEGINNING
    model = td.train(build_detector(), build_table(logins[:first]), estimator=estimator, horizons=[horizon])
    watch = td.Detector(model=model, learn=True)
    for name, text in PATTERNS.items():
        watch.add(name, text, horizon=horizon, tell="every")
    logins = logins[first:]
    detections = watch.detect_many(build_table(logins))
    matches: dict[str, list[int]] = {name: [] for name in PATTERNS}
    for detection in detections:
        matches[detection.pattern].append(max(detection.events))
    rows = detections.forecasts.to_arrow()
    ahead = Ahead(logins)
    forecasts = {}
    for name in PATTERNS:
        mine = rows.filter(pc.equal(rows["pattern"], name))
        event, p = mine["event"].to_numpy(), mine["probability"].to_numpy()
        decided, came = ahead.find_outcomes(matches[name], horizon)
        forecasts[name] = PatternForecasts(p[decided[event]], came[event][decided[event]])
    return forecasts


class Ahead:
    """What lies ahead of each login: by logins of its own address, by logins of the log, and by seconds."""

    def __init__(self, logins: Sequence[Login]) -> None:
        """Number the logins of each address."""
        numbers: dict[str, int] = {}
        self.address = np.array([numbers.setdefault(login.ip, len(numbers)) for login in logins], np.int64)
        self.time = np.array([login.at for login in logins], np.int64)
        self.own = np.empty(len(logins), np.int64)
        for address in range(len(numbers)):
            mine = np.flatnonzero(self.address == address)
            self.own[mine] = np.arange(len(mine))

    def find_outcomes(self, matches: Sequence[int], horizon: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return of each login whether the log shows the whole horizon, and whether its address has a match in it."""
        decided, came = np.zeros((2, len(self.own)), np.bool_)
        measure, most = self._measure(horizon)
        for address in range(int(self.address.max(initial=-1)) + 1):
            mine = np.flatnonzero(self.address == address)
            ends = np.array(sorted(match for match in matches if self.address[match] == address), np.int64)
            following = np.searchsorted(ends, mine, side="right")
            later = following < len(ends)
            came[mine[later]] = measure[ends[following[later]]] - measure[mine[later]] <= most
            last = measure[mine[-1]] if "own" in horizon else measure[-1]
            decided[mine] = last - measure[mine] >= most
        return decided, came

    def _measure(self, horizon: str) -> tuple[NDArray[np.int64], int]:
        """Return how far on each login is, and how far ahead is looked."""
        most = int(horizon.split(maxsplit=1)[0])
        if "min" in horizon:
            return self.time, most * MINUTE
        return (self.own if "own" in horizon else np.arange(len(self.own))), most


# Telling ---------------------------------------------------------------------------------------


def format_report(names: Sequence[str] = tuple(LOGS)) -> list[str]:
    """Return a line for each log, pattern and horizon: Brier score, its skill, and the area under the curve."""
    lines = []
    for name in names:
        real = read(name)
        for title, logins in ((name, real), (f"{name} with planted successes", plant_attacks(real))):
            for horizon in HORIZONS:
                ours, paper = (forecast(logins, horizon, estimator) for estimator in ("both", "printed"))
                wanted = PATTERNS if logins is real else ("intrusion",)
                lines += [_format_line(title, pattern, horizon, ours[pattern], paper[pattern]) for pattern in wanted]
    return lines


def _format_line(title: str, pattern: str, horizon: str, ours: PatternForecasts, paper: PatternForecasts) -> str:
    head = f"{title}: {pattern} within {horizon}"
    score = td.score(ours.p, ours.y)
    if not score.n or score.base_rate < LEAST:
        times = int(ours.y.sum())
        return f"{head}: in {score.n:,} forecasts it came {times} times; the greatest is {_find_highest(ours):.3f}"
    printed = td.score(paper.p, paper.y)
    text = f"{head}: {score.n:,} forecasts, base rate {score.base_rate:.3f}"
    return f"{text}; {_format_scores(score)}; as printed: {_format_scores(printed)}"


def _format_scores(score: Score) -> str:
    return f"Brier {score.brier:.4f}, skill {score.skill:+.3f}, AUC {score.auc:.3f}"


def _find_highest(forecasts: PatternForecasts) -> float:
    return float(forecasts.p.max(initial=0.0))


def main() -> None:
    """Print them."""
    print("\n".join(format_report()))


if __name__ == "__main__":
    main()
