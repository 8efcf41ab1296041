"""The baseline of the speed table: a loop over events in Python, written straight, for sequences of single steps.

For each type it knows which steps of which patterns it serves, and for each pattern (and key) where matches stand: in
`restart` the latest beginning that has come so far, in `next` all beginnings. Nothing is merged or compiled.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tidings.errors import Unsupported
from tidings.model.patterns import Gap, Sequence, Timed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.model.patterns import Pattern

FOREVER = 1 << 62
"""The window of a pattern without `within`."""


class PlainPatternLoop:
    """The state of all patterns for every key; a type is the name of the one filter it satisfies."""

    def __init__(self, patterns: Iterable[Pattern], *, mode: str) -> None:
        """Lay the patterns out by type."""
        self._serves: dict[str, list[tuple[int, int]]] = {}
        self._gaps: list[list[bool]] = []  # whether a step waits for any later event, or for the next one alone
        self._windows: list[int] = []
        for number, pattern in enumerate(patterns):
            root, window = pattern.root, FOREVER
            if isinstance(root, Timed):
                root, window = root.part, root.within or FOREVER
            if not isinstance(root, Sequence):
                msg = f"the plain loop takes sequences of steps, not `{type(root).__name__}`"
                raise Unsupported(msg)
            self._windows.append(window)
            self._gaps.append([True, *(joint.gap is Gap.LATER for joint in root.joints)])
            for place, step in enumerate(pattern.steps()):
                self._serves.setdefault(step.filter, []).append((number, place))
        self._waiting: dict[tuple[Any, int, int], Any] = {}
        self._fresh: dict[Any, dict[tuple[int, int], int]] = {}
        self._take = self._count_next if mode == "next" else self._count_restart

    def take(self, types: list[str], times: list[int], keys: list[Any] | None = None) -> Counter[int]:
        """Process events, and return how often each pattern was completed."""
        return self._take(types, times, keys or [None] * len(types))

    def _count_restart(self, types: list[str], times: list[int], keys: list[Any]) -> Counter[int]:
        counts: Counter[int] = Counter()
        waiting = self._waiting
        for name, time, key in zip(types, times, keys, strict=True):
            fresh = self._fresh.pop(key, {})
            reached: list[tuple[int, int, int]] = []
            done: set[int] = set()
            for number, place in self._serves.get(name, ()):
                start: int | None = time
                if place:
                    finished = (
                        waiting.get((key, number, place)) if self._gaps[number][place] else fresh.get((number, place))
                    )
                    start = finished
                if start is None or time - start > self._windows[number]:
                    continue
                if place + 1 == len(self._gaps[number]):
                    done.add(number)
                else:
                    reached.append((number, place + 1, start))
            for number in done:  # all that came before is spent
                counts[number] += 1
                for place in range(len(self._gaps[number])):
                    waiting.pop((key, number, place), None)
            self._move([item for item in reached if item[0] not in done], key)
        return counts

    def _move(self, reached: list[tuple[int, int, int]], key: Any) -> None:
        for number, place, start in reached:
            if self._gaps[number][place]:
                begin = self._waiting.get((key, number, place), start)
                self._waiting[key, number, place] = max(start, begin)
            else:
                self._fresh.setdefault(key, {})[number, place] = start

    def _count_next(self, types: list[str], times: list[int], keys: list[Any]) -> Counter[int]:
        """Do the same in the mode `next`, where all joints are `;` and no type serves two steps of a pattern."""
        counts: Counter[int] = Counter()
        waiting = self._waiting
        for name, time, key in zip(types, times, keys, strict=True):
            for number, place in self._serves.get(name, ()):
                starts = [time]
                if place:
                    starts = waiting.pop((key, number, place), [])
                    starts = [start for start in starts if time - start <= self._windows[number]]
                if place + 1 == len(self._gaps[number]):
                    counts[number] += len(starts)
                elif starts:
                    waiting.setdefault((key, number, place + 1), []).extend(starts)
        return counts
