"""The partial matches of all patterns of one merged graph, for every key.

Events come in as arrays: when, which symbols, which keys, which values; reports come out. The kernels do the work and
return when a buffer is full; this class then enlarges it and calls them again. Partial matches beyond the bound of a
key are dropped and counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidings.kernels.patterns import layout
from tidings.kernels.patterns.compaction import compact, refill
from tidings.kernels.patterns.layout import EventArrays, GraphArrays, RunArrays
from tidings.kernels.patterns.reports import DONE, MORE_CANDIDATES, MORE_CELLS, MORE_OUT, MORE_PATH, MORE_ROWS, O_VALUES
from tidings.kernels.patterns.runs import run_batch
from tidings.patterns.tuning import BufferSizes

if TYPE_CHECKING:
    from tidings.kernels.array_types import IntArray

MOST_PARTIALS = 10_000
"""The partial matches that one key may have at one place of the graph; of more, the newest stay."""

LONG_AGO = -(1 << 62)
"""A time before that of every event."""


class Reports(NamedTuple):
    """Completed matches: a row for each, and the numbers of their events in the order of the steps."""

    rows: IntArray
    events: IntArray


class GraphRun:
    """The state of a graph's patterns; `feed` takes events and returns reports."""

    def __init__(
        self, graph: GraphArrays, *, keyed: bool, most: int = MOST_PARTIALS, buffers: BufferSizes | None = None
    ) -> None:
        self.graph, self.keyed = graph, keyed
        sizes = BufferSizes() if buffers is None else buffers
        width = layout.MOMENTS + graph.uses.shape[1] + graph.variables.shape[1]
        nodes, patterns, symbols = len(graph.nodes), len(graph.patterns), len(graph.symbols)
        spent = _round_up(max(sizes.spent, sizes.spent_per_pattern * patterns))
        registers = np.zeros(layout.SIZE, np.int64)
        registers[layout.DEADLINE], registers[layout.NOW] = layout.FOREVER, LONG_AGO
        registers[layout.MOST], registers[layout.DIRECT] = most, not keyed
        self.state = RunArrays(
            registers,
            pool=np.empty((sizes.pool, width), np.int64),
            cells=_make_table(sizes.cells if keyed else nodes),
            fresh=np.full(sizes.fresh if keyed else 1, -1, np.int64),
            spent=_make_table(spent if keyed else patterns),
            queues=np.full((len(graph.absences), 2), -1, np.int64),
            candidates=np.empty((sizes.candidates, 2), np.int64),
            stamps=np.zeros(symbols, np.int64),
            fronts=np.zeros((nodes, 2), np.int64),
            best=np.zeros((patterns, 2), np.int64),
            completed_patterns=np.zeros(patterns, np.int64),
            out=np.empty((sizes.out, O_VALUES + graph.variables.shape[1]), np.int64),
            listed_events=np.empty(sizes.listed_events, np.int64),
            path=np.empty((sizes.path, 4), np.int64),
        )

    def feed(self, batch: EventArrays, base: int, *, keys: int = 1, until: int = LONG_AGO) -> list[Reports]:
        """Take events, numbered from `base`; then let time pass to `until`. `keys` is how many keys have numbers."""
        self._widen(keys)
        registers = self.state.registers
        registers[layout.BASE], registers[layout.EVENT], registers[layout.TURN] = base, 0, 0
        pieces: list[Reports] = []
        while (status := run_batch(tuple(self.graph), tuple(self.state), tuple(batch), until)) != DONE:
            self._make_room(status, pieces)
        pieces.append(self._drain_reports())
        registers[layout.NOW] = max(registers[layout.NOW], until)
        return [piece for piece in pieces if len(piece.rows)]

    @property
    def next_deadline(self) -> int | None:
        """When the earliest absence completes unless something comes, in microseconds."""
        graph, state = self.graph, self.state
        due = []
        for queue, node in enumerate(graph.absences.tolist()):
            row = state.queues[queue, 0]
            while row >= 0 and state.pool[row, layout.FLAG]:  # what came meanwhile has ended its wait
                row = state.pool[row, layout.LINK]
            state.queues[queue] = (row, state.queues[queue, 1]) if row >= 0 else (-1, -1)
            due += [int(state.pool[row, layout.TIME] + graph.nodes[node, layout.SPAN])] if row >= 0 else []
        return min(due, default=None)

    def tidy(self) -> int:
        """Drop rows that no match can reach any more; return how many are left."""
        graph, state, top = self.graph, self.state, self.rows
        return int(compact(tuple(graph), tuple(state), np.empty(top, np.uint8), np.empty(top, np.int64)))

    @property
    def rows(self) -> int:
        """How many rows the pool has, including those that `tidy` would drop."""
        return int(self.state.registers[layout.TOP])

    def find_used_events(self) -> IntArray:
        """Return the numbers of the events that reports may still name, ascending."""
        return np.unique(self.state.pool[: self.rows, layout.SEQ])

    def find_used_keys(self) -> IntArray:
        """Return the numbers of keys and values that partial matches refer to, ascending."""
        rows = self.state.pool[: self.rows]
        values = rows[:, layout.MOMENTS + self.graph.uses.shape[1] :]
        return np.unique(np.concatenate([rows[: len(rows) * self.keyed, layout.KEY], values[values >= 0].ravel()]))

    def renumber_keys(self, kept: IntArray) -> None:
        """Replace each key and value by its position in `kept`, which has all that are in use."""
        state, top = self.state, self.rows
        values = state.pool[:top, layout.MOMENTS + self.graph.uses.shape[1] :]
        is_bound = values >= 0
        values[is_bound] = np.searchsorted(kept, values[is_bound])
        if not self.keyed:
            return
        state.pool[:top, layout.KEY] = np.searchsorted(kept, state.pool[:top, layout.KEY])
        nodes, patterns = len(self.graph.nodes), len(self.graph.patterns)
        self._fill_cells(_recode_cells(_filter_filled(state.cells), kept, nodes))
        self._fill_spent(_recode_cells(self._filter_spent(kept), kept, patterns))
        fresh = np.full(_round_up(len(kept), least=16), -1, np.int64)
        moved = kept[kept < len(state.fresh)]
        fresh[: len(moved)] = state.fresh[moved]
        self.state = self.state._replace(fresh=fresh)

    def restore(self, pool: IntArray, keys: int) -> None:
        """Take the rows of a state; `keys` is how many keys have numbers."""
        self._widen(keys)
        room = np.empty((_round_up(2 * len(pool), least=16_384), pool.shape[1]), np.int64)
        room[: len(pool)] = pool
        self.state = self.state._replace(pool=room)
        self.state.registers[layout.TOP] = len(pool)

    def put_cells(self, cells: IntArray) -> None:
        """Enter chains of waiting rows into the table: node, key, first row and length of each."""
        if not self.keyed:
            self.state.cells[cells[:, 0], layout.HEAD : layout.COUNT + 1] = cells[:, 2:]
            return
        codes = cells[:, 1] * len(self.graph.nodes) + cells[:, 0]
        self._fill_cells(np.column_stack([codes, cells[:, 2], cells[:, 3]]))

    def put_spent(self, spent: IntArray) -> None:
        """Enter the events that reports have consumed: pattern, key and last event of each."""
        if not self.keyed:
            self.state.spent[spent[:, 0], layout.HEAD] = spent[:, 2]
            return
        codes = spent[:, 1] * len(self.graph.patterns) + spent[:, 0]
        self._fill_spent(np.column_stack([codes, spent[:, 2], spent[:, 2]]))

    def _make_room(self, status: int, pieces: list[Reports]) -> None:
        state = self.state
        if status == MORE_ROWS:
            if self.tidy() * 8 > len(state.pool) or len(state.pool) < 2 * len(state.candidates):
                grown = np.empty((2 * len(state.pool), state.pool.shape[1]), np.int64)
                grown[: self.rows] = state.pool[: self.rows]
                self.state = state._replace(pool=grown)
        elif status == MORE_CANDIDATES:
            self.state = state._replace(candidates=np.empty((2 * len(state.candidates), 2), np.int64))
        elif status == MORE_OUT:
            if state.registers[layout.REPORTS]:
                pieces.append(self._drain_reports())
            else:  # one event alone completes more than they hold
                self._widen_out(grow=True)
        elif status == MORE_PATH:
            self.state = state._replace(path=np.empty((2 * len(state.path), 4), np.int64))
        elif status == MORE_CELLS:
            self._rehash()

    def _widen_out(self, *, grow: bool = False) -> None:
        """Allocate fresh report buffers, twice as large up to a limit; the old may be part of returned reports."""
        old = (self.state.out, self.state.listed_events)
        sizes = [2 * len(buffer) if grow or len(buffer) < 1 << 17 else len(buffer) for buffer in old]
        out, listed = (np.empty((size, *buffer.shape[1:]), np.int64) for size, buffer in zip(sizes, old, strict=True))
        self.state = self.state._replace(out=out, listed_events=listed)

    def _rehash(self) -> None:
        """Rebuild the hash tables of cells and of spent events with more room, without unused entries."""
        self.tidy()
        self._fill_cells(_filter_filled(self.state.cells), spare=len(self.state.candidates))
        self._fill_spent(self._filter_spent(self.find_used_keys()))

    def _filter_spent(self, kept: IntArray) -> IntArray:
        spent = _filter_filled(self.state.spent)
        return spent[np.isin(spent[:, layout.CODE] // len(self.graph.patterns), kept)]

    def _fill_cells(self, filled: IntArray, *, spare: int = 0) -> None:
        table = _make_table(_round_up(4 * len(filled) + 4 * spare, least=1024))
        self.state.registers[layout.CELLS] = refill(filled, table)
        self.state = self.state._replace(cells=table)

    def _fill_spent(self, filled: IntArray) -> None:
        table = _make_table(_round_up(4 * (len(filled) + len(self.graph.patterns)), least=1024))
        self.state.registers[layout.SPENT] = refill(filled, table)
        self.state = self.state._replace(spent=table)

    def _widen(self, keys: int) -> None:
        fresh = self.state.fresh
        if self.keyed and keys > len(fresh):
            grown = np.full(_round_up(keys, least=16), -1, np.int64)
            grown[: len(fresh)] = fresh
            self.state = self.state._replace(fresh=grown)

    def _drain_reports(self) -> Reports:
        """Return the reports so far; buffers that are nearly full are handed out themselves instead of being copied."""
        registers, state = self.state.registers, self.state
        count, listed = registers[layout.REPORTS], registers[layout.LISTED_EVENTS]
        registers[layout.REPORTS] = registers[layout.LISTED_EVENTS] = 0
        if 2 * count < len(state.out) and 2 * listed < len(state.listed_events):
            return Reports(state.out[:count].copy(), state.listed_events[:listed].copy())
        reports = Reports(state.out[:count], state.listed_events[:listed])
        self._widen_out()
        return reports


def _make_table(size: int) -> IntArray:
    table = np.full((size, 3), -1, np.int64)
    table[:, 2] = 0
    return table


def _filter_filled(table: IntArray) -> IntArray:
    return table[(table[:, layout.CODE] >= 0) & (table[:, layout.HEAD] >= 0)]


def _recode_cells(filled: IntArray, kept: IntArray, width: int) -> IntArray:
    """Return cells whose keys are replaced by their positions in `kept`."""
    keys, places = np.divmod(filled[:, layout.CODE], width)
    filled[:, layout.CODE] = np.searchsorted(kept, keys) * width + places
    return filled


def _round_up(size: int, least: int = 1) -> int:
    return 1 << max(least - 1, int(size - 1)).bit_length()
