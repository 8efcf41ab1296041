"""Training: a model of a detector's patterns from a history of events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from tidings.errors import TidingsError
from tidings.forecast.detector import Detector
from tidings.forecast.horizon import Horizon, HorizonLike
from tidings.forecast.learning.learner import Learner, LearningObserver
from tidings.forecast.model import Model
from tidings.model import Event
from tidings.patterns import Detections, Run

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from tidings.patterns.run.event_reader import Events


BatchListener: TypeAlias = "Callable[[Detections, datetime | None], object]"
"""Is called after each batch with what was late or bad in it, and the latest time before it."""


def train(
    detector: Detector,
    history: Events | Iterator[Events],
    *,
    context: int = 3,
    smoothing: float = 0.5,
    half_life: timedelta | str | int | None = None,
    estimator: str = "both",
    horizons: Iterable[HorizonLike] = (),
    progress: Callable[[int], object] | None = None,
) -> Model:
    """Return a model of the detector's patterns, counted over a history; what the detector has seen stays as it is.

    `history` is what `detect_many` takes, or an iterator of such batches. `context` is how many events are looked back
    beside the pattern's own state, `smoothing` how much is expected before anything is counted (0: nothing),
    `half_life` after how many events, or how long a time, a count is worth half. `estimator` is `both`, `chain`,
    `direct` or `printed` (the paper's formulas as they stand there). Spans among `horizons`, and those that patterns
    were added with, are counted directly; horizons in events always are, up to 1,000. `progress` is told how many
    events were taken so far.

    >>> import tidings as td
    >>> watch = td.Detector()
    >>> pair = '''
    ...     a = kind = 'a'
    ...     b = kind = 'b'
    ...     a , b
    ... '''
    >>> watch.add("pair", pair)
    >>> model = td.train(watch, [{"kind": kind} for kind in "abab"], context=0, smoothing=0, estimator="chain")
    >>> watch = td.Detector(model=model)
    >>> watch.add("pair", pair)
    >>> watch.forecast("pair", horizon=2)[0].probability
    1.0
    """
    model = Model(context=context, smoothing=smoothing, half_life=half_life, estimator=estimator)
    return extend_model(model, detector, history, horizons=horizons, progress=progress)


def extend_model(
    model: Model,
    detector: Detector,
    history: Events | Iterator[Events],
    *,
    horizons: Iterable[HorizonLike] = (),
    progress: Callable[[int], object] | None = None,
    listener: BatchListener | None = None,
) -> Model:
    """Return a model with the counts of a further history, one that begins anew.

    With a `listener`, bad events are left out instead of raised.
    """
    if not isinstance(detector, Detector):
        msg = f"what is trained is a td.Detector with its patterns, not `{detector!r}`"
        raise TidingsError(msg)
    if isinstance(horizons, str) or not isinstance(horizons, Iterable):
        msg = f"horizons are a list, such as [10, '5 min'], not `{horizons}`"
        raise TidingsError(msg)
    if not len(detector):
        msg = "the detector has no patterns to train; add them first"
        raise TidingsError(msg)
    all_horizons = [*map(Horizon.of, horizons), *detector.horizons().values()]
    spans = {horizon.amount for horizon in all_horizons if horizon.unit == "time"}
    patterns = detector.share_patterns()
    learner = Learner(model, patterns, spans=spans, tuning=detector.forecast_tuning)
    run = Run(patterns, observers=[LearningObserver(learner)], detects=learner.needs_reports)
    for batch in _iterate_batches(history):
        before = run.latest_time
        detections = run.detect_many(batch, collect=listener is not None)
        if listener is not None:
            listener(detections, before)
        if progress is not None:
            progress(learner.now[0] - model.now[0])
    run.close()
    return learner.build_model()


def _iterate_batches(history: Events | Iterator[Events]) -> Iterator[Events]:
    """Yield the history's batches: itself, unless it is an iterator of batches."""
    if not hasattr(history, "__next__"):
        yield history
        return
    for batch in history:
        if isinstance(batch, Mapping | Event):
            msg = "an iterator gives batches, lists or tables of events, not one event after the other; list(...) it"
            raise TidingsError(msg)
        yield batch
