"""The parts of Spark's progress report that we cannot count ourselves: lag, and dropped duplicates.

`StreamingQuery.lastProgress` is a dict. Offsets in it are JSON, as text or decoded already, and null before the
first batch; a source without such offsets has no known lag.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

KAFKA_PREFIX = "KafkaV2["
"""The beginning of Spark's description of a Kafka source."""


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
    """Return `{"ads": {"0": 12}}`, or its JSON text, as `{"ads-0": 12}`; anything else is empty."""
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
    except ValueError:  # PySpark gives the text "None" for a missing offset
        return None
