"""Code spaces: the end points of a column's predicates in order, and codes for everything between them.

End point `r` has the code `2r + 1`, what lies between two has the even code between theirs: so open and
closed ends are plain closed intervals of integers, exact, and no domain is declared. Of `n` end points the
codes are 0 to `2n`; what is there but cannot be read has the code `2n + 2`, in no interval. Numbers that are many and
dense integers need no list: their rank is a subtraction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tidings.engine.compile.columns import UNREADABLE_TEXT, Numbers, Points, Texts
from tidings.engine.readonly import frozen
from tidings.kernels.match import value_codes as codes
from tidings.kernels.match.literals import ABSENT

if TYPE_CHECKING:
    from collections.abc import Sequence


FEW = 32_000
"""So many end points have codes of 16 bits, and a list of them is small; beyond, integers go without one."""

SPARSE = 16
"""Integers go without a list when at least one in so many is an end point."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """Numbers by their place in a sorted list; `rest` is what floats cannot hold, if anything."""

    ends: NDArray[np.float64]
    rest: NDArray[np.int16] | None = None

    def __post_init__(self) -> None:
        """Make the ends read-only."""
        object.__setattr__(self, "ends", frozen(self.ends))

    def __len__(self) -> int:
        """Count the end points."""
        return len(self.ends)

    def codes(self, points: Points) -> NDArray[np.uint32]:
        """Return the codes of values; where there is none, `ABSENT`."""
        assert isinstance(points, Numbers)
        out = np.empty(len(points), np.uint32)
        codes.rank_numbers(np.ascontiguousarray(points.near), self.ends, out)
        if self.rest is not None or points.rest is not None:
            self._correct(points, out)
        return out

    def _correct(self, points: Numbers, out: NDArray[np.uint32]) -> None:
        """Decide by the rest where the nearest floats are equal."""
        for at in range(len(out)):
            near = float(points.near[at])
            if not math.isfinite(near):  # absent or unreadable
                continue
            rest = 0 if points.rest is None else int(points.rest[at])
            first, last = (int(np.searchsorted(self.ends, near, side)) for side in ("left", "right"))
            known = [0] * (last - first) if self.rest is None else self.rest[first:last].tolist()
            below = sum(one < rest for one in known)
            out[at] = 2 * (first + below) + (below < len(known) and known[below] == rest)

    def values(self, ranks: NDArray[np.int64]) -> list[Any]:
        """Return end points by rank: integers where they are whole."""
        near = self.ends[ranks].tolist()
        rest = [0] * len(near) if self.rest is None else self.rest[ranks].tolist()
        return [int(one) + more if one.is_integer() else one for one, more in zip(near, rest, strict=True)]

    def points(self) -> Numbers:
        """Return all end points, in order."""
        return Numbers(self.ends, self.rest)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a snapshot keeps."""
        return {"ends": self.ends} | ({} if self.rest is None else {"rest": self.rest})


@dataclass(frozen=True, slots=True)
class Linear:
    """The integers from `base` on, `count` of them, each its own end point."""

    base: int
    count: int

    def __len__(self) -> int:
        """Count the end points."""
        return self.count

    def codes(self, points: Points) -> NDArray[np.uint32]:
        """Return the codes of values; where there is none, `ABSENT`."""
        assert isinstance(points, Numbers)
        out = np.empty(len(points), np.uint32)
        # Within 2**53 here, so a rest can only belong to a value far outside.
        codes.rank_integers(np.ascontiguousarray(points.near), float(self.base), self.count, out)
        return out

    def values(self, ranks: NDArray[np.int64]) -> list[Any]:
        """Return end points by rank."""
        return (ranks + self.base).tolist()  # type: ignore[no-any-return]

    def points(self) -> Numbers:
        """Return all end points, in order."""
        return Numbers(np.arange(self.base, self.base + self.count, dtype=np.float64))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a snapshot keeps."""
        return {"line": np.array([self.base, self.count], np.int64)}


@dataclass(frozen=True, slots=True)
class Bytewise:
    """Byte strings by their place in a sorted list, kept as one blob and offsets."""

    blob: NDArray[np.uint8]
    start: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        object.__setattr__(self, "blob", frozen(self.blob))
        object.__setattr__(self, "start", frozen(self.start))

    @classmethod
    def of(cls, ends: Sequence[bytes]) -> Bytewise:
        """Take byte strings that are sorted and distinct."""
        return cls(*packed(ends))

    def __len__(self) -> int:
        """Count the end points."""
        return len(self.start) - 1

    def codes(self, points: Points) -> NDArray[np.uint32]:
        """Return the codes of values; where there is none, `ABSENT`."""
        assert isinstance(points, Texts)
        table = np.full(len(points.distinct) + 2, ABSENT, np.uint32)
        table[:-2] = codes.rank_bytes(*packed(points.distinct), self.blob, self.start)
        table[UNREADABLE_TEXT] = 2 * len(self) + 2
        return table[points.index]  # -1 finds the last: absent

    def values(self, ranks: NDArray[np.int64]) -> list[Any]:
        """Return end points by rank."""
        data = self.blob
        return [data[self.start[rank] : self.start[rank + 1]].tobytes() for rank in ranks.tolist()]

    def points(self) -> Texts:
        """Return all end points, in order."""
        count = len(self)
        return Texts(np.arange(count, dtype=np.int32), self.values(np.arange(count)))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a snapshot keeps."""
        return {"blob": self.blob, "start": self.start}


