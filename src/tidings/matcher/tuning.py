"""Thresholds of matchers, live folders and file readers: none changes an answer; each saves time, memory or disk."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MatcherTuning:
    """From how many events or rows on a `Matcher` works on them as a whole instead of one by one.

    For many events, subscriptions that wait are compiled first: testing them reads every event by itself. Few rows go
    in one by one: their subscriptions may wait beside the index until there are more.
    """

    batch_events: int = 32
    bulk_rows: int = 200


@dataclass(frozen=True, slots=True)
class LiveTuning:
    """How much of the past a `Live` folder keeps.

    The newest versions stay, claimed or not: a reader may have read a number and not opened the version yet. Of the
    claims of a query the newest stay: a stream never goes back further than its last batch. A query that made no claim
    for so long is taken to be gone; coming back, it would find other versions.
    """

    versions_kept: int = 16
    claims_kept: int = 64
    silent_seconds: float = 30 * 86_400


@dataclass(frozen=True, slots=True)
class FileTuning:
    """How much of a file of rows is read and kept at once."""

    batch_rows: int = 4096  # rows in a batch at most
    table_rows: int = 65_536  # rows in a batch of Arrow columns
    read_bytes: int = 1 << 20  # bytes of one read
    longest_line: int = 64 << 20  # bytes a line may have; a file without line ends must not fill the memory


MATCHER_TUNING, LIVE_TUNING, FILE_TUNING = MatcherTuning(), LiveTuning(), FileTuning()
"""The defaults."""
