"""Checks posted events, completes them with an id and a time, and turns each into the line that is kept.

An event is refused for what the pipeline would make a dead letter of, in the same words: what is no document
(`matcher.loading.documents`), an id that is none, what breaks a declaration of the service's schema or ontology
(`td.Matcher` reads it and says so). Besides: times that are none, sizes and depths beyond the limits, a payload that is
no base64, numbers that no float holds. Without declarations an event costs one pass over its bytes to decode, and one
to encode it unless its line can stay as it came: about 4 microseconds for twenty fields.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidings.matcher.loading.documents import PAYLOAD, BadDocument, find_value, strip_payload, to_moment
from tidings.matcher.matcher import Matcher
from tidings.service.events.bodies import PostedEvents, read_body
from tidings.service.events.cloud_events import EventFields
from tidings.service.events.event_checks import (
    MAX_EVENT_ID,
    EventMistake,
    format_time,
    is_base64,
    is_deeper,
    read_id,
    refuse_time,
)
from tidings.service.events.event_ids import EventIds
from tidings.service.events.json_bodies import encode_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tidings.service.settings import ServiceSettings


@dataclass(frozen=True, slots=True)
class ReadyEvents:
    """Events ready to be kept, each as its line without an end, with its id; and the mistakes of the others."""

    lines: list[bytes] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    mistakes: list[EventMistake] = field(default_factory=list)


class EventIntake:
    """Turns bodies into lines, for the settings of a service; any number of threads may use one."""

    def __init__(self, settings: ServiceSettings) -> None:
        """Prepare the reader of declared attributes, where there are some."""
        self.fields = EventFields(settings.events.id, settings.events.time)
        self.limits, self.ids = settings.limits, EventIds()
        vocabulary = settings.vocabulary
        self.declarations = None if vocabulary.is_empty else Matcher(**vocabulary.to_keywords())

    def read(self, body: bytes, content_type: str, headers: Mapping[str, str]) -> PostedEvents:
        """Return the events of a body as they are."""
        return read_body(body, content_type, headers, self.fields)

    def prepare(self, posted: PostedEvents, now: datetime) -> ReadyEvents:
        """Check and complete events that came at a time. Its documents are those that are kept."""
        sheet = _EventSheet(self, posted)
        sheet.complete(now)
        sheet.check_shapes()
        sheet.check_declarations(now)
        return sheet.encode()


class _EventSheet:
    """The events of one body while they are checked: ids and mistakes by index."""

    def __init__(self, intake: EventIntake, posted: PostedEvents) -> None:
        self._intake, self._posted = intake, posted
        self._ids: list[str] = [""] * len(posted.documents)
        self._mistakes: dict[int, EventMistake] = {}
        self._events: dict[int, dict[str, Any]] = {}  # those without a mistake so far
        self._changed: set[int] = set()
        for index, document in enumerate(posted.documents):
            if isinstance(document, BadDocument):
                self._mistakes[index] = EventMistake(document.reason, index=index)
            else:
                self._events[index] = document

    def complete(self, now: datetime) -> None:
        """Give each event an id and a time where it has none."""
        id_name, time_name = self._intake.fields.id, self._intake.fields.time
        arrival, ids, changed = format_time(now), self._ids, self._changed
        nameless = []
        for index, event in self._events.items():
            id = event.get(id_name)
            if type(id) is str and 0 < len(id) <= MAX_EVENT_ID:
                ids[index] = id
            elif (id := find_value(event, id_name)) is None:
                nameless.append(index)
            else:
                self._take_id(index, id)
            time = find_value(event, time_name)
            if time is None:
                event[time_name] = arrival
                changed.add(index)
            elif to_moment(time) is None:
                self._refuse(refuse_time(index, time_name, time))
        fresh = self._intake.ids.make(len(nameless), int(now.timestamp() * 1000))
        for index, text in zip(nameless, fresh, strict=True):
            self._events[index][id_name] = ids[index] = text
        changed.update(nameless)
        self._drop_refused()

    def _take_id(self, index: int, id: object) -> None:
        try:
            self._ids[index] = read_id(id, self._intake.fields.id)
        except ValueError as reason:
            hint = "an id is a text or a number; an event without one is given one"
            self._refuse(EventMistake(str(reason), hint, index=index))

    def _refuse(self, mistake: EventMistake) -> None:
        self._mistakes.setdefault(mistake.index, mistake)

    def _drop_refused(self) -> None:
        for index in self._mistakes:
            self._events.pop(index, None)

    def check_shapes(self) -> None:
        """Refuse what is nested too deeply, and payloads that are none."""
        depth = self._intake.limits.depth
        is_deep = self._posted.nested >= depth  # else there are not brackets enough for one such event
        for index, event in self._events.items():
            if is_deep and is_deeper(event, depth):
                message = f"its objects and lists are nested more than {depth} levels deep"
                self._refuse(EventMistake(message, index=index))
            elif PAYLOAD in event and not is_base64(event[PAYLOAD]):
                hint = "it has bytes that travel along with the event, as a text in base64"
                self._refuse(EventMistake(f"`{PAYLOAD}` is not base64", hint, index=index))
        self._drop_refused()

    def check_declarations(self, now: datetime) -> None:
        """Refuse what breaks a declaration: asked of a matcher that has nothing else."""
        declarations = self._intake.declarations
        if declarations is None:
            return
        indexes = list(self._events)
        for letter in declarations.dead_letters([strip_payload(self._events[index]) for index in indexes], now=now):
            hint = "the service's schema or ontology declares it"
            self._refuse(EventMistake(letter.reason, hint, index=indexes[letter.index]))
        self._drop_refused()

    def encode(self) -> ReadyEvents:
        """Return the lines of what is left."""
        ready, sent, is_plain = ReadyEvents(), self._posted.lines, self._posted.is_plain
        largest = self._intake.limits.event
        for index, event in self._events.items():
            line = sent[index] if sent is not None and index not in self._changed else None
            try:
                line = line or encode_json(event, is_plain=is_plain)
            except ValueError as reason:
                self._refuse(EventMistake(str(reason), index=index))
                continue
            if len(line) > largest:
                message = f"the event has {len(line):,} bytes, and may have {largest:,}"
                self._refuse(EventMistake(message, index=index))
                continue
            ready.lines.append(line)
            ready.ids.append(self._ids[index])
        ready.mistakes.extend(self._mistakes[index] for index in sorted(self._mistakes))
        return ready
