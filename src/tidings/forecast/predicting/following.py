"""Following one group of patterns: the cell of each pattern and key, and the forecasts that events give rise to."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np

from tidings.forecast.courses.streams import (
    RECENT,
    CourseGroup,
    EventKinds,
    KeyGaps,
    StreamEntries,
    bin_gaps,
    find_following,
)
from tidings.forecast.predicting.probability_table import ProbabilityTable, locate_on_grids
from tidings.kernels.array_types import BoolArray, FloatArray, Int32Array, IntArray
from tidings.kernels.forecast import forecasts as kernel
from tidings.patterns.run.event_archive import unite_numbers

POLICIES = {"crossing": kernel.CROSSING, "episode": kernel.EPISODE, "every": kernel.EVERY, "change": kernel.CHANGE}
"""When a forecast is emitted."""

_NO_TABLE = kernel.AlarmTable(kernel.SILENT, 0.0, own=False, grid=1, gap_unit=-1, offset=0.0, probabilities=np.zeros(1))

NEVER = int(np.iinfo(np.int64).max)
"""A deadline that never comes."""


@dataclass(frozen=True, slots=True)
class AlarmRule:
    """When forecasts of a pattern are emitted: the policy, and its threshold or step.

    With `own`, only at events that a filter of the pattern accepts.
    """

    policy: int = kernel.SILENT
    limit: float = 0.0
    own: bool = False


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
        # What each policy remembers of the last forecast: 0, 1 or 2 (see `kernel.apply_alarm_rule`) or a probability.
        self.alarm_memory = np.empty((len(group.members), 0))  # NaN: nothing yet
        self.states = [np.empty((0, tracker.width), np.int64) for tracker in group.trackers]
        # Of absences: the earliest deadline since the key's last event, which its tracker has not seen.
        self.due: list[IntArray] = [np.empty(0, np.int64) for _ in group.tracked]
        self.key_gaps = KeyGaps(keyed=group.keyed)
        self.arrange([AlarmRule()] * len(group.members), [None] * len(group.members), pace=(1.0, 1.0), stream_share=1.0)
        self.widen(0 if group.keyed else 1)

    def arrange(
        self,
        rules: list[AlarmRule],
        tables: list[ProbabilityTable | None],
        *,
        pace: tuple[float, float],
        stream_share: float,
    ) -> None:
        """Emit by these rules and tables from now on; `pace` and `stream_share` are those of `locate_on_grids`."""
        self.rules, self.tables, self._pace, self._stream_share = rules, tables, pace, stream_share
        self._pack_tables()

    def _pack_tables(self) -> None:
        tables = [table or _NO_TABLE for table in self.tables[: len(self.group.exact)]]
        policies = np.array([rule.policy for rule in self.rules], np.int64)
        limits = np.array([rule.limit for rule in self.rules])
        own = np.array([rule.own for rule in self.rules], np.bool_)
        grids = np.array([table.grid for table in tables], np.int64)
        gap_units = np.array([table.gap_unit for table in tables], np.int64)
        offsets = np.array([table.offset for table in tables], np.float64)
        flat = [table.probabilities.ravel() for table in tables]
        tables_at = np.append(0, np.cumsum([len(table) for table in flat])).astype(np.int64)
        probabilities, unpacked = np.concatenate(flat or [_NO_TABLE.probabilities]), np.zeros(0, np.int32)
        alarms = kernel.AlarmTables(
            policies, limits, own, tables_at, grids, gap_units, offsets, probabilities, unpacked
        )
        self._alarms = alarms._replace(packed=self._pack_moves(flat, alarms))

    def _pack_moves(self, tables: list[FloatArray], alarms: kernel.AlarmTables) -> Int32Array:
        """Return, for each move, where the next cell's row of moves begins, shifted left by one bit.

        The last bit tells whether the next cell's probability is above the threshold, for rules that tell of crossings.
        """
        group, limits = self.group, alarms.limits
        sizes = np.diff(group.move_at)
        following = group.table.astype(np.int64)
        packed = (following * np.repeat(group.widths, sizes)) << 1
        for number, probabilities in enumerate(tables):
            is_plain = alarms.grids[number] == 1 and alarms.gap_units[number] < 0
            if is_plain and alarms.policies[number] == kernel.CROSSING:
                begin, end = group.move_at[number], group.move_at[number + 1]
                packed[begin:end] |= (probabilities > limits[number])[following[begin:end]]
        return packed.astype(np.int32)

    def widen(self, keys: int) -> None:
        """Make room for keys; a new key is at the start of every course."""
        old_size = self.cells.shape[1]
        if keys <= old_size:
            return
        size = 1 if not self.group.keyed else max(16, 2 * keys)
        more = size - old_size
        self.cells = np.concatenate([self.cells, np.repeat(self.group.starts[:, None], more, axis=1)], axis=1)
        new_memory = np.full((len(self.group.members), more), np.nan)
        self.alarm_memory = np.concatenate([self.alarm_memory, new_memory], axis=1)
        self.key_gaps.widen(size)
        for row, tracker in enumerate(self.group.trackers):
            self.states[row] = np.concatenate([self.states[row], np.tile(tracker.make_state(), (more, 1))])
            self.due[row] = np.append(self.due[row], np.full(more, NEVER))

    def take(
        self, entries: StreamEntries, times: IntArray, base: int, reports: list[IntArray], kinds: EventKinds
    ) -> ForecastRows | None:
        """Move all members along the entries and return forecasts; `reports` are those of tracked members."""
        self.widen(int(entries.keys.max(initial=-1)) + 1)
        self.group.label_new_kinds(kinds)
        gaps = self.key_gaps.take(entries, times, self.seen)
        keyed = kernel.KeyedEntries(entries.kind, entries.starts, entries.keys, self._place_keys(gaps), bin_gaps(gaps))
        emitted = self._follow_exact(keyed)
        for row, own_reports in enumerate(reports):
            hit = self._find_hits(row, entries, times, base, own_reports)
            masks = self.group.find_filter_masks(row, entries, kinds)
            tracker, states = self.group.trackers[row], self.states[row]
            cells = tracker.walk(states, entries.keys, entries.starts, masks, times[entries.event], hit)
            emitted += self._forecast_tracked(row, keyed, cells, hit)
        self.seen += len(times)
        return _merge_rows(emitted, entries)

    def _place_keys(self, gaps: FloatArray) -> FloatArray:
        """Return where keys lie on the grids of shares and of spans, by their mean gaps."""
        return locate_on_grids(gaps, pace=self._pace, stream_share=self._stream_share) if self.group.keyed else gaps

    def locate_key(self, key: int | None, now: int) -> tuple[FloatArray, IntArray]:
        """Return where a key lies on the grids of shares and spans, and its bins of gaps; `None` is an average key.

        Where its present gap is longer than its mean gap, the present gap takes the place of the mean.
        """
        gaps = np.full((3, 1), np.nan)
        if key is not None and self.group.keyed:
            since = np.array([self.seen - 1, now]) - self.key_gaps.last[:, key]
            gaps[:2, 0] = np.fmax(self.key_gaps.mean[:, key], np.where(since > 0, since, np.nan))
            gaps[2, 0] = min(max(self.key_gaps.count[key] - 1, 0), RECENT)
        return self._place_keys(gaps)[:, 0], bin_gaps(gaps)[:, 0]

    def _follow_exact(self, entries: kernel.KeyedEntries) -> list[tuple[IntArray, FloatArray]]:
        group, emitted, begin = self.group, list[tuple[IntArray, FloatArray]](), 0
        tables = (
            group.labels,
            group.accepts,
            group.cell_at,
            group.move_at,
            group.widths,
            group.table,
            group.hits,
            group.idle,
        )
        keyed, alarms = tuple(entries), tuple(self._alarms)
        quiet = not self._alarms.policies[: len(group.exact)].any()
        room = 1 if quiet else max(1 << 12, 2 * len(entries.kinds))
        while begin < len(group.exact):
            out, probabilities, count = buffer = np.empty((room, 3), np.int64), np.empty(room), np.zeros(1, np.int64)
            begin = kernel.follow_patterns(begin, keyed, tables, alarms, self.cells, self.alarm_memory, buffer)
            emitted.append((out[: count[0]], probabilities[: count[0]]))
        return emitted

    def _forecast_tracked(
        self, row: int, entries: kernel.KeyedEntries, cells: Int32Array, hit: BoolArray
    ) -> list[tuple[IntArray, FloatArray]]:
        number = len(self.group.exact) + row
        course, table, rule = self.group.tracked[row].course, self.tables[number], self.rules[number]
        if table is None or rule.policy == kernel.SILENT:
            return []
        out, probabilities = np.empty(len(cells), np.int64), np.empty(len(cells))
        alarm = (
            rule.policy,
            rule.limit,
            rule.own,
            table.grid,
            table.gap_unit,
            table.offset,
            table.probabilities.ravel(),
        )
        memory, tables = self.alarm_memory[number], (course.idle, self.group.accepts[number])
        count = kernel.emit_forecasts(tuple(entries), cells, hit, tables, memory, alarm, out, probabilities)
        rows = np.column_stack([np.full(count, number), out[:count], cells[out[:count]]])
        return [(rows, probabilities[:count])]

    def _find_hits(self, row: int, entries: StreamEntries, times: IntArray, base: int, reports: IntArray) -> BoolArray:
        """Return at which entries the detector reported a member; after a deadline, at the key's next one."""
        hit, due = np.zeros(len(entries), np.bool_), self.due[row]
        if self.group.tracked[row].pattern.absence is None:
            moments, wanted = entries.event + base, reports[:, 1]
            at = find_following(entries.list_keys(), moments, reports[:, 0], wanted)
            hit[at[(at >= 0) & (moments[at] == wanted)]] = True
            return hit
        waiting = entries.keys[due[entries.keys] != NEVER]
        keys, wanted = np.append(reports[:, 0], waiting), np.append(reports[:, 2], due[waiting])
        due[waiting] = NEVER
        at = find_following(entries.list_keys(), times[entries.event], keys, wanted)
        hit[at[at >= 0]] = True
        self.widen(int(keys.max(initial=-1)) + 1)
        np.minimum.at(self.due[row], keys[at < 0], wanted[at < 0])  # the key's next event may come much later
        return hit

    def find_cell(self, number: int, key: int, now: int) -> int:
        """Return the cell of a member's key."""
        exact = len(self.group.exact)
        if number < exact:
            return int(self.cells[number, key])
        return int(self.group.trackers[number - exact].find_cell(self.states[number - exact][key], now))

    def list_live_keys(self, number: int, now: int) -> list[int]:
        """Return the keys for which a member has a partial match."""
        exact, course = len(self.group.exact), self.group.members[number].course
        if number < exact:
            return np.flatnonzero(~course.idle[self.cells[number]]).tolist()
        keys = np.flatnonzero(self.key_gaps.count).tolist() if self.group.keyed else [0]
        return [key for key in keys if not course.idle[self.find_cell(number, key, now)]]

    def find_used_keys(self, now: int, most: int) -> IntArray:
        """Return the keys with a partial match, and of the others the `most` with most events."""
        if not self.group.keyed:
            return np.empty(0, np.int64)
        live = [np.array(self.list_live_keys(number, now), np.int64) for number in range(len(self.group.members))]
        seen = np.flatnonzero(self.key_gaps.count)
        return unite_numbers([*live, seen[np.argsort(-self.key_gaps.count[seen], kind="stable")[:most]]])

    def copy(self) -> GroupFollower:
        """Return a follower with a copy of this one's state; the tables are shared."""
        other = copy(self)
        other.cells, other.alarm_memory = self.cells.copy(), self.alarm_memory.copy()
        other.states = [states.copy() for states in self.states]
        other.due = [due.copy() for due in self.due]
        other.key_gaps = self.key_gaps.select(np.arange(len(self.key_gaps.count)))
        return other

    def renumber_keys(self, kept: IntArray) -> None:
        """Replace each key by its position in `kept`, which has all that are in use."""
        if not self.group.keyed:
            return
        self.widen(int(kept.max(initial=-1)) + 1)
        self.cells, self.alarm_memory = self.cells[:, kept], self.alarm_memory[:, kept]
        self.states = [states[kept] for states in self.states]
        self.key_gaps.renumber_keys(kept)
        self.due = [due[kept] for due in self.due]


def _merge_rows(emitted: list[tuple[IntArray, FloatArray]], entries: StreamEntries) -> ForecastRows | None:
    emitted = [part for part in emitted if len(part[0])]
    if not emitted:
        return None
    rows, probabilities = np.concatenate([part for part, _ in emitted]), np.concatenate([part for _, part in emitted])
    entry = rows[:, kernel.R_ENTRY]
    event = entries.event[entry]
    if (np.diff(event) < 0).any():
        order = np.lexsort((rows[:, kernel.R_PATTERN], event))
        rows, probabilities, entry, event = rows[order], probabilities[order], entry[order], event[order]
    keys = entries.list_keys()[entry]
    return ForecastRows(rows[:, kernel.R_PATTERN], event, keys, rows[:, kernel.R_CELL], probabilities)
