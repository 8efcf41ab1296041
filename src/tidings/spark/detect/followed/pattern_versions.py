"""A folder of versions of a pattern set, of which every micro-batch uses one.

| name | what it is |
|---|---|
| `versions/0000000012.json` | what version 12 adds to and removes from the one before; or, with `all`, every pattern |
| `claims/QUERY/BATCH.json` | the version that a batch uses (`matcher.live.claims`) |
| `models/DIGEST.model` | a model that versions name |

A change costs what it changes: a version with `all` is written when the changes since the last one outnumber the
patterns. A reader that has a version reads the changes since; any other reads from the newest `all`. Invariant: a file
is written once and never altered, so a version means the same whenever a batch runs again. Files stay until no claim
needs them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tidings.engine.persist.mapped_arrays import write_atomically
from tidings.errors import CheckpointError
from tidings.forecast.predicting.forecaster import ForecastPlan
from tidings.lang import WrittenPattern, parse_pattern
from tidings.matcher.live.claims import find_claimed_versions
from tidings.matcher.snapshot.snapshot_folder import sign
from tidings.model.patterns import Mode

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

VERSIONS, MODELS = "versions", "models"

MOST_CHANGES = 256
"""Patterns that versions add and remove before one lists all again; or as many as there are, if that is more."""


@dataclass(frozen=True, slots=True)
class FollowedPattern:
    """A pattern as a version has it: in JSON notation, and the time, in microseconds, after which it sees events.

    With a `horizon` it is forecast; `forecasts_only`: and its matches are not reported. `wanted` is the horizon that
    its subscriber asks for; it is forecast as soon as the model knows the pattern. `source` stands for what it was read
    from, and by what (`PatternReading.sign_source`).
    """

    name: str
    tree: Mapping[str, Any]
    mode: str
    since: int
    limit: int | None = None
    horizon: str | None = None
    threshold: float = 0.5
    tell: str = "crossing"
    step: float = 0.1
    forecasts_only: bool = False
    wanted: str | None = None
    source: str = field(default="", compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    def to_written(self) -> WrittenPattern:
        """Return the pattern as a file would have it."""
        return WrittenPattern(self.name, parse_pattern(self.tree, notation="json"), Mode(self.mode), self.limit)

    def has_same_matches(self, other: FollowedPattern | None) -> bool:
        """Tell whether another pattern of this name reports the same matches, so that its partial matches go on."""
        mine = (self.tree, self.mode, self.limit)
        return other is not None and mine == (other.tree, other.mode, other.limit)

    @property
    def plan(self) -> ForecastPlan | None:
        """How it is forecast, where it is."""
        if self.horizon is None:
            return None
        plan = ForecastPlan.of(horizon=self.horizon, threshold=self.threshold, tell=self.tell, step=self.step)
        return replace(plan, own=True)  # a forecast shows the event that it is told at


@dataclass(frozen=True, slots=True)
class PatternVersion:
    """All patterns of a version, by name, and the file of the model that forecasts them."""

    number: int = 0
    patterns: Mapping[str, FollowedPattern] = field(default_factory=dict)
    model: str | None = None
    changes: int = 0  # patterns that were added and removed since a version that lists all


@dataclass(frozen=True, slots=True)
class PatternChanges:
    """What a version differs in from an older one; with `all`, its patterns are all there are."""

    patterns: Sequence[FollowedPattern]
    removed: Sequence[str]
    model: str | None
    all: bool


class PatternVersions:
    """The folder; one process writes it, and workers read it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    # Reading -----------------------------------------------------------------------------------

    def find_newest(self) -> int:
        """Return the number of the newest version, 0 where there is none."""
        return max(self._list_numbers(), default=0)

    def read(self, number: int) -> PatternVersion:
        """Return a version; number 0 has no patterns."""
        tables = list(self._walk(number, 0))
        changes = _join_changes(tables, is_all=True)
        patterns = {pattern.name: pattern for pattern in changes.patterns}
        size = sum(_measure(table) for table in tables if not table["all"])
        return PatternVersion(number, patterns, changes.model, size)

    def read_changes(self, number: int, since: int) -> PatternChanges:
        """Return how a version differs from an older one."""
        tables = list(self._walk(number, since))
        return _join_changes(tables, is_all=since == 0 or any(table["all"] for table in tables))

    def read_model(self, name: str) -> bytes:
        """Return the bytes of a model."""
        path = self.folder / MODELS / name
        try:
            return path.read_bytes()
        except OSError as problem:
            msg = f"the model `{path}` cannot be read: {problem.strerror}; copy the checkpoint back as a whole"
            raise CheckpointError(msg) from problem

    def _walk(self, number: int, since: int) -> Iterable[Mapping[str, Any]]:
        """Yield versions from the newest back, down to the one after `since` or the first that lists all."""
        while number > since:
            table = self._read_table(number)
            yield table
            if table["all"]:
                return
            number = int(table["before"])

    def _read_table(self, number: int) -> Mapping[str, Any]:
        path = self._get_path(number)
        try:
            table: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as problem:
            msg = f"the version of patterns `{path}` cannot be read: {problem}; copy the checkpoint back as a whole"
            raise CheckpointError(msg) from problem
        if sign(dict(table)) != table:
            msg = f"the version of patterns `{path}` is altered: its checksum is another; copy the checkpoint back"
            raise CheckpointError(msg)
        return table

    # Writing -----------------------------------------------------------------------------------

    def write(
        self,
        before: PatternVersion,
        put: Sequence[FollowedPattern],
        removed: Sequence[str] = (),
        *,
        model: str | None = None,
        most_changes: int = MOST_CHANGES,
    ) -> PatternVersion:
        """Write the version after `before`, which must be the newest."""
        gone = set(removed)
        patterns = {name: pattern for name, pattern in before.patterns.items() if name not in gone}
        for pattern in put:
            patterns.pop(pattern.name, None)
            patterns[pattern.name] = pattern
        changes = before.changes + len(put) + len(removed)
        is_all = before.number == 0 or changes > max(most_changes, len(patterns))
        table = {
            "before": before.number,
            "all": is_all,
            "put": [pattern.to_json() for pattern in (patterns.values() if is_all else put)],
            "removed": [] if is_all else list(removed),
            "model": model,
        }
        number = before.number + 1
        path = self._get_path(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, iter([json.dumps(sign(table)).encode()]))
        return PatternVersion(number, patterns, model, 0 if is_all else changes)

    def write_model(self, content: bytes) -> str:
        """Write a model unless it is there, and return its name."""
        name = f"{hashlib.sha256(content).hexdigest()[:24]}.model"
        path = self.folder / MODELS / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, iter([content]))
        return name

    def prune(self) -> None:
        """Remove versions and models that no claim needs, nor the newest version."""
        claimed = find_claimed_versions(self.folder, silent_seconds=float("inf"))
        numbers = self._list_numbers()
        tables = [table for number in {*claimed, *numbers[-1:]} for table in self._walk(number, 0)]
        oldest = min((int(table["before"]) + 1 for table in tables), default=0)
        for number in numbers:
            if number < oldest:
                self._get_path(number).unlink(missing_ok=True)
        models = {table["model"] for table in tables}
        with suppress(FileNotFoundError):
            for entry in os.scandir(self.folder / MODELS):
                if entry.name not in models:
                    os.unlink(entry.path)

    def _list_numbers(self) -> list[int]:
        names = (path.name for path in (self.folder / VERSIONS).glob("*.json"))
        return sorted(int(stem) for name in names if (stem := name.partition(".")[0]).isdigit())

    def _get_path(self, number: int) -> Path:
        return self.folder / VERSIONS / f"{number:010}.json"


def _join_changes(tables: Sequence[Mapping[str, Any]], *, is_all: bool) -> PatternChanges:
    """Return what versions, the newest first, change together; with `is_all` nothing was there before them."""
    patterns: dict[str, FollowedPattern] = {}
    removed: dict[str, None] = {}
    for table in reversed(tables):
        for name in table["removed"]:
            patterns.pop(name, None)
            removed[name] = None
        # A name that is there goes to the end: in the order that a reader of each version would have it.
        for fields in table["put"]:
            patterns.pop(fields["name"], None)
            patterns[fields["name"]] = FollowedPattern(**fields)
    gone = [] if is_all else [name for name in removed if name not in patterns]
    return PatternChanges(list(patterns.values()), gone, tables[0]["model"] if tables else None, is_all)


def _measure(table: Mapping[str, Any]) -> int:
    return len(table["put"]) + len(table["removed"])
