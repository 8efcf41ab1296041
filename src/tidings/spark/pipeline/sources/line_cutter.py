"""Lines and rows of a file, cut out of pieces of it; none is held that is larger than an event may be.

A line belongs to the range in which it begins, so ranges that adjoin give every line once, whatever their ends cut
through. Line feeds and carriage returns end a line, and what is empty is left out, so the two together end one. Lines
are found by their ends in a whole piece at once; one that goes over several pieces is put together, until it is larger
than an event may be: from there on its bytes are counted and let go. Memory: the largest event and a piece.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from tidings.spark.pipeline.sources.size_limits import FIRST, first_bytes, too_large

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

PIECE = 1 << 20
"""Bytes that are read at once, and that make up a batch."""

END = sys.maxsize
"""Where a range ends that goes to the end of the file."""

MARK = b"\xef\xbb\xbf"
"""What some editors begin a file of UTF-8 with; it is no part of the first line. No range ends within it."""

_LF, _CR = 10, 13

Refusal: TypeAlias = tuple[str, str]
"""Why, and what is refused."""


def lines_of(stream: pa.NativeFile, *, start: int, stop: int, largest: int) -> Iterator[tuple[pa.Array, list[Refusal]]]:
    """Yield the lines that begin within the range, piece by piece, and those that are too large.

    A stream that is unpacked on the way cannot be entered in its midst: its range is all of it.
    """
    cutter = Cutter(stop, Begun(largest))
    if start:  # the byte before may end a line, and then one begins here
        stream.seek(start - 1)
        cutter = Cutter(stop, Begun(largest, skipping=True), at=start - 1)
    while not cutter.done and (piece := stream.read(PIECE)):
        yield cutter.cut(piece if cutter.at else piece.removeprefix(MARK), len(piece)), cutter.begun.refusals()
    yield cutter.ended(), cutter.begun.refusals()


@dataclass(slots=True)
class Begun:
    """A line or row that has begun and not ended yet: all of it, or the first bytes of one that is too large."""

    largest: int
    skipping: bool = False  # to its end: it is too large, or began where somebody else reads
    rest: bytes = b""
    gone: int = 0  # how many bytes after `rest` were let go
    refused: list[Refusal] = field(default_factory=list)

    def __len__(self) -> int:
        """Count its bytes."""
        return len(self.rest) + self.gone

    def add(self, piece: bytes) -> None:
        """Go on with it; of one that is too large, the first bytes alone are kept."""
        if not self.skipping:
            piece, self.rest = self.rest + piece, b""
            if len(piece) <= self.largest:
                self.rest = piece
                return
            self.skipping = True
        elif not self.rest:
            return  # it is told of by who reads its beginning
        some = piece[: FIRST - len(self.rest)]
        self.rest, self.gone = self.rest + some, self.gone + len(piece) - len(some)

    def end(self, last: bytes) -> None:
        """End one that was let go, with these bytes."""
        self.add(last)
        if self.rest:
            self.refused.append((too_large(len(self), self.largest), first_bytes(self.rest)))
        self.skipping, self.rest, self.gone = False, b"", 0

    def taken(self) -> bytes:
        """Return what there is of one that fits, and begin the next."""
        rest, self.rest = self.rest, b""
        return rest

    def large(self, whole: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which of the lines between starts and ends are too large, and refuse them."""
        large = ends - starts > self.largest
        for low, high in zip(starts[large].tolist(), ends[large].tolist(), strict=True):
            self.refused.append((too_large(high - low, self.largest), first_bytes(whole[low:high][:FIRST].tobytes())))
        return large

    def refusals(self) -> list[Refusal]:
        """Return those that were too large since the last call; another thread may be reading on."""
        return [self.refused.pop(0) for _ in range(len(self.refused))]


@dataclass(slots=True)
class Cutter:
    """Cuts pieces into lines."""

    stop: int
    begun: Begun
    at: int = 0  # where the next piece begins

    @property
    def done(self) -> bool:
        """Whether the next line begins after the range."""
        return self.at - len(self.begun) >= self.stop

    def cut(self, piece: bytes, size: int) -> pa.Array:
        """Take the next piece, of so many bytes in the file, and return the lines that it ends."""
        signs = np.frombuffer(piece, np.uint8)
        ends = np.flatnonzero((signs == _LF) | (signs == _CR))
        self.at += size
        if not len(ends):
            self.begun.add(piece)
            return _no_lines()
        begin, first, last = self.at - len(piece), int(ends[0]), int(ends[-1])
        if self.begun.skipping:
            self.begun.end(piece[:first])
            whole, ends, begin = piece[first + 1 : last + 1], ends[1:] - first - 1, begin + first + 1
        else:
            before = self.begun.taken()
            whole, ends, begin = before + piece[: last + 1], ends + len(before), begin - len(before)
        lines = self._lines(np.frombuffer(whole, np.uint8), ends, begin)
        self.begun.add(piece[last + 1 :])
        return lines

    def ended(self) -> pa.Array:
        """Return the last line, which no end follows."""
        if self.done:
            self.begun.refusals()  # of one that is the next range's
            return _no_lines()
        if self.begun.skipping:
            self.begun.end(b"")
        last = self.begun.taken()
        return pa.array([last] if last else [], pa.binary())

    def _lines(self, whole: NDArray[np.uint8], ends: NDArray[np.int64], begin: int) -> pa.Array:
        """Return the lines between the ends, those without a byte left out; `begin` is the place of the first."""
        starts = starts_of(ends)
        wanted = (ends > starts) & (starts < self.stop - begin)
        starts, ends = starts[wanted], ends[wanted]
        fit = ~self.begun.large(whole, starts, ends)
        return _array(whole, starts[fit], ends[fit])


def starts_of(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where the lines begin that end there."""
    return np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends


def _array(whole: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> pa.Array:
    """Return slices of bytes as one Arrow array; no line becomes an object of Python's."""
    if not len(starts):
        return _no_lines()
    offsets = np.concatenate(([0], np.cumsum(ends - starts))).astype(np.int32)
    kept = within(whole, starts, ends)
    return pa.Array.from_buffers(pa.binary(), len(starts), [None, pa.py_buffer(offsets), pa.py_buffer(kept)])


def within(whole: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the bytes that lie between a start and its end; one may end where the next begins."""
    steps = np.zeros(len(whole) + 1, np.int8)
    steps[starts] += 1
    steps[ends] -= 1
    return whole[np.cumsum(steps[:-1], dtype=np.int8).view(np.bool_)]


def _no_lines() -> pa.Array:
    return pa.array([], pa.binary())
