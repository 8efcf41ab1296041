"""Values that are not what filters ask for, over all batches of a pipeline: counted by workers, told by the driver.

Workers count for each shard, and every shard sees every event: within a shard counts add up, over shards the largest
stands. Who asks is looked up in the version of the subscriptions that the batch used, and only when something new
was counted.
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

    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.matcher.live.versions import Version
    from tidings.matcher.mismatch_report import MismatchReport


class PipelineMismatches:
    """The counts of one run of a pipeline, and which of them were told as warnings."""

    def __init__(self) -> None:
        """Start with nothing counted."""
        self._shards: dict[int, MismatchCounts] = {}
        self._warned: set[tuple[str, str, str]] = set()
        self._reports: tuple[MismatchReport, ...] = ()

    def add(self, counted: Iterable[str], folder: Path, version: Version) -> tuple[MismatchReport, ...]:
        """Add what workers counted in a batch, and return all that does not fit, with who asks."""
        batches = [json.loads(text) for text in counted]
        if not batches:
            return self._reports
        for shard, rows in batches:
            self._shards.setdefault(shard, MismatchCounts()).merge(rows)
        self._reports = tuple(describe_mismatches(self._merge_shards(), open_version(folder, version).backend))
        return self._reports

    def take_new(self) -> list[MismatchReport]:
        """Return what has not been told as a warning yet, each once."""
        mismatches = [
            mismatch
            for mismatch in self._reports
            if (mismatch.attribute, mismatch.kind, mismatch.unit) not in self._warned
        ]
        self._warned.update((mismatch.attribute, mismatch.kind, mismatch.unit) for mismatch in mismatches)
        return mismatches

    def _merge_shards(self) -> MismatchCounts:
        """Return for each attribute and kind the counts of the shard that saw most of it."""
        best: dict[TypedAttribute, MismatchCounts] = {}
        for counts in self._shards.values():
            for key in counts.types:
                largest_so_far = best.get(key)
                if largest_so_far is None or largest_so_far.types[key].total() < counts.types[key].total():
                    best[key] = counts
        largest = MismatchCounts()
        for key, counts in best.items():
            largest.values[key], largest.types[key] = counts.values[key], counts.types[key]
        return largest
