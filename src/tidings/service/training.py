"""A model of all patterns of a store, from a history of events: what turns forecasts from `learning` to `active`.

`read_written` makes a pattern of a subscription for pipelines too, bound to its owner, so the model knows the patterns
that they run. A pattern that several subscribe to is counted once. The model's file is put in place by a rename; a
running pipeline takes it for its next batch, and sets the statuses.

    model = train_store(store, read_history(sorted(events.glob("*.jsonl"))), settings.vocabulary, time="time")
    model.save(settings.data / "patterns.model")

All patterns of a store are counted together in one pass over the history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.errors import TidingsError
from tidings.forecast import Detector, Horizon, Model
from tidings.forecast.learning.training import extend_model
from tidings.forecast.model import make_pattern_key
from tidings.lang.patterns.notations import read_pattern
from tidings.matcher.loading.documents import PAYLOAD, BadDocument, parse_document
from tidings.patterns.pattern_set import check_pattern
from tidings.service.filter_admission import check_stored_form
from tidings.service.owner_bounds import bind_pattern_to_owner, parse_bound
from tidings.service.pattern_bounds import check_pattern_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from tidings.concepts import Vocabulary
    from tidings.errors import FilterWarning
    from tidings.lang import WrittenPattern
    from tidings.model import Filter
    from tidings.service.store.base import RunningSubscription, Store
    from tidings.service.subscription import SubscriptionKind

KINDS: tuple[SubscriptionKind, ...] = ("pattern", "forecast")
"""The kinds of subscriptions that are about patterns."""

MODE, LIMIT = "restart", 100
"""The mode of a pattern that names none, and the most matches that the mode `any` reports at one event."""

LATENESS = "10 s"
"""How far events of a history may be out of order; those further behind are not counted."""

BATCH = 10_000
"""Events that are counted at once."""


def read_written(
    subscription: RunningSubscription, vocabulary: Vocabulary, bound: Filter | None = None
) -> WrittenPattern:
    """Return a subscription's pattern as pipelines run it; `TidingsError` says why it cannot be.

    `bound` is the parsed `only` of its owner, where the caller has it; else it is parsed.
    """
    warnings: list[FilterWarning] = []  # who wrote it has seen them
    pattern = read_pattern(subscription.text, vocabulary, notation=subscription.notation, warnings=warnings)
    pattern = bind_pattern_to_owner(pattern, bound or parse_bound(subscription.only, vocabulary))
    check_stored_form(pattern)
    mode = subscription.mode or MODE
    written = check_pattern(subscription.engine_id, pattern, mode, LIMIT if mode == "any" else None)
    check_pattern_size(written)
    return written


def train_store(
    store: Store,
    history: Iterator[list[dict[str, Any]]],
    vocabulary: Vocabulary,
    *,
    time: str = "time",
    event_id: str = "id",
    model: Model | None = None,
    progress: Callable[[int], object] | None = None,
) -> Model:
    """Return a model of all patterns of a store, counted over batches of events, about in the order of time.

    What cannot be read is left out: of the history as of the subscriptions. A `model` is extended.
    """
    detector = Detector(time=time, event_id=event_id, lateness=LATENESS, **vocabulary.to_keywords())
    horizons, seen = dict[Horizon, None](), set[str]()
    with store.log.read(None, kinds=KINDS) as changes:
        for subscription in changes.running:
            try:
                written = read_written(subscription, vocabulary)
                horizon = None if subscription.horizon is None else Horizon.of(subscription.horizon)
                key = make_pattern_key(written.pattern, written.mode)
                if key not in seen:
                    detector.add_many([written])
            except TidingsError:
                continue  # the pipeline has reported it
            seen.add(key)
            if horizon is not None and horizon.unit == "time":
                horizons[horizon] = None
    return extend_model(
        model or Model(), detector, history, horizons=list(horizons), progress=progress, listener=lambda *_: None
    )


def read_history(files: Iterable[Path]) -> Iterator[list[dict[str, Any]]]:
    """Yield the events of files of JSON lines in batches; what is no JSON object is left out."""
    batch: list[dict[str, Any]] = []
    for path in files:
        with path.open(encoding="utf-8", errors="replace", newline="\n") as lines:
            for line in lines:
                document = parse_document(line)
                if not isinstance(document, BadDocument):
                    document.pop(PAYLOAD, None)
                    batch.append(document)
                if len(batch) == BATCH:
                    yield batch
                    batch = []
    if batch:
        yield batch
