"""Following one group of patterns: the cell of each pattern and key, and the forecasts that events give rise to."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.forecast.courses.streams import RECENT, EventKinds, KeyGaps, StreamEntries, bin_gaps
from tidings.forecast.predicting.probability_table import ProbabilityTable, places_of
from tidings.kernels.array_types import BoolArray, FloatArray, Int32Array, IntArray
from tidings.kernels.forecast.forecasts import (
    CHANGE,
    CROSSING,
    EPISODE,
    EVERY,
    R_CELL,
    R_ENTRY,
    R_PATTERN,
    SILENT,
    AlarmTable,
    AlarmTables,
    CourseTables,
    ForecastBuffer,
    KeyedEntries,
    emit_forecasts,
    follow_patterns,
)
from tidings.patterns.run.event_archive import unite_numbers

if TYPE_CHECKING:
    from tidings.forecast.courses.groups import CourseGroup

POLICIES = {"crossing": CROSSING, "episode": EPISODE, "every": EVERY, "change": CHANGE}
"""When a forecast is emitted."""

_NO_TABLE = np.zeros(1)

NEVER = int(np.iinfo(np.int64).max)
"""A deadline that never comes."""


@dataclass(frozen=True, slots=True)
class AlarmRule:
    """When forecasts of a pattern are emitted: the policy, and its threshold or step."""

    policy: int = SILENT
    limit: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class ForecastRows:
    """Forecasts as columns: member of the group, event, key, cell and probability."""

    member: IntArray
    event: IntArray
    key: IntArray
    cell: IntArray
    probability: FloatArray

    def __len__(self) -> int:
        return len(self.member)


class GroupFollower:
    """The cells of a group's members by key; `rules` and `tables` determine the forecasts."""

    def __init__(self, group: CourseGroup) -> None:
        self.group = group
        self.seen = 0  # events of the stream
        self.cells = np.empty((len(group.exact), 0), np.int32)
        self.last = np.empty((len(group.members), 0))
        self.states = [np.empty((0, member.course.tracker.width), np.int64) for member in group.tracked]
        # Of absences: the earliest deadline since the key's last event, which its tracker has not seen.
        self.due: list[IntArray] = [np.empty(0, np.int64) for _ in group.tracked]
        self.rules = [AlarmRule() for _ in group.members]
        self.tables: list[ProbabilityTable | None] = [None for _ in group.members]
        self._average: dict[str, Any] = {"pace": (1.0, 1.0)}
        self.silences = KeyGaps(keyed=group.keyed)
        self._pack_tables()
        self.widen(0 if group.keyed else 1)

    def arrange(self, rules: list[AlarmRule], tables: list[ProbabilityTable | None], **average: Any) -> None:
        """Take new tables, and what an average key is like: see `places_of`."""
        self.rules, self.tables, self._average = rules, tables, average
        self._pack_tables()

    def _pack_tables(self) -> None:
        exact = self.tables[: len(self.group.exact)]
        policies = np.array([rule.policy for rule in self.rules], np.int64)
        limits = np.array([rule.limit for rule in self.rules])
        grids = np.array([1 if table is None else table.grid for table in exact], np.int64)
        gaps = np.array([-1 if table is None else table.gap for table in exact], np.int64)
        offsets = np.array([0.0 if table is None else table.offset for table in exact])
        flat = [_NO_TABLE if table is None else table.chances.ravel() for table in exact]
        chances = np.concatenate(flat) if flat else _NO_TABLE
        chances_at = np.append(0, np.cumsum([len(chances) for chances in flat])).astype(np.int64)
        alarms = AlarmTables(policies, limits, chances_at, grids, gaps, offsets, chances, np.zeros(0, np.int32))
        self._alarms = alarms._replace(packed=self._pack_moves(flat, alarms))

    def _pack_moves(self, chances: list[FloatArray], alarms: AlarmTables) -> Int32Array:
        """Return, for each move, where the row of the next cell begins, and in the last bit whether it is above."""
        group, limits = self.group, alarms.limits
        sizes = np.diff(group.move_at)
        following = group.table.astype(np.int64)
        packed = (following * np.repeat(group.widths, sizes)) << 1
        for number, chance in enumerate(chances):
            if alarms.policies[number] == CROSSING and alarms.grids[number] == 1 and alarms.gaps[number] < 0:
                begin, end = group.move_at[number], group.move_at[number + 1]
                packed[begin:end] |= (chance > limits[number])[following[begin:end]]
        return packed.astype(np.int32)

    def widen(self, keys: int) -> None:
        """Make room for keys; a new key is at the start of every course."""
        old_size = self.cells.shape[1]
        if keys <= old_size:
            return
        size = 1 if not self.group.keyed else max(16, 2 * keys)
        exact = len(self.group.exact)
        starts = np.repeat(self.group.starts[:exact, None], size - old_size, axis=1)
        self.cells = np.concatenate([self.cells, starts], axis=1)
        self.last = np.concatenate([self.last, np.full((len(self.group.members), size - old_size), np.nan)], axis=1)
        self.silences.widen(size)
        for row, member in enumerate(self.group.tracked):
            fresh = np.tile(member.course.tracker.fresh(), (size - old_size, 1))
            self.states[row] = np.concatenate([self.states[row], fresh])
            self.due[row] = np.append(self.due[row], np.full(size - old_size, NEVER))

    def take(
        self, entries: StreamEntries, times: IntArray, base: int, reports: list[IntArray], kinds: EventKinds
    ) -> ForecastRows | None:
        """Move all members along the entries and return forecasts; `reports` are those of tracked members."""
        self.widen(int(entries.rows.max(initial=-1)) + 1)
        self.group.widen(kinds)
        gaps = self.silences.take(entries, times, self.seen)
        where, silent = self._place_keys(gaps), bin_gaps(gaps)
        emitted = self._follow_exact(entries, where, silent)
        for row in range(len(self.group.tracked)):
            emitted += self._follow_tracked(row, entries, where, silent, times, base, reports[row], kinds)
        self.seen += len(times)
        return _merge_rows(emitted, entries)

    def _place_keys(self, gaps: FloatArray) -> FloatArray:
        """Return where keys lie on the grids of shares and of spans, by their mean gaps."""
        return places_of(gaps, **self._average) if self.group.keyed else gaps

    def place(self, key: int | None, now: int) -> tuple[FloatArray, IntArray]:
        """Return where a key lies on the grids of shares and spans, and its bins of gaps; `None` is an average key.

        One that has been silent for longer than it used to is taken for slower.
        """
        gaps = np.full((3, 1), np.nan)
        if key is not None and self.group.keyed:
            since = np.array([self.seen - 1, now]) - self.silences.last[:, key]
            gaps[:2, 0] = np.fmax(self.silences.mean[:, key], np.where(since > 0, since, np.nan))
            gaps[2, 0] = min(max(self.silences.count[key] - 1, 0), RECENT)
        return self._place_keys(gaps)[:, 0], bin_gaps(gaps)[:, 0]

    def _follow_exact(
        self, entries: StreamEntries, where: FloatArray, silences: IntArray
    ) -> list[tuple[IntArray, FloatArray]]:
        group, emitted, begin = self.group, list[tuple[IntArray, FloatArray]](), 0
        exact = len(group.exact)
        quiet = not self._alarms.policies[:exact].any()
        while begin < exact:
            room = 1 if quiet else max(1 << 12, 2 * len(entries))
            out, chances, count = np.empty((room, 3), np.int64), np.empty(room), np.zeros(1, np.int64)
            begin = follow_patterns(
                begin,
                KeyedEntries(entries.kind, entries.starts, entries.rows, where, silences),
                CourseTables(
                    group.labels, group.cell_at, group.move_at, group.widths, group.table, group.hits, group.idle
                ),
                self._alarms,
                self.cells,
                self.last,
                ForecastBuffer(out, chances, count),
            )
            emitted.append((out[: count[0]], chances[: count[0]]))
        return emitted

    def _follow_tracked(
        self,
        row: int,
        entries: StreamEntries,
        where: FloatArray,
        silences: IntArray,
        times: IntArray,
        base: int,
        reports: IntArray,
        kinds: EventKinds,
    ) -> list[tuple[IntArray, FloatArray]]:
        number = len(self.group.exact) + row
        member, table, asked = self.group.tracked[row], self.tables[number], self.rules[number]
        hit = self._find_hits(row, entries, times, base, reports)
        masks = self.group.masks(row, entries, kinds)
        cells = member.course.tracker.walk(
            self.states[row], entries.rows, entries.starts, masks, times[entries.event], hit
        )
        if table is None or asked.policy == SILENT:
            return []
        out, chances = np.empty(len(entries), np.int64), np.empty(len(entries))
        count = emit_forecasts(
            KeyedEntries(entries.kind, entries.starts, entries.rows, where, silences),
            cells,
            hit,
            member.course.idle,
            self.last[number],
            AlarmTable(asked.policy, asked.limit, table.grid, table.gap, table.offset, table.chances.ravel()),
            out,
            chances,
        )
        rows = np.column_stack([np.full(count, number), out[:count], cells[out[:count]]])
        return [(rows, chances[:count])]

    def _find_hits(self, row: int, entries: StreamEntries, times: IntArray, base: int, reports: IntArray) -> BoolArray:
        """Return at which entries the detector reported a member; after a deadline, at the key's next one."""
        hit, event = np.zeros(len(entries), np.bool_), entries.event
        by_time = self.group.tracked[row].pattern.absence is not None
        moment, wanted = (times[event], reports[:, 2]) if by_time else (event + base, reports[:, 1])
        completions = list(
            zip(reports[:, 0].tolist() if self.group.keyed else [0] * len(reports), wanted.tolist(), strict=True)
        )
        waiting = entries.rows[self.due[row][entries.rows] != NEVER].tolist() if by_time else []
        completions += [(key, int(self.due[row][key])) for key in waiting]
        self.due[row][waiting] = NEVER
        for key, when in completions:
            segment = int(np.searchsorted(entries.rows, key))
            at = end = 0
            if segment < len(entries.rows) and entries.rows[segment] == key:
                begin, end = entries.starts[segment], entries.starts[segment + 1]
                at = begin + int(np.searchsorted(moment[begin:end], when))
            if at < end and (by_time or moment[at] == when):
                hit[at] = True
            elif by_time:  # the key's next event may come much later
                self.widen(key + 1)
                self.due[row][key] = min(self.due[row][key], when)
        return hit

    # Keys --------------------------------------------------------------------------------------

    def cell(self, number: int, key: int, now: int) -> int:
        """Return the cell of a member's key."""
        exact = len(self.group.exact)
        if number < exact:
            return int(self.cells[number, key])
        return int(self.group.members[number].course.tracker.cell(self.states[number - exact][key], now))

    def live(self, number: int, now: int) -> list[int]:
        """Return the keys for which a member has a partial match."""
        exact, course = len(self.group.exact), self.group.members[number].course
        if number < exact:
            return np.flatnonzero(~course.idle[self.cells[number]]).tolist()
        keys = np.flatnonzero(self.silences.count).tolist() if self.group.keyed else [0]
        return [key for key in keys if not course.idle[self.cell(number, key, now)]]

    def keys_in_use(self, now: int, most: int) -> IntArray:
        """Return the keys with a partial match, and of the others the `most` with most events."""
        if not self.group.keyed:
            return np.empty(0, np.int64)
        live = [np.array(self.live(number, now), np.int64) for number in range(len(self.group.members))]
        seen = np.flatnonzero(self.silences.count)
        return unite_numbers([*live, seen[np.argsort(-self.silences.count[seen], kind="stable")[:most]]])

    def fork(self) -> GroupFollower:
        """Return a follower with a copy of this one's state; the tables are shared."""
        made = copy(self)
        made.cells, made.last = self.cells.copy(), self.last.copy()
        made.states = [states.copy() for states in self.states]
        made.due = [due.copy() for due in self.due]
        made.silences = self.silences.select(np.arange(len(self.silences.count)))
        return made

    def renumber_keys(self, kept: IntArray) -> None:
        """Replace each key by its position in `kept`, which has all that are in use."""
        if not self.group.keyed:
            return
        self.widen(int(kept.max(initial=-1)) + 1)
        self.cells, self.last = self.cells[:, kept], self.last[:, kept]
        self.states = [states[kept] for states in self.states]
        self.silences.renumber_keys(kept)
        self.due = [due[kept] for due in self.due]


def _merge_rows(emitted: list[tuple[IntArray, FloatArray]], entries: StreamEntries) -> ForecastRows | None:
    """Return rows of all members in the order of the events."""
    emitted = [part for part in emitted if len(part[0])]
    if not emitted:
        return None
    rows, chances = np.concatenate([part for part, _ in emitted]), np.concatenate([part for _, part in emitted])
    entry = rows[:, R_ENTRY]
    event = entries.event[entry]
    if (np.diff(event) < 0).any():
        order = np.lexsort((rows[:, R_PATTERN], event))
        rows, chances, entry, event = rows[order], chances[order], entry[order], event[order]
    keys = entries.keys()[entry]
    return ForecastRows(rows[:, R_PATTERN], event, keys, rows[:, R_CELL], chances)
