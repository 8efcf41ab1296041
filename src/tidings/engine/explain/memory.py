"""How many bytes a segment takes: its arrays, and the written filters that are kept beside them."""

from __future__ import annotations

import pickle
import sys
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.engine.compile.source_text import PackedSources

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tidings.engine.compile.source_text import FilterSource
    from tidings.engine.segment import Segment

SAMPLED = 256
"""Written filters that are measured; the others are taken to be like them."""


def measure_segment(segment: Segment) -> int:
    """Return the bytes of all arrays of a segment, mapped from a file or not, and of its written filters."""
    # By address: arrays that share their memory count once.
    sizes = {array.__array_interface__["data"][0]: array.nbytes for array in _iterate_arrays(_list_parts(segment))}
    return sum(sizes.values()) + _measure_sources(segment.sources.filters)


def _list_parts(segment: Segment) -> list[Any]:
    automata = [automaton.to_arrays() for automaton in segment.automata.values()]
    trees = [segment.trees, segment.candidate_trees]
    ids = segment.ids.to_arrays()
    return [segment.spaces, segment.index, segment.exact_checks, automata, trees, ids, segment.sources.slots]


def _iterate_arrays(part: Any) -> Iterator[NDArray[Any]]:
    """Yield the arrays in tuples, lists, dictionaries and dataclasses; decoded items are passed over."""
    if isinstance(part, np.ndarray):
        if part.nbytes:
            yield part
    elif isinstance(part, dict):
        for value in part.values():
            yield from _iterate_arrays(value)
    elif isinstance(part, tuple | list):
        for value in part:
            yield from _iterate_arrays(value)
    elif is_dataclass(part):
        for field in fields(part):
            if field.name not in ("items", "decoded"):
                yield from _iterate_arrays(getattr(part, field.name))


def _measure_sources(filters: Sequence[FilterSource]) -> int:
    if isinstance(filters, PackedSources):
        return filters.nbytes
    if not len(filters):
        return 0
    sampled = [filters[at] for at in range(0, len(filters), max(1, len(filters) // SAMPLED))]
    sizes = [sys.getsizeof(source) if isinstance(source, str) else len(pickle.dumps(source)) for source in sampled]
    return len(filters) * sum(sizes) // len(sizes)
