"""Values of another kind than filters ask for, counted by workers over all batches of a pipeline.

Workers count for each shard, and every shard sees every event: counts of a shard are added over batches, and of all
shards the largest count is reported. The subscriptions that ask are looked up in the version that the batch used, only
when a batch has new counts.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tidings.algebra.law.mismatches import MismatchCounts
from tidings.matcher.live.versions import open_version
from tidings.matcher.mismatch_report import describe_mismatches

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tidings.matcher.live.versions import Version
    from tidings.matcher.mismatch_report import MismatchReport


class PipelineMismatches:
    """The counts of one run of a pipeline, and which of them were reported as warnings."""

    def __init__(self) -> None:
        """Start without counts."""
        self._shards: dict[int, MismatchCounts] = {}
        self._warned: set[tuple[str, str, str]] = set()
        self._reports: tuple[MismatchReport, ...] = ()

    def add(self, counted: Iterable[str], folder: Path, version: Version) -> tuple[MismatchReport, ...]:
        """Add the workers' counts of a batch; return all mismatches so far, with the subscriptions that ask."""
        batches = [json.loads(text) for text in counted]
        if not batches:
            return self._reports
        for shard, rows in batches:
            self._shards.setdefault(shard, MismatchCounts()).merge(rows)
        self._reports = tuple(describe_mismatches(self._merge_shards(), open_version(folder, version).backend))
        return self._reports

    def take_new(self) -> list[MismatchReport]:
        """Return the mismatches that were not returned before."""
        new = [report for report in self._reports if (report.attribute, report.kind, report.unit) not in self._warned]
        self._warned.update((report.attribute, report.kind, report.unit) for report in new)
        return new

    def _merge_shards(self) -> MismatchCounts:
        """Return for each attribute and kind the counts of the shard with the most."""
        largest = MismatchCounts()
        for counts in self._shards.values():
            for key, types in counts.types.items():
                if key not in largest.types or largest.types[key].total() < types.total():
                    largest.values[key], largest.types[key] = counts.values[key], types
        return largest