Space: TypeAlias = Ranked | Linear | Bytewise


def packed(texts: Sequence[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return byte strings as one array and offsets."""
    start = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=start[1:])
    return np.frombuffer(b"".join(texts), np.uint8), start


def space_of(points: Points) -> Space:
    """Return the space of these end points (in any order, repeated or not; none of them missing)."""
    if isinstance(points, Texts):
        used = np.unique(points.index)
        return Bytewise.of(sorted(points.distinct[at] for at in used.tolist()))
    ends = points.near
    if points.rest is not None and points.rest.any():
        pairs = np.unique(np.stack([ends, points.rest.astype(np.float64)], axis=1), axis=0)
        return Ranked(np.ascontiguousarray(pairs[:, 0]), pairs[:, 1].astype(np.int16))
    distinct = np.unique(ends) + 0.0  # no negative zero
    if len(distinct) > FEW and distinct[-1] - distinct[0] < SPARSE * len(distinct) and abs(distinct[0]) < 2**52:
        base = int(distinct[0])
        if np.array_equal(np.floor(distinct), distinct):
            return Linear(base, int(distinct[-1]) - base + 1)
    return Ranked(distinct)


def restored(arrays: dict[str, NDArray[Any]]) -> Space:
    """Return the space that a snapshot kept."""
    if "line" in arrays:
        base, count = arrays["line"].tolist()
        return Linear(base, count)
    if "blob" in arrays:
        return Bytewise(arrays["blob"], arrays["start"])
    return Ranked(arrays["ends"], arrays.get("rest"))


def merged(spaces: Sequence[Space]) -> tuple[Space, list[NDArray[np.int64]]]:
    """Return one space for all, and for each the new rank of each of its end points."""
    if len(spaces) == 1:
        return spaces[0], [np.arange(len(spaces[0]))]
    if isinstance(spaces[0], Bytewise):
        lists = [space.points().distinct for space in spaces]  # type: ignore[union-attr]
        joint: Space = Bytewise.of(sorted(set().union(*lists)))
    elif all(isinstance(space, Linear) for space in spaces):
        base = min(space.base for space in spaces)  # type: ignore[union-attr]
        last = max(space.base + space.count for space in spaces)  # type: ignore[union-attr]
        dense = last - base < 2 * sum(map(len, spaces))
        joint = Linear(base, last - base) if dense else space_of(_joined(spaces))
    else:
        joint = space_of(_joined(spaces))
    return joint, [joint.codes(space.points()).astype(np.int64) >> 1 for space in spaces]


def _joined(spaces: Sequence[Space]) -> Numbers:
    parts = [space.points() for space in spaces]
    near = np.concatenate([part.near for part in parts])  # type: ignore[union-attr]
    if all(part.rest is None for part in parts):  # type: ignore[union-attr]
        return Numbers(near)
    rests = [np.zeros(len(part), np.int16) if part.rest is None else part.rest for part in parts]  # type: ignore[union-attr]
    return Numbers(near, np.concatenate(rests))
