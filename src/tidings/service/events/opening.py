"""The parts of an API process that take events, as the settings say: how they are read, and where they are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.service.events.backlog import EventBacklog
from tidings.service.events.event_writer import EventWriter
from tidings.service.events.folder_writer import FolderWriter
from tidings.service.events.intake import EventIntake
from tidings.service.events.recent import RecentEvents, RecentFiles

if TYPE_CHECKING:
    from tidings.service.settings import ServiceSettings


@dataclass(frozen=True, slots=True)
class EventParts:
    """What takes posted events: reader and checks, the writer, and what is known of the pipeline's backlog."""

    intake: EventIntake
    writer: EventWriter
    backlog: EventBacklog


def open_event_parts(settings: ServiceSettings) -> EventParts:
    """Return the parts for the settings; the folder is made where it is missing."""
    backlog = EventBacklog(settings.events_folder, most=settings.events.waiting)
    return EventParts(EventIntake(settings), open_writer(settings, backlog), backlog)


def open_writer(settings: ServiceSettings, backlog: EventBacklog) -> EventWriter:
    """Return the writer that the settings name."""
    if settings.events.to == "kafka":
        from tidings.service.events.kafka_writer import KafkaWriter

        return KafkaWriter.open(settings.events)
    return FolderWriter(backlog)


def open_recent(settings: ServiceSettings) -> RecentEvents:
    """Return what looks back at the events of the settings' place."""
    if settings.events.to == "kafka":
        from tidings.service.events.kafka_tail import KafkaTail

        return KafkaTail(settings.events)
    return RecentFiles(settings.events_folder, kept=settings.events.kept)
