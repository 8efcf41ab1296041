"""What keeps events until the pipeline reads them, as a protocol: `folder_writer` and `kafka_writer` are two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tidings.errors import TidingsError

if TYPE_CHECKING:
    from tidings.service.events.intake import ReadyEvents


class EventsDelayed(TidingsError, RuntimeError):
    """Events cannot be kept now; try again."""

    retry_after: int  # seconds


class EventWriter(Protocol):
    """Keeps events durably; any number of requests may write at once."""

    async def write(self, events: ReadyEvents) -> None:
        """Return when the events are durable; `EventsDelayed` where they cannot be kept now."""

    def close(self) -> None:
        """Keep what waits, and stop."""
