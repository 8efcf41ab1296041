"""Learning: counts of courses from events, a piece at a time.

A wait is known when its match has come or when it was the longest that is counted; so the last entries of each key
are kept until then. Cutting a history into pieces, or a stop in between, changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tidings.forecast.courses.streams import EventKinds, KeyGaps, StreamEntries, bin_gaps, find_following
from tidings.forecast.learning.counts import BINS, EDGES, LONGEST_WAIT, Counts, Traffic
from tidings.kernels.array_types import BoolArray, FloatArray, Int32Array, IntArray
from tidings.kernels.forecast.forecasts import SILENCES, walk
from tidings.kernels.forecast.outcome_counts import (
    count_changes,
    count_later,
    count_moves,
    count_span,
    count_waits,
    note_next_matches,
)
from tidings.kernels.patterns.reports import O_AT, O_KEY, O_PATTERN, O_SEQ

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.forecast.courses.streams import CourseGroup
    from tidings.patterns.detections import ReportBatch

_EMPTY = np.empty(0, np.int64)

_Following: TypeAlias = tuple[IntArray, IntArray]
"""The position (-1: none) and the time of the match that comes next."""


@dataclass(frozen=True, slots=True, eq=False)
class PendingWaits:
    """Entries in the order of (key, position) whose waits are not known yet."""

    key: IntArray
    kind: IntArray
    mask: IntArray  # by which ways the event gives the key: see `StreamEntries.way_mask`
    time: IntArray
    at: IntArray  # the position in the stream
    old: BoolArray  # whether its move was counted before
    near: IntArray  # how long the key is silent between its events, counted in events: the bin
    soon: IntArray  # and in time
    gap: FloatArray  # the latest gap in events; NaN at a key's first event
    lapse: FloatArray  # and in microseconds

    def __len__(self) -> int:
        return len(self.key)

    def list_columns(self) -> list[npt.NDArray[Any]]:
        """Return all of them, in the order of the fields."""
        return [getattr(self, field.name) for field in fields(self)]

    def select(self, indexes: IntArray) -> PendingWaits:
        """Return some of the entries; where there is one way alone, masks stay empty."""
        return PendingWaits(*(column[indexes] if len(column) else column for column in self.list_columns()))


NO_WAITS = PendingWaits(
    _EMPTY, _EMPTY, _EMPTY, _EMPTY, _EMPTY, np.empty(0, np.bool_), _EMPTY, _EMPTY, np.empty(0), np.empty(0)
)


@dataclass(frozen=True, slots=True)
class HalfLife:
    """How fast counts fade: by half in so many events of the stream, or microseconds."""

    amount: int
    timed: bool

    def compute_weights(self, at: IntArray, time: IntArray, now: tuple[int, int]) -> FloatArray:
        """Return the weight of each entry, seen from a position and a time."""
        age = now[1] - time if self.timed else now[0] - at
        return np.asarray(0.5 ** (np.maximum(age, 0) / self.amount))

    def compute_fading(self, then: tuple[int, int], now: tuple[int, int]) -> float:
        """Return the factor by which counts of the moment `then` have faded at `now`."""
        return float(0.5 ** (max(0, now[self.timed] - then[self.timed]) / self.amount))


class GroupCounter:
    """Counts one group of patterns; `counts` are in the order of `group.members`."""

    def __init__(self, group: CourseGroup, counts: list[Counts], half_life: HalfLife | None, *, most: int) -> None:
        """Go on from some counts; of more than `most` pending entries the oldest are taken as cut off."""
        self._most = most
        self.group, self.counts, self.half_life = group, counts, half_life
        self.pending, self.fresh = NO_WAITS, list[PendingWaits]()
        self.reports: list[IntArray] = [np.empty((0, 3), np.int64) for _ in group.tracked]
        self.cells = np.empty((len(group.exact), 0), np.int32)  # of each key, before its first pending entry
        self.states = [np.empty((0, tracker.width), np.int64) for tracker in group.trackers]
        self.now = (0, 0)
        self.key_gaps = KeyGaps(keyed=group.keyed)
        self.own = np.zeros(3)  # gaps between events of one key: how many, and their sums in events and time

    def take(self, entries: StreamEntries, times: IntArray, position: int) -> None:
        """Keep entries to be counted; `position` is the place of the first event in the stream."""
        old, when = np.zeros(len(entries), np.bool_), (times[entries.event], position + entries.event)
        gaps = self.key_gaps.take(entries, times, position)
        bins = bin_gaps(gaps)
        self.fresh.append(
            PendingWaits(entries.list_keys(), entries.kind, entries.way_mask, *when, old, *bins, *gaps[3:])
        )

    def add_reports(
        self, parts: Sequence[ReportBatch], places: list[int], base: int, position: int, times: IntArray
    ) -> None:
        """Keep the reports of tracked members: keys, positions and times.

        `places` maps members to pattern numbers of the run; the run's event `base` has the stream's `position`, and
        `times` begin there. A report of a deadline gets the position of the first event that is not before it.
        """
        for number, place in enumerate(places[len(self.group.exact) :]):
            reports = select_reports(parts, place)
            by_time = self.group.tracked[number].pattern.absence is not None
            reports[:, 1] = position + (np.searchsorted(times, reports[:, 2]) if by_time else reports[:, 1] - base)
            self.reports[number] = np.concatenate([self.reports[number], reports])

    def count_pending(self, kinds: EventKinds, now: tuple[int, int]) -> None:
        """Count what was kept, as seen from a position and a time; what may still change stays."""
        pending = _merge_waits([self.pending, *self.fresh])
        self.fresh = []
        if self.half_life is not None and now != self.now:
            by = self.half_life.compute_fading(self.now, now)
            self.counts = [counts.scale(by) for counts in self.counts]
            self.own *= by
        self.now = now
        self.widen(int(pending.key.max(initial=-1)) + 1)
        self.group.label_new_kinds(kinds)
        entries = _split_segments(pending)
        done = self._count_known(pending, entries, now)
        self._count(pending, entries, kinds, done, final=False)
        left = np.flatnonzero(~_mark_front(entries, done))
        self.pending = replace(pending.select(left), old=np.ones(len(left), np.bool_))
        if self.group.keyed:  # of a key that is not waited with any more, nothing can come of a report
            kept = [(rows[:, 1] >= now[0]) | np.isin(rows[:, 0], self.pending.key) for rows in self.reports]
            self.reports = [rows[is_kept] for rows, is_kept in zip(self.reports, kept, strict=True)]

    def close_counts(self, kinds: EventKinds) -> list[Counts]:
        """Return the counts including pending entries, whose waits are cut off here; the counter is unchanged."""
        kept = self.counts, self.cells, self.states
        self.counts = [counts.copy() for counts in self.counts]
        entries = _split_segments(self.pending)
        self._count(self.pending, entries, kinds, np.diff(entries.starts), final=True)
        closed, (self.counts, self.cells, self.states) = self.counts, kept
        return closed

    def _count_known(self, pending: PendingWaits, entries: StreamEntries, now: tuple[int, int]) -> IntArray:
        """Return, for each segment, how many of its oldest entries are final: their waits are known or cut off."""
        sizes = np.diff(entries.starts)
        done = np.maximum(sizes - LONGEST_WAIT, 0)
        spans = [span for counts in self.counts for span in counts.spans]
        if spans and len(pending):
            is_over = pending.time <= now[1] - max(spans)
            done = np.minimum(done, np.add.reduceat(is_over, entries.starts[:-1], dtype=np.int64))
        over = len(pending) - int(done.sum()) - self._most
        if over > 0:  # too many wait: the oldest of each go, as cut off
            done = done + np.ceil((sizes - done) * (over / (len(pending) - done.sum()))).astype(np.int64)
        return np.asarray(done)

    def _count(
        self, pending: PendingWaits, entries: StreamEntries, kinds: EventKinds, done: IntArray, *, final: bool
    ) -> None:
        weights = np.ones(len(pending))
        if self.half_life is not None:
            weights = self.half_life.compute_weights(pending.at, pending.time, self.now)
        if not final:
            new = ~pending.old & ~np.isnan(pending.gap)
            self.own += [(weights[new] * measure).sum() for measure in (1.0, pending.gap[new], pending.lapse[new])]
        old = np.add.reduceat(pending.old, entries.starts[:-1], dtype=np.int64) if len(pending) else _EMPTY
        piece = _CountedPiece(pending, entries, weights, old, done, self.now, self.group.keyed)
        scratch = np.empty(len(pending), np.int32), np.empty(len(pending), np.bool_)
        for row in range(len(self.group.exact)):
            self._count_exact(row, piece, scratch, final=final)
        for row in range(len(self.group.tracked)):
            self._count_tracked(row, piece, kinds, final=final)

    def _count_exact(
        self, row: int, piece: _CountedPiece, scratch: tuple[Int32Array, BoolArray], *, final: bool
    ) -> None:
        group, entries, counts = self.group, piece.entries, self.counts[row]
        course, (cells, hit) = group.exact[row].course, scratch
        labels, width, state = group.labels[row], int(group.widths[row]), self.cells[row]
        table = (labels, width, course.table.ravel(), course.hits.ravel())
        walk(entries.kind, (entries.starts, entries.keys), table, state, cells, hit)
        if not final:
            count_moves(piece.new_entries, entries.kind, labels, width, state, cells, counts.moves.reshape(-1))
        piece.count(counts, cells, hit, piece.find_next_matches(hit) if piece.keyed or counts.spans else None)
        if not final:
            is_done = piece.done > 0
            state[entries.keys[is_done]] = cells[entries.starts[:-1][is_done] + piece.done[is_done] - 1]

    def _count_tracked(self, row: int, piece: _CountedPiece, kinds: EventKinds, *, final: bool) -> None:
        member, tracker, entries = self.group.tracked[row], self.group.trackers[row], piece.entries
        masks = self.group.find_filter_masks(row, entries, kinds)
        reports, hit = self.reports[row], self._find_hits(row, piece, final=final)
        states = self.states[row]
        before = np.full(len(entries.keys), member.course.start, np.int64)  # of those that had no entry yet
        # The part that is done moves the states on; the rest is gone through on a copy, and so is all of it at the end.
        cells, front = np.empty(len(entries), np.int32), _mark_front(entries, piece.done)
        walked = states.copy() if final else states
        for part in (np.flatnonzero(front), np.flatnonzero(~front)):
            rows, firsts = np.unique(entries.list_keys()[part], return_index=True)
            starts = np.append(firsts, len(part)).astype(np.int64)
            cells[part] = tracker.walk(walked, rows, starts, masks[part], piece.pending.time[part], hit[part])
            walked = walked if final else states.copy()
        counts = self.counts[len(self.group.exact) + row]
        if not final:
            chain_state_of, width = member.course.chain_state_of, member.course.table.shape[1]
            count_changes(piece.new_entries, chain_state_of, width, before, cells, hit, counts.moves.reshape(-1))
        absence = member.pattern.absence is not None
        piece.count(counts, cells, hit, piece.find_deadlines(reports) if absence else piece.find_next_matches(hit))

    def _find_hits(self, row: int, piece: _CountedPiece, *, final: bool) -> BoolArray:
        """Return at which entries the detector reported a tracked member; after a deadline, at the key's next one.

        Reports at entries that are done are not needed again.
        """
        pending, reports = piece.pending, self.reports[row]
        hit = np.zeros(len(pending), np.bool_)
        if not len(pending) or not len(reports):
            return hit
        by_time = self.group.tracked[row].pattern.absence is not None
        moment, wanted = (pending.time, reports[:, 2]) if by_time else (pending.at, reports[:, 1])
        at = find_following(pending.key, moment, reports[:, 0], wanted)
        fits = (at >= 0) & (by_time | (moment[at] == wanted))
        hit[at[fits]] = True
        if not final:
            self.reports[row] = reports[~(fits & _mark_front(piece.entries, piece.done)[at])]
        return hit

    def widen(self, keys: int) -> None:
        """Make room for keys; a new key is at the start of every course."""
        old_size = self.cells.shape[1]
        if keys <= old_size:
            return
        more = (2 * keys if self.group.keyed else 1) - old_size
        self.cells = np.concatenate([self.cells, np.repeat(self.group.starts[:, None], more, axis=1)], axis=1)
        for row, tracker in enumerate(self.group.trackers):
            self.states[row] = np.concatenate([self.states[row], np.tile(tracker.make_state(), (more, 1))])

    def find_used_keys(self) -> IntArray:
        """Return the keys that have pending entries."""
        return np.unique(self.pending.key) if self.group.keyed else _EMPTY

    def renumber_keys(self, kept: IntArray) -> None:
        """Replace each key by its position in `kept`; entries that were gathered must be counted before."""
        if not self.group.keyed:
            return
        self.widen(int(kept.max(initial=-1)) + 1)
        self.cells = self.cells[:, kept]
        self.states = [states[kept] for states in self.states]
        self.key_gaps.renumber_keys(kept)
        self.pending = replace(self.pending, key=np.searchsorted(kept, self.pending.key))
        for row, reports in enumerate(self.reports):
            own_reports = reports[np.isin(reports[:, 0], kept)]
            own_reports[:, 0] = np.searchsorted(kept, own_reports[:, 0])
            self.reports[row] = own_reports


@dataclass(frozen=True, slots=True, eq=False)
class _CountedPiece:
    """Entries that are counted at once, with their weights, how many were counted before, and how many are final."""

    pending: PendingWaits
    entries: StreamEntries
    weights: FloatArray
    old: IntArray
    done: IntArray
    now: tuple[int, int]
    keyed: bool

    @property
    def new_entries(self) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """The entries whose moves were not counted before, as kernels take them."""
        return self.entries.starts, self.entries.keys, self.old, self.weights

    def count(self, counts: Counts, cells: Int32Array, hit: BoolArray, following: _Following | None) -> None:
        """Add the waits that are known to `counts`.

        Waits in the key's own events come from `hit`; those in events of the stream and in time from `following`, the
        position and time of each entry's next match.
        """
        entries, scale = (self.entries.starts, self.done, cells, self.weights), (BINS, len(EDGES))
        pending = self.pending
        count_waits(entries, hit, scale, counts.waits.reshape(-1))
        if following is None:
            return
        gaps = SILENCES if self.keyed else 1
        if self.keyed:
            later = counts.later.reshape(-1)
            count_later(entries, pending.at, self.now[0], following, pending.near, gaps, scale, later)
        for span, span_counts in counts.spans.items():
            out = span_counts.reshape(-1)
            count_span(entries, pending.time, self.now[1], following, pending.soon, gaps, span, out)

    def find_next_matches(self, hit: BoolArray) -> _Following:
        """Return the position and time of the match that follows each entry."""
        next_match = np.empty(len(hit), np.int64), np.empty(len(hit), np.int64)
        note_next_matches(self.entries.starts, hit, self.pending.at, self.pending.time, *next_match)
        return next_match

    def find_deadlines(self, reports: IntArray) -> _Following:
        """Return the same for a pattern that a deadline completes, from its reports.

        They are not at entries, since a key may have no event after its deadline.
        """
        reports = reports[reports[:, 1] < self.now[0]]  # a piece is told at once what its events will complete
        reports = reports[np.lexsort((reports[:, 2], reports[:, 0]))]
        at = find_following(reports[:, 0], reports[:, 2], self.pending.key, self.pending.time, strictly=True)
        following = np.concatenate([reports, [[0, -1, 0]]])[at]
        return following[:, 1], following[:, 2]


def select_reports(parts: Sequence[ReportBatch], place: int) -> IntArray:
    """Return key, event and time of the reports of one of the detector's patterns."""
    selected = [np.empty((0, 3), np.int64)]
    for part in parts:
        rows = part.reports.rows
        mine = rows[part.layout.places[rows[:, O_PATTERN]] == place]
        selected.append(mine[:, [O_KEY, O_SEQ, O_AT]])
    return np.concatenate(selected)


