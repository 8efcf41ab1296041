"""What Spark's own report on a micro-batch knows and ours cannot count: lag, and duplicates that were left out.

`StreamingQuery.lastProgress` is a dict. Offsets in it are JSON, as text or decoded already, and null before the
first batch; a source without such offsets has no lag that could be told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

KAFKA_PREFIX = "KafkaV2["
"""How Spark's description of a Kafka source begins."""


def compute_lag(progress: Mapping[str, Any]) -> dict[str, int]:
    """Return how many records each partition of the Kafka sources is behind: `{"ads-0": 120}`.

    Names are Kafka's own, the topic and the number. A partition that appeared after the batch was planned counts
    from offset 0, which may be more than Kafka still has.
    """
    lag: dict[str, int] = {}
    for source in progress.get("sources") or ():
        if str(source.get("description", "")).startswith(KAFKA_PREFIX):
            read = _parse_offsets(source.get("endOffset"))
            for name, latest in _parse_offsets(source.get("latestOffset")).items():
                lag[name] = lag.get(name, 0) + max(0, latest - read.get(name, 0))
    return lag


def count_duplicates(progress: Mapping[str, Any]) -> int:
    """Return how many rows were dropped because their id came before."""
    operators = progress.get("stateOperators") or ()
    counts = (dict(step.get("customMetrics") or {}).get("numDroppedDuplicateRows", 0) for step in operators)
    return sum(int(count) for count in counts)


def _parse_offsets(offset: object) -> dict[str, int]:
    """Return `{"ads": {"0": 12}}`, or the text of it, as `{"ads-0": 12}`; nothing where it is something else."""
    decoded = _decode(offset)
    if not isinstance(decoded, Mapping):
        return {}
    parts = [(topic, part) for topic, part in decoded.items() if isinstance(part, Mapping)]
    return {f"{topic}-{number}": int(at) for topic, part in parts for number, at in part.items()}


def _decode(offset: object) -> object:
    if not isinstance(offset, str):
        return offset
    try:
        return json.loads(offset)
    except ValueError:  # Spark's Python says "None" where there is none
        return None
