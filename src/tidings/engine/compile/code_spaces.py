"""Code spaces: the end points of a column's predicates in order, and codes for everything between them.

End point `r` has the code `2r + 1`, the values between two end points the even code between theirs:

    value    ... | 10 | ... | 20 | ...        `x < 20` is [0, 2], `x <= 20` is [0, 3], `x = 10` is [1, 1]
    code      0  |  1 |  2  |  3 |  4

So open and closed ends are closed intervals of integers, exactly, and no domain has to be declared. `n` end points
have the codes 0 to `2n`; a value that cannot be read has the code `2n + 2`, which is in no interval. End points that
are many and dense integers need no list: their rank is a subtraction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tidings.engine.arrays import freeze, pack_bytes
from tidings.engine.compile.columns import UNREADABLE_TEXT, ColumnValues, Numbers, Texts
from tidings.engine.tuning import DEFAULT_TUNING, EngineTuning
from tidings.kernels.array_types import ByteArray, CodeArray, FloatArray, IntArray
from tidings.kernels.match import value_codes as codes
from tidings.kernels.match.literals import ABSENT

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class RankedSpace:
    """Numbers by their rank in a sorted list; `rest` is the difference of integers to the nearest float, if any."""

    ends: FloatArray
    rest: NDArray[np.int16] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "ends", freeze(self.ends))

    def __len__(self) -> int:
        return len(self.ends)

    def encode(self, points: ColumnValues) -> CodeArray:
        """Return the codes of values, `ABSENT` for no value."""
        assert isinstance(points, Numbers)
        out = np.empty(len(points), np.uint32)
        codes.rank_numbers(np.ascontiguousarray(points.near), self.ends, out)
        if self.rest is not None or points.rest is not None:
            self._correct(points, out)
        return out

    def _correct(self, points: Numbers, out: CodeArray) -> None:
        """Correct the codes where the nearest floats are equal and the rests decide."""
        for index in range(len(out)):
            near = float(points.near[index])
            if not math.isfinite(near):  # absent or unreadable
                continue
            rest = 0 if points.rest is None else int(points.rest[index])
            first, last = (int(np.searchsorted(self.ends, near, side)) for side in ("left", "right"))
            rests = [0] * (last - first) if self.rest is None else self.rest[first:last].tolist()
            below = sum(end_rest < rest for end_rest in rests)
            out[index] = 2 * (first + below) + (below < len(rests) and rests[below] == rest)

    def decode(self, ranks: IntArray) -> list[Any]:
        """Return end points by rank, whole numbers as integers."""
        near = self.ends[ranks].tolist()
        rest = [0] * len(near) if self.rest is None else self.rest[ranks].tolist()
        return [int(value) + more if value.is_integer() else value for value, more in zip(near, rest, strict=True)]

    def to_values(self) -> Numbers:
        """Return all end points, in order."""
        return Numbers(self.ends, self.rest)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a snapshot."""
        return {"ends": self.ends} | ({} if self.rest is None else {"rest": self.rest})