def _merge_waits(pieces: list[PendingWaits]) -> PendingWaits:
    """Return entries of all pieces, key by key; those of one key in their order."""
    pieces = [piece for piece in pieces if len(piece)] or [NO_WAITS]
    columns = zip(*(piece.list_columns() for piece in pieces), strict=True)
    merged = PendingWaits(*map(np.concatenate, columns))
    return merged.select(np.argsort(merged.key, kind="stable"))


def _split_segments(pending: PendingWaits) -> StreamEntries:
    keys, starts = np.unique(pending.key, return_index=True)
    return StreamEntries(np.arange(len(pending)), pending.kind, pending.mask, np.append(starts, len(pending)), keys)


def _mark_front(entries: StreamEntries, done: IntArray) -> BoolArray:
    """Tell of each entry whether it is among the first `done` of its segment."""
    return np.asarray(entries.event < np.repeat(entries.starts[:-1] + done, np.diff(entries.starts)))


def count_traffic(
    kinds: IntArray, times: IntArray, last: int | None, weights: FloatArray, named: dict[int, str], members: EventKinds
) -> Traffic:
    """Return how many events satisfied each filter, and how fast they came.

    `last` is the time of the event before the first of them, if there is one; `named` has the filters that count.
    """
    by_kind = np.bincount(kinds, weights, len(members))
    filters: dict[str, float] = dict.fromkeys(named.values(), 0.0)
    for kind in np.flatnonzero(by_kind).tolist():
        for number in members.members[kind]:
            if number in named:
                filters[named[number]] += float(by_kind[kind])
    gaps = np.diff(times, prepend=times[:1] if last is None else last)
    counted = weights[1:] if last is None else weights
    elapsed = (gaps[1:] if last is None else gaps) * counted
    judged = dict.fromkeys(filters, float(weights.sum()))
    return Traffic(float(weights.sum()), filters, float(counted.sum()), float(elapsed.sum()), asked=judged)
