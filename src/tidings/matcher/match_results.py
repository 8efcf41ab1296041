"""Pairs of event and slot, as lists of ids or as `Matches`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tidings.engine.ids import Ids
from tidings.model import DeadLetter, Matches

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from tidings.engine.engine import SegmentMatches
    from tidings.kernels.array_types import IntArray
    from tidings.matcher.algorithm import SubId


def list_ids(segments: Sequence[SegmentMatches]) -> list[SubId]:
    """Return the ids of all pairs."""
    result: list[SubId] = []
    for _, slots, ids in segments:
        if len(slots):
            result += ids.to_list(slots) if isinstance(ids, Ids) else [ids[slot] for slot in slots.tolist()]
    return result


def build_matches(
    groups: Sequence[tuple[IntArray, SegmentMatches]], events: int, dead: tuple[DeadLetter, ...]
) -> Matches:
    """Return the pairs of a batch of so many events; each group comes with the indexes of its events."""
    parts = [(index, segment) for index, segment in groups if len(segment.slots)]
    if len(parts) == 1 and len(parts[0][0]) == events:
        event_index = parts[0][1].events
    else:
        event_index = np.concatenate([np.zeros(0, np.int64), *(index[segment.events] for index, segment in parts)])
    dead = tuple(sorted(dead, key=lambda letter: letter.index))
    # Ids are taken when somebody reads them: a caller that only counts matches does not pay for them.
    return Matches(event_index, lambda: _take_ids([segment for _, segment in parts]), events, dead)


def concatenate_matches(pieces: Sequence[tuple[int, Matches]]) -> Matches:
    """Return the matches of all pieces as those of one batch; each comes with the number of events before it."""
    index = np.concatenate([np.zeros(0, np.int64), *(matches.event_index + first for first, matches in pieces)])
    letters = [
        replace(letter, index=letter.index + first) for first, matches in pieces for letter in matches.dead_letters
    ]
    events = sum(matches.events for _, matches in pieces)
    return Matches(
        index, lambda: _concatenate_arrays([matches.id_array() for _, matches in pieces]), events, tuple(letters)
    )


def _take_ids(segments: Sequence[SegmentMatches]) -> pa.Array:
    import pyarrow as pa

    arrays = [
        ids.take(slots) if isinstance(ids, Ids) else pa.array([ids[slot] for slot in slots.tolist()])
        for _, slots, ids in segments
    ]
    return _concatenate_arrays(arrays)


def _concatenate_arrays(arrays: list[pa.Array]) -> pa.Array:
    import pyarrow as pa

    arrays = [array for array in arrays if len(array)]
    if not arrays:
        return pa.array([], pa.string())
    if len({array.type for array in arrays}) > 1:
        arrays = [array.cast(pa.large_string()) for array in arrays]
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
