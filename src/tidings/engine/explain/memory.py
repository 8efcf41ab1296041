"""How many bytes a segment takes: its arrays, and what was written where rows do not say it."""

from __future__ import annotations

import pickle
import sys
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidings.engine.segment import Segment

LOOKED_AT = 256
"""So many written filters are looked at; the others are taken to be like them."""


def measure_segment(segment: Segment) -> int:
    """Return the bytes of all arrays of a segment, mapped from a file or not, and of the filters kept as written."""
    held = {
        array.__array_interface__["data"][0]: array.nbytes
        for array in _iterate_arrays(_list_parts(segment))
        if array.nbytes
    }
    return sum(held.values()) + _measure_sources(segment.sources.filters)


def _list_parts(segment: Segment) -> list[Any]:
    automata = [automaton.to_arrays() for automaton in segment.automata.values()]
    ids = segment.ids.to_arrays()
    kept = [segment.trees, segment.candidate_trees]
    return [segment.spaces, segment.index, segment.exact_checks, automata, kept, ids, segment.sources.slots]


def _iterate_arrays(part: Any) -> Iterator[np.ndarray]:
    """Yield the arrays in tuples, lists, dictionaries and dataclasses; a list of other things is not searched."""
    if isinstance(part, np.ndarray):
        yield part
    elif isinstance(part, dict):
        for one in part.values():
            yield from _iterate_arrays(one)
    elif isinstance(part, tuple | list):
        for one in part:
            if isinstance(one, np.ndarray | dict | tuple) or is_dataclass(one):
                yield from _iterate_arrays(one)
    elif is_dataclass(part):
        for field in fields(part):
            if field.name not in ("items", "_known"):
                yield from _iterate_arrays(getattr(part, field.name))


def _measure_sources(written: Sequence[Any]) -> int:
    packed = getattr(written, "_blob", None)
    if packed is not None or not len(written):
        return 0 if packed is None else packed.nbytes + written._start.nbytes  # type: ignore[attr-defined]
    step = max(1, len(written) // LOOKED_AT)
    some = [
        sys.getsizeof(one) if isinstance(one, str) else len(pickle.dumps(one))
        for one in (written[at] for at in range(0, len(written), step))
    ]
    return len(written) * sum(some) // len(some)
