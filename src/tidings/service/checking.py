"""From what somebody sent to a subscription that may be stored: every field checked, all mistakes reported together.

`SubscriptionChecker.check` takes the JSON object of a request or of a line of an import. A filter is judged as a
matcher would that has no other subscription, a pattern as a detector would (`filter_admission`), so nothing that is
stored is refused later. Texts stay as they were written; a filter in JSON is stored as its JSON text.

A checker may be used by several threads; each has its own caches.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from tidings.concepts import did_you_mean
from tidings.errors import FilterWarning, TidingsError
from tidings.forecast.predicting.forecaster import ForecastPlan
from tidings.lang.patterns.notations import read_pattern
from tidings.model import Filter
from tidings.model.patterns import Pattern
from tidings.service.delivery import check_delivery
from tidings.service.filter_admission import FilterAdmission
from tidings.service.owner_bounds import bind_pattern_to_owner, parse_bound
from tidings.service.pattern_bounds import MOST_BYTES
from tidings.service.pattern_model import PatternModel
from tidings.service.refusals import RequestMistake, build_refusal, convert_error, make_mistake
from tidings.service.subscription import SubscriptionDraft, SubscriptionKind, SubscriptionStatus, check_id

if TYPE_CHECKING:
    from tidings.concepts import Vocabulary
    from tidings.service.settings import ServiceSettings

KEYS = (
    "id",
    "filter",
    "pattern",
    "notation",
    "mode",
    "horizon",
    "threshold",
    "name",
    "labels",
    "delivery",
    "expires_at",
    "status",
)
"""What may be written of a subscription."""

READ_ONLY = ("owner", "kind", "created_at", "changed_at", "revision")
"""What only the service writes; it may be sent back, and changes nothing."""

MODEL_FILE = "patterns.model"
"""The model of a service that names none, in its folder; it need not be there."""

MAX_NAME, MAX_LABEL, MAX_LABELS = 200, 64, 32
"""Characters of a name and of a label, and labels of a subscription, at most."""

MODES = ("restart", "overlap", "next", "any")
"""The modes of a pattern."""


def find_model(settings: ServiceSettings) -> Path:
    """Return the path of the model of forecasts; nothing need be there."""
    return Path(settings.patterns.model or settings.data / MODEL_FILE)


@dataclass(frozen=True, slots=True)
class CheckedText:
    """A filter or a pattern that would be taken: its parsed form, and how it is stored."""

    kind: SubscriptionKind
    tree: Filter | Pattern
    text: str
    notation: str
    warnings: tuple[FilterWarning, ...] = ()


class SubscriptionChecker:
    """Checks subscriptions by one vocabulary and, for forecasts, one model."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        model: Path | None = None,
        filter_bytes: int = 200_000,
        events_topic: str | None = None,
    ) -> None:
        """`events_topic` is that of the service's own events, where no delivery may go."""
        self.events_topic = events_topic
        self._vocabulary, self._model_path, self._filter_bytes = vocabulary, model, filter_bytes
        self._model = PatternModel(model)
        self._threads = threading.local()

    @classmethod
    def of(cls, settings: ServiceSettings) -> SubscriptionChecker:
        """Return the checker of a service."""
        return cls(
            settings.vocabulary,
            model=find_model(settings),
            filter_bytes=settings.limits.filter_bytes,
            events_topic=settings.events.topic,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it was made of; caches are each process's own."""
        make = partial(
            SubscriptionChecker,
            model=self._model_path,
            filter_bytes=self._filter_bytes,
            events_topic=self.events_topic,
        )
        return make, (self._vocabulary,)

    def check(
        self,
        body: Any,
        *,
        now: datetime,
        id: str | None = None,
        owner: str | None = None,
        only: str | None = None,
        filter_bytes: int | None = None,
        takes_expired: bool = False,
    ) -> SubscriptionDraft:
        """Return what is stored of a JSON object; `SubscriptionRefused` has every mistake in it.

        `id` stands for one that the object leaves out, and must equal one that it has; `owner` likewise. `only` is what
        the owner may see at all, which is part of the pattern that a forecast is of. With `takes_expired`, a time of
        expiry that is past makes the subscription `expired` instead of refusing it.
        """
        if type(body) is not dict:
            raise build_refusal([RequestMistake("a subscription is a JSON object", at="$")])
        checking = _Checking(self, body, now, only, filter_bytes or self._filter_bytes, takes_expired)
        return checking.build_draft(id, owner)

    def check_text(
        self, kind: str, source: Any, notation: Any, mode: str | None = None, *, filter_bytes: int | None = None
    ) -> CheckedText:
        """Return a filter (`kind` is `filter`) or a pattern that would be taken; `TidingsError` otherwise."""
        text, notation = _write_text(kind, source, notation)
        most = filter_bytes or self._filter_bytes
        most = min(most, MOST_BYTES) if kind == "pattern" else most
        if len(text) > most or (not text.isascii() and len(text.encode()) > most):
            msg = f"the {kind} has more than {most:,} bytes, which is the limit; make several {kind}s of it"
            raise TidingsError(msg)
        if "\0" in text:
            msg = f"the {kind} has a zero byte; write text without it"
            raise TidingsError(msg)
        warnings: list[FilterWarning] = []
        if kind == "filter":
            tree = self.admission.admit(source, notation, warnings)
            return CheckedText("filter", tree, text, notation, tuple(warnings))
        pattern = read_pattern(source, self._vocabulary, notation=notation, warnings=warnings)
        self.admission.admit_pattern(pattern, mode or MODES[0])
        return CheckedText("pattern", pattern, text, notation, tuple(warnings))

    @property
    def admission(self) -> FilterAdmission:
        """The caches of the calling thread."""
        try:
            admission: FilterAdmission = self._threads.admission
        except AttributeError:
            admission = self._threads.admission = FilterAdmission(self._vocabulary)
        return admission

    def find_status(self, pattern: Pattern, mode: str, plan: ForecastPlan, only: str | None) -> SubscriptionStatus:
        """Return `active` for a forecast whose pattern within `only` the model knows, and `learning` for any other."""
        try:
            bound = bind_pattern_to_owner(pattern, parse_bound(only, self._vocabulary))
            return "active" if self._model.knows(bound, mode, plan) else "learning"
        except TidingsError:  # they cannot be put together; the pipeline tells why
            return "learning"

    @staticmethod
    def is_quick(body: Any) -> bool:
        """Tell whether checking takes a fraction of a millisecond, so that an event loop may wait for it."""
        if type(body) is not dict or "pattern" in body:
            return type(body) is not dict
        text = body.get("filter")
        return text is None or (type(text) is str and len(text) <= QUICK_LENGTH)


QUICK_LENGTH = 400
"""Characters of a filter that is checked at once, also where the grammar must read it."""


class _Checking:
    """One object on its way to a draft: what is good of it, and the mistakes so far."""

    def __init__(
        self,
        checker: SubscriptionChecker,
        body: dict[str, Any],
        now: datetime,
        only: str | None,
        filter_bytes: int,
        takes_expired: bool,
    ) -> None:
        self._checker, self._body, self._now, self._only = checker, body, now, only
        self._filter_bytes, self._takes_expired = filter_bytes, takes_expired
        self._mistakes: list[RequestMistake] = []

    def _refuse(self, message: str, field: str) -> None:
        self._mistakes.append(make_mistake(message, at=f"$.{field}", field=field))

    def build_draft(self, id: str | None, owner: str | None) -> SubscriptionDraft:
        """Return the draft, or raise the refusal with all mistakes."""
        body = self._body
        if not body.keys() <= _ALL_KEYS:
            self._refuse_unknown_keys()
        id = self._check_id(id)
        if owner is not None and body.get("owner", owner) != owner:
            self._refuse(f"`owner` is not `{owner}`, for whom this is written; administrators say ?owner=", "owner")
        checked = self._check_text()
        plan = self._check_plan(checked)
        status = self._check_status()
        expires_at = self._check_expiry() if "expires_at" in body else None
        name = self._check_name() if "name" in body else None
        labels = self._check_labels() if "labels" in body else ()
        delivery = self._check_delivery() if body.get("delivery") is not None else None
        if self._mistakes or checked is None:
            raise build_refusal(self._mistakes)
        mode = None if checked.kind == "filter" else body.get("mode") or MODES[0]
        if plan is not None and status == "active":
            assert mode is not None
            status = self._checker.find_status(checked.tree, mode, plan, self._only)  # type: ignore[arg-type]
        if expires_at is not None and expires_at <= self._now:
            status = "expired"
        return SubscriptionDraft(
            id=id,
            kind=checked.kind if plan is None else "forecast",
            text=checked.text,
            notation=checked.notation,
            name=name,
            mode=mode,
            horizon=None if plan is None else str(body["horizon"]),
            threshold=None if plan is None else plan.threshold,
            delivery=delivery,
            labels=labels,
            expires_at=expires_at,
            status=status,
        )

    # Fields ------------------------------------------------------------------------------------------------

    def _refuse_unknown_keys(self) -> None:
        for key in self._body.keys() - _ALL_KEYS:
            hint = did_you_mean(key, KEYS) or f"; the keys are {', '.join(f'`{name}`' for name in KEYS)}"
            self._mistakes.append(make_mistake(f"unknown key `{key:.80}`{hint}", at="$", field=f"{key:.80}"))

    def _check_id(self, id: str | None) -> str:
        sent = self._body.get("id")
        if sent is None and id is not None:
            return id
        if not isinstance(sent, str):
            self._refuse("`id` is a text" if sent is not None else "`id` is missing", "id")
            return ""
        if id is not None and sent != id:
            self._refuse(f"`id` is not `{id}`, which the path names; leave it out", "id")
        try:
            return check_id(sent)
        except TidingsError as problem:
            self._refuse(str(problem), "id")
            return ""

    def _check_text(self) -> CheckedText | None:
        body = self._body
        kinds = [kind for kind in ("filter", "pattern") if body.get(kind) is not None]
        if len(kinds) != 1:
            words = "a subscription has a `filter` or a `pattern`"
            self._refuse(f"{words}, not both" if kinds else f"{words}; neither came", "filter")
            return None
        [kind] = kinds
        mode = body.get("mode")
        if mode is not None and (kind == "filter" or mode not in MODES):
            text = "`mode` is of patterns; a filter has none" if kind == "filter" else f"`mode` is one of {_MODES}"
            self._refuse(text, "mode")
            mode = None
        try:
            return self._checker.check_text(
                kind, body[kind], body.get("notation"), mode, filter_bytes=self._filter_bytes
            )
        except TidingsError as problem:
            self._mistakes += convert_error(problem, kind)
            return None

    def _check_plan(self, checked: CheckedText | None) -> ForecastPlan | None:
        horizon, threshold = self._body.get("horizon"), self._body.get("threshold")
        if horizon is None:
            if threshold is not None:
                self._refuse("`threshold` goes with a `horizon`", "threshold")
            return None
        if checked is not None and checked.kind == "filter":
            self._refuse("`horizon` is of patterns; a filter has none", "horizon")
            return None
        if not isinstance(horizon, int | str) or isinstance(horizon, bool) or len(str(horizon)) > MAX_LABEL:
            self._refuse("`horizon` is a number of events, `10 own events`, or a span such as `5 min`", "horizon")
            return None
        try:
            return ForecastPlan.of(
                horizon=horizon, threshold=0.5 if threshold is None else threshold, tell="crossing", step=0.1
            )
        except TidingsError as problem:
            self._refuse(str(problem), "threshold" if "probability" in str(problem) else "horizon")
            return None

    def _check_status(self) -> SubscriptionStatus:
        status = self._body.get("status")
        if status in _SETTABLE or self._is_sent_back(status):
            return "paused" if status == "paused" else "active"
        hint = "; the service itself writes `learning` and `expired`" if status in ("learning", "expired") else ""
        self._refuse(f"`status` is `active` or `paused`{hint}", "status")
        return "active"

    def _is_sent_back(self, status: Any) -> bool:
        """Tell whether a status is what the service itself would write of this subscription."""
        if status == "learning":
            return self._body.get("horizon") is not None
        return bool(status == "expired" and self._takes_expired and self._body.get("expires_at") is not None)

    def _check_expiry(self) -> datetime | None:
        value = self._body["expires_at"]
        if value is None:
            return None
        moment = parse_moment(value) if isinstance(value, str) else None
        if moment is None:
            self._refuse("`expires_at` is a time such as `2030-01-31T08:00:00Z`", "expires_at")
        elif moment <= self._now and not self._takes_expired:
            self._refuse("`expires_at` is in the past; name a time to come, or null", "expires_at")
        return moment

    def _check_name(self) -> str | None:
        name = self._body["name"]
        if name is None or (isinstance(name, str) and len(name) <= MAX_NAME and name.isprintable()):
            return name or None
        self._refuse(f"`name` is a text of {MAX_NAME} printable characters at most", "name")
        return None

    def _check_labels(self) -> tuple[str, ...]:
        labels = self._body["labels"]
        if labels is None:
            return ()
        if not isinstance(labels, list) or len(labels) > MAX_LABELS or not all(map(_is_label, labels)):
            self._refuse(
                f"`labels` is a list of {MAX_LABELS} texts at most, each 1 to {MAX_LABEL} printable characters",
                "labels",
            )
            return ()
        return tuple(dict.fromkeys(labels))

    def _check_delivery(self) -> dict[str, Any]:
        checked, complaints = check_delivery(self._body["delivery"], events_topic=self._checker.events_topic)
        for path, message in complaints:
            self._refuse(message, f"delivery.{path}" if path else "delivery")
        return checked


_ALL_KEYS = frozenset((*KEYS, *READ_ONLY))
_SETTABLE = (None, "active", "paused")
_MODES = ", ".join(f"`{mode}`" for mode in MODES)


def parse_moment(text: str) -> datetime | None:
    """Return a time in UTC; None where the text is none. Without a zone it is UTC already."""
    if len(text) > MAX_LABEL:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _is_label(label: Any) -> bool:
    return isinstance(label, str) and 1 <= len(label) <= MAX_LABEL and label.isprintable()


def _write_text(kind: str, source: Any, notation: Any) -> tuple[str, str]:
    """Return a filter or pattern as it is stored, and its notation: JSON for what is no text."""
    notations = ("text", "json", "url") if kind == "filter" else ("text", "json")
    if notation is not None and notation not in notations:
        msg = f"`notation` of a {kind} is one of {', '.join(f'`{name}`' for name in notations)}"
        raise TidingsError(msg)
    if isinstance(source, str):
        return source, notation or "text"
    if not isinstance(source, dict | list | bool) or notation not in (None, "json"):
        msg = f"a {kind} is a text, or a JSON tree in the notation `json`"
        raise TidingsError(msg)
    return orjson.dumps(source).decode(), "json"