@dataclass(frozen=True, slots=True)
class LinearSpace:
    """The integers from `base` on, `count` of them, each its own end point."""

    base: int
    count: int

    def __len__(self) -> int:
        return self.count

    def encode(self, points: ColumnValues) -> CodeArray:
        """Return the codes of values, `ABSENT` for no value."""
        assert isinstance(points, Numbers)
        out = np.empty(len(points), np.uint32)
        # Within 2**53 here, so a rest can only belong to a value far outside.
        codes.rank_integers(np.ascontiguousarray(points.near), float(self.base), self.count, out)
        return out

    def decode(self, ranks: IntArray) -> list[Any]:
        """Return end points by rank."""
        return list((ranks + self.base).tolist())

    def to_values(self) -> Numbers:
        """Return all end points, in order."""
        return Numbers(np.arange(self.base, self.base + self.count, dtype=np.float64))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a snapshot."""
        return {"line": np.array([self.base, self.count], np.int64)}


@dataclass(frozen=True, slots=True)
class ByteSpace:
    """Byte strings by their rank in a sorted list, which is one array of bytes and offsets."""

    blob: ByteArray
    start: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "blob", freeze(self.blob))
        object.__setattr__(self, "start", freeze(self.start))

    def __len__(self) -> int:
        return len(self.start) - 1

    def encode(self, points: ColumnValues) -> CodeArray:
        """Return the codes of values, `ABSENT` for no value."""
        assert isinstance(points, Texts)
        table = np.full(len(points.distinct) + 2, ABSENT, np.uint32)
        table[:-2] = codes.rank_bytes(*pack_bytes(points.distinct), self.blob, self.start)
        table[UNREADABLE_TEXT] = 2 * len(self) + 2
        return table[points.index]  # -1 finds the last: absent

    def decode(self, ranks: IntArray) -> list[Any]:
        """Return end points by rank."""
        data = self.blob
        return [data[self.start[rank] : self.start[rank + 1]].tobytes() for rank in ranks.tolist()]

    def to_values(self) -> Texts:
        """Return all end points, in order."""
        count = len(self)
        return Texts(np.arange(count, dtype=np.int32), self.decode(np.arange(count)))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a snapshot."""
        return {"blob": self.blob, "start": self.start}


CodeSpace: TypeAlias = RankedSpace | LinearSpace | ByteSpace


def build_space(points: ColumnValues, tuning: EngineTuning = DEFAULT_TUNING) -> CodeSpace:
    """Return the space of these end points, which may be in any order and repeated, but not missing."""
    if isinstance(points, Texts):
        used = np.unique(points.index)
        return ByteSpace(*pack_bytes(sorted(points.distinct[number] for number in used.tolist())))
    ends = points.near
    if points.rest is not None and points.rest.any():
        pairs = np.unique(np.stack([ends, points.rest.astype(np.float64)], axis=1), axis=0)
        return RankedSpace(np.ascontiguousarray(pairs[:, 0]), pairs[:, 1].astype(np.int16))
    distinct = np.unique(ends) + 0.0  # no negative zero
    listed = len(distinct) <= tuning.listed_ends or distinct[-1] - distinct[0] >= tuning.sparsity * len(distinct)
    if not listed and abs(distinct[0]) < 2**52:
        base = int(distinct[0])
        if np.array_equal(np.floor(distinct), distinct):
            return LinearSpace(base, int(distinct[-1]) - base + 1)
    return RankedSpace(distinct)


def open_space(arrays: dict[str, NDArray[Any]]) -> CodeSpace:
    """Return the space of a snapshot's arrays."""
    if "line" in arrays:
        base, count = arrays["line"].tolist()
        return LinearSpace(base, count)
    if "blob" in arrays:
        return ByteSpace(arrays["blob"], arrays["start"])
    return RankedSpace(arrays["ends"], arrays.get("rest"))


def merge_spaces(
    spaces: Sequence[CodeSpace], tuning: EngineTuning = DEFAULT_TUNING
) -> tuple[CodeSpace, list[IntArray]]:
    """Return one space for all, and for each space the new ranks of its end points."""
    if len(spaces) == 1:
        return spaces[0], [np.arange(len(spaces[0]))]
    values = [space.to_values() for space in spaces]
    numbers = [part for part in values if isinstance(part, Numbers)]
    lines = [space for space in spaces if isinstance(space, LinearSpace)]
    base = min((line.base for line in lines), default=0)
    width = max((line.base + line.count for line in lines), default=0) - base
    joint: CodeSpace
    if len(lines) == len(spaces) and width < 2 * sum(map(len, spaces)):
        joint = LinearSpace(base, width)
    elif numbers:
        rests = [np.zeros(len(part), np.int16) if part.rest is None else part.rest for part in numbers]
        joint = build_space(Numbers(np.concatenate([part.near for part in numbers]), np.concatenate(rests)), tuning)
    else:
        texts = [part.distinct for part in values if isinstance(part, Texts)]
        joint = ByteSpace(*pack_bytes(sorted(set().union(*texts))))
    return joint, [joint.encode(part).astype(np.int64) >> 1 for part in values]
