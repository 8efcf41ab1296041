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
        self._told: tuple[MismatchReport, ...] = ()

    def take(self, counted: Iterable[str], folder: Path, version: Version) -> tuple[MismatchReport, ...]:
        """Add what workers counted in a batch, and return all that does not fit, with who asks."""
        batches = [json.loads(text) for text in counted]
        if not batches:
            return self._told
        for shard, rows in batches:
            self._shards.setdefault(shard, MismatchCounts()).merge(rows)
        self._told = tuple(describe_mismatches(self._largest(), open_version(folder, version).backend))
        return self._told

    def fresh(self) -> list[MismatchReport]:
        """Return what has not been told as a warning yet, each once."""
        found = [one for one in self._told if (one.attribute, one.kind, one.unit) not in self._warned]
        self._warned.update((one.attribute, one.kind, one.unit) for one in found)
        return found

    def _largest(self) -> MismatchCounts:
        """Return for each attribute and kind the counts of the shard that saw most of it."""
        best: dict[TypedAttribute, MismatchCounts] = {}
        for counts in self._shards.values():
            for key in counts.types:
                known = best.get(key)
                if known is None or known.types[key].total() < counts.types[key].total():
                    best[key] = counts
        largest = MismatchCounts()
        for key, counts in best.items():
            largest.values[key], largest.types[key] = counts.values[key], counts.types[key]
        return largest
