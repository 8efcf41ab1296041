"""Thresholds of matchers, live folders and file readers: none changes an answer; each saves time, memory or disk."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MatcherTuning:
    """When a `Matcher` takes the way for many instead of the way for few."""

    batch_events: int = 32
    """From so many events on, subscriptions that wait are compiled first: testing them reads every event by itself."""

    bulk_rows: int = 200
    """A table of fewer rows goes in one by one: its subscriptions may wait beside the index until there are more."""


@dataclass(frozen=True, slots=True)
class LiveTuning:
    """How much of the past a `Live` folder keeps."""

    versions_kept: int = 16
    """Newest versions that stay, claimed or not: a reader may have read a number and not opened the version yet."""

    claims_kept: int = 64
    """Newest claims of a query that stay; a stream never goes back further than its last batch."""

    silent_seconds: float = 30 * 86_400
    """Time after its last claim when a query is taken to be gone; coming back, it would find other versions."""


@dataclass(frozen=True, slots=True)
class FileTuning:
    """How much of a file of rows is read and kept at once."""

    batch_rows: int = 4096
    """Rows in a batch at most."""

    table_rows: int = 65_536
    """Rows in a batch of Arrow columns."""

    read_bytes: int = 1 << 20
    """Bytes of one read."""

    longest_line: int = 64 << 20
    """Bytes a line may have; a file without line ends must not fill the memory."""


MATCHER_TUNING, LIVE_TUNING, FILE_TUNING = MatcherTuning(), LiveTuning(), FileTuning()
"""The defaults."""
