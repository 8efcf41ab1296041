"""How good forecasts were: probabilities against what then happened, and alarms against matches.

`score` judges each forecast by itself: `p` is the probability told at an event, `y` whether the match came within the
horizon, as plain lists, numpy arrays or Arrow arrays. What is not yet decided (the last events of a stream) must be
left out of `y`. `AlarmTimes` judge a stream: how early its matches were announced, and how often in vain.
A probability outside [0, 1] is clipped: the formulas of the paper, as printed, exceed 1. Cost: one sort.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import isnan, nan, sqrt
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.errors import BadValue

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tidings.kernels.array_types import BoolArray, FloatArray

LEAST = 1e-15
"""The log loss takes no probability of what happened below this: one sure and wrong forecast costs 34.5, not all."""

KEPT_APART = ("threshold", "n", "clipped", "tp", "fp", "fn", "tn")
"""The fields of a `Score` that are shown as they are; the others are rounded."""


@dataclass(frozen=True, slots=True)
class Score:
    """The scores of forecasts; an alarm is a probability strictly above the threshold.

    `tp fp fn tn` count alarms and silences that were right and wrong. `brier` is the mean squared error, `skill` is
    1 - brier / (brier of always telling the base rate of `y`), `log_loss` is in nats, `auc` is the chance that a
    forecast before a match is above one before none (equal ones count half). `clipped` is how many lay outside [0, 1].

    Where a number is not defined it is nan: precision without an alarm, recall without a match, skill and AUC where
    all of `y` is the same, and every one of them without forecasts. F1 and MCC are 0 where they divide by nothing.
    """

    threshold: float
    n: int
    base_rate: float
    tp: int
    fp: int
    fn: int
    tn: int
    precision: float
    recall: float
    f1: float
    mcc: float
    brier: float
    skill: float
    log_loss: float
    auc: float
    clipped: int = 0

    def to_dict(self) -> dict[str, float | None]:
        """Return plain values, for JSON: what is not defined is None."""
        return {name: None if isnan(getattr(self, name)) else getattr(self, name) for name in _NAMES}

    def __str__(self) -> str:
        names, values = ["", *_NAMES], ["score", *(_format_value(name, getattr(self, name)) for name in _NAMES)]
        name_width, width = max(map(len, names)), max(map(len, values))
        return "\n".join(f"{name:{name_width}}  {value:>{width}}" for name, value in zip(names, values, strict=True))


def score(p: ArrayLike, y: ArrayLike, threshold: float = 0.5) -> Score:
    """Return the scores of probabilities `p` against outcomes `y` (0 and 1, or booleans).

    Use it to compare models on the same events. To see how far a probability can be trusted, use
    `measure_reliability`.

    >>> result = score([0.9, 0.6, 0.2, 0.1], [1, 0, 1, 0])
    >>> result.tp, result.fp, result.fn, result.tn, result.precision, result.auc, round(result.brier, 3)
    (1, 1, 1, 1, 0.5, 0.75, 0.255)
    """
    raw, happened = check_pairs(p, y)
    forecasts, limit = raw.clip(0.0, 1.0), check_threshold(threshold)
    tp, fp, fn, tn = _count_confusion(forecasts > limit, happened)
    rate, brier = _compute_mean(happened), _compute_mean((forecasts - happened) ** 2)
    nothing = 0.0 if len(forecasts) else nan  # a model that never fires earns 0, and can be averaged over folds
    return Score(
        threshold=limit,
        n=len(forecasts),
        base_rate=rate,
        tp=tp,
        fp=fp,
        fn=fn,
        tn=tn,
        precision=_divide(tp, tp + fp),
        recall=_divide(tp, tp + fn),
        f1=_divide(2 * tp, 2 * tp + fp + fn, without=nothing),
        mcc=_divide(tp * tn - fp * fn, sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)), without=nothing),
        brier=brier,
        skill=1 - _divide(brier, rate * (1 - rate)),
        log_loss=-_compute_mean(np.log(np.maximum(np.where(happened, forecasts, 1 - forecasts), LEAST))),
        auc=_compute_auc(forecasts, happened),
        clipped=int(np.count_nonzero(forecasts != raw)),
    )


def compare_skill(p: ArrayLike, q: ArrayLike, y: ArrayLike) -> float:
    """Return the Brier skill of forecasts `p` against forecasts `q`: 1 - brier(p) / brier(q).

    Above 0, `p` is the better one. `q` may be one number, such as the base rate of the training data. Where `q` is
    never wrong, or there are no forecasts, the skill is nan.

    >>> compare_skill([0.9, 0.2], 0.5, [1, 0])
    0.9
    """
    first, happened = check_pairs(p, y)
    other = np.full(len(happened), q) if np.ndim(q) == 0 else q
    second, _ = check_pairs(other, happened, name="q")
    ours, theirs = (_compute_mean((forecasts.clip(0.0, 1.0) - happened) ** 2) for forecasts in (first, second))
    return 1 - _divide(ours, theirs)


# The stream's own view: what somebody who is called at each alarm would say of the forecasts.
@dataclass(frozen=True, slots=True)
class AlarmTimes:
    """How a stream's matches were announced: for each, how many events before it the alarm was on; alarms in vain.

    `leads` has None for a match without warning. `alarms` counts the events at which the probability rose above the
    threshold; `false` those of them after which no match came within the horizon; `undecided` those without a match
    so far, less than a horizon before the end. `judged` is how many events lie a whole horizon before the end. The
    sum of two is that of both streams.
    """

    leads: tuple[int | None, ...]
    alarms: int
    false: int
    undecided: int
    judged: int

    @property
    def matches(self) -> int:
        """How many events completed the pattern."""
        return len(self.leads)

    @property
    def warned_count(self) -> int:
        """How many of them had the alarm on before."""
        return sum(lead is not None for lead in self.leads)

    @property
    def share(self) -> float:
        """The share of matches with a warning; nan without matches."""
        return _divide(self.warned_count, self.matches)

    @property
    def lead(self) -> float:
        """The median lead of those with a warning, in events; nan without one."""
        leads = [lead for lead in self.leads if lead is not None]
        return float(median(leads)) if leads else nan

    @property
    def false_per_1000(self) -> float:
        """False alarms in 1,000 events; nan for a stream no longer than the horizon."""
        return _divide(1000 * self.false, self.judged)

    def __add__(self, other: AlarmTimes) -> AlarmTimes:
        return AlarmTimes(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(AlarmTimes)))


def check_pairs(p: ArrayLike, y: ArrayLike, *, name: str = "p") -> tuple[FloatArray, BoolArray]:
    """Return probabilities (not yet clipped) and outcomes as arrays of one length, or refuse them."""
    forecasts, happened = to_numbers(p, name), to_numbers(y, "y")
    if len(forecasts) != len(happened):
        counts = f"`{name}` has {len(forecasts):,} values and `y` has {len(happened):,}"
        msg = f"{counts}; give one outcome for each probability"
        raise BadValue(msg)
    wrong = np.flatnonzero((happened != 0) & (happened != 1))
    if len(wrong):
        msg = f"`y` has `{happened[wrong[0]]:g}` at {wrong[0]}; give 1 where it happened, 0 where not, or booleans"
        raise BadValue(msg)
    return forecasts, happened == 1


def to_numbers(values: ArrayLike, name: str) -> FloatArray:
    """Return one row of numbers as float64; text, tables and missing values are refused."""
    try:
        array = np.asarray(values)
        objects = array if array.dtype.kind == "O" else ()
        if array.ndim != 1 or array.dtype.kind not in "biufO" or any(isinstance(value, str) for value in objects):
            raise TypeError
        column = array.astype(np.float64)
    except (TypeError, ValueError) as problem:
        msg = f"`{name}` is not a row of numbers; give a list, a numpy array or an Arrow array of them"
        raise BadValue(msg) from problem
    missing = np.flatnonzero(np.isnan(column))
    if len(missing):
        msg = f"`{name}` has no number at {missing[0]} (nan or null); leave out what has no forecast or no outcome yet"
        raise BadValue(msg)
    return column


def check_threshold(threshold: Any) -> float:
    """Return a threshold within [0, 1], or refuse it."""
    if not isinstance(threshold, (int, float, np.number)) or not 0 <= threshold <= 1:
        msg = f"the threshold `{threshold}` is not a probability; give a number from 0 to 1"
        raise BadValue(msg)
    return float(threshold)


_NAMES = tuple(field.name for field in fields(Score))


def _format_value(name: str, value: float) -> str:
    if isnan(value):
        return "-"
    return f"{value:,}" if name in KEPT_APART else f"{value:.4f}"


def _compute_mean(values: FloatArray | BoolArray) -> float:
    return float(values.mean()) if len(values) else nan


def _divide(part: float, whole: float, *, without: float = nan) -> float:
    return part / whole if whole else without


def _count_confusion(alarms: BoolArray, happened: BoolArray) -> tuple[int, int, int, int]:
    """Return true and false positives, false and true negatives."""
    tp = int(np.count_nonzero(alarms & happened))
    fp, fn = int(np.count_nonzero(alarms)) - tp, int(np.count_nonzero(happened)) - tp
    return tp, fp, fn, len(happened) - tp - fp - fn


def _compute_auc(forecasts: FloatArray, happened: BoolArray) -> float:
    """Return the share of pairs (one that happened, one that did not) in the right order, by one pass over values."""
    _, places = np.unique(forecasts, return_inverse=True)
    ones = np.bincount(places[happened], minlength=len(forecasts))
    noughts = np.bincount(places[~happened], minlength=len(forecasts))
    below = np.cumsum(noughts) - noughts
    return _divide(float(np.dot(ones, below + noughts / 2)), int(ones.sum()) * int(noughts.sum()))
