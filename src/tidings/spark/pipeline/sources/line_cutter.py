"""Lines and rows of a file, cut out of pieces of it, without ever keeping one that is larger than an event may be.

A line belongs to the range in which it begins, so adjoining ranges give every line once, wherever their ends are. Line
feeds and carriage returns end a line, and empty lines are dropped, so the two together end one. The ends in a piece
are found by one array operation. A line that spans pieces is collected until it is larger than an event may be; from
there on its bytes are counted and dropped. Memory: the largest event and a piece.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from tidings.spark.pipeline.sources.size_limits import (
    DEFAULT_TUNING,
    SHOWN_BYTES,
    ReadTuning,
    decode_first_bytes,
    describe_too_large,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

END_OF_FILE = sys.maxsize
"""Where a range ends that goes to the end of the file."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Some editors begin a file of UTF-8 with it; it is no part of the first line. No range ends within it."""

_LF, _CR = 10, 13

Refusal: TypeAlias = tuple[str, str]
"""The reason, and the text that is refused."""


def cut_lines(
    stream: pa.NativeFile, *, start: int, stop: int, largest: int, tuning: ReadTuning = DEFAULT_TUNING
) -> Iterator[tuple[pa.Array, list[Refusal]]]:
    """Yield the lines that begin within the range, piece by piece, and those that are too large.

    A compressed stream cannot be entered in the middle: its range is all of it.
    """
    cutter = LineCutter(stop, PartialLine(largest))
    if start:  # the byte before may end a line, and then one begins here
        stream.seek(start - 1)
        cutter = LineCutter(stop, PartialLine(largest, is_skipping=True), at=start - 1)
    while not cutter.is_done and (piece := stream.read(tuning.piece_bytes)):
        yield (
            cutter.cut(piece if cutter.at else piece.removeprefix(BYTE_ORDER_MARK), len(piece)),
            cutter.partial.take_refusals(),
        )
    yield cutter.take_last(), cutter.partial.take_refusals()


@dataclass(slots=True)
class PartialLine:
    """A line or row whose end has not been read yet: all of it, or the first bytes of one that is too large."""

    largest: int
    is_skipping: bool = False  # to its end: it is too large, or belongs to the range before
    start: bytes = b""
    skipped: int = 0  # bytes after `start` that were dropped
    refused: list[Refusal] = field(default_factory=list)

    def __len__(self) -> int:
        """Count its bytes."""
        return len(self.start) + self.skipped

    def add(self, piece: bytes) -> None:
        """Append bytes; of a line that is too large, only the first bytes are kept."""
        if not self.is_skipping:
            piece, self.start = self.start + piece, b""
            if len(piece) <= self.largest:
                self.start = piece
                return
            self.is_skipping = True
        elif not self.start:
            return  # the range in which it begins reports it
        some = piece[: SHOWN_BYTES - len(self.start)]
        self.start, self.skipped = self.start + some, self.skipped + len(piece) - len(some)

    def end(self, last: bytes) -> None:
        """End a line that is being skipped; one that began here is refused."""
        self.add(last)
        if self.start:
            self.refused.append((describe_too_large(len(self), self.largest), decode_first_bytes(self.start)))
        self.is_skipping, self.start, self.skipped = False, b"", 0

    def take(self) -> bytes:
        """Return the bytes so far, and start the next line."""
        rest, self.start = self.start, b""
        return rest

    def find_large(
        self, whole: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return which of the lines between starts and ends are too large, and refuse those."""
        large = ends - starts > self.largest
        for low, high in zip(starts[large].tolist(), ends[large].tolist(), strict=True):
            self.refused.append(
                (
                    describe_too_large(high - low, self.largest),
                    decode_first_bytes(whole[low:high][:SHOWN_BYTES].tobytes()),
                )
            )
        return large

    def take_refusals(self) -> list[Refusal]:
        """Return the lines that were refused since the last call; another thread may be adding some."""
        return [self.refused.pop(0) for _ in range(len(self.refused))]


@dataclass(slots=True)
class LineCutter:
    """Cuts the pieces of a range into lines."""

    stop: int
    partial: PartialLine
    at: int = 0  # where the next piece begins

    @property
    def is_done(self) -> bool:
        """Whether the next line begins after the range."""
        return self.at - len(self.partial) >= self.stop

    def cut(self, piece: bytes, size: int) -> pa.Array:
        """Return the lines that end in the next piece, which is `size` bytes of the file."""
        signs = np.frombuffer(piece, np.uint8)
        ends = np.flatnonzero((signs == _LF) | (signs == _CR))
        self.at += size
        if not len(ends):
            self.partial.add(piece)
            return _make_empty()
        begin, first, last = self.at - len(piece), int(ends[0]), int(ends[-1])
        if self.partial.is_skipping:
            self.partial.end(piece[:first])
            whole, ends, begin = piece[first + 1 : last + 1], ends[1:] - first - 1, begin + first + 1
        else:
            before = self.partial.take()
            whole, ends, begin = before + piece[: last + 1], ends + len(before), begin - len(before)
        lines = self._select_lines(np.frombuffer(whole, np.uint8), ends, begin)
        self.partial.add(piece[last + 1 :])
        return lines

    def take_last(self) -> pa.Array:
        """Return the last line, which has no end of line."""
        if self.is_done:
            self.partial.take_refusals()  # of a line of the next range
            return _make_empty()
        if self.partial.is_skipping:
            self.partial.end(b"")
        last = self.partial.take()
        return pa.array([last] if last else [], pa.binary())

    def _select_lines(self, whole: NDArray[np.uint8], ends: NDArray[np.int64], begin: int) -> pa.Array:
        """Return the lines between the ends that are not empty; `begin` is the offset of the first in the file."""
        starts = find_starts(ends)
        wanted = (ends > starts) & (starts < self.stop - begin)
        starts, ends = starts[wanted], ends[wanted]
        fit = ~self.partial.find_large(whole, starts, ends)
        return _slice_bytes(whole, starts[fit], ends[fit])


def find_starts(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the starts of the lines with these ends."""
    return np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends


def _slice_bytes(whole: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> pa.Array:
    """Return slices of bytes as one Arrow array, without a Python object for each."""
    if not len(starts):
        return _make_empty()
    offsets = np.concatenate(([0], np.cumsum(ends - starts))).astype(np.int32)
    kept = select_bytes(whole, starts, ends)
    return pa.Array.from_buffers(pa.binary(), len(starts), [None, pa.py_buffer(offsets), pa.py_buffer(kept)])


def select_bytes(whole: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the bytes between each start and its end; a slice may end where the next one starts."""
    steps = np.zeros(len(whole) + 1, np.int8)
    steps[starts] += 1
    steps[ends] -= 1
    return whole[np.cumsum(steps[:-1], dtype=np.int8).view(np.bool_)]


def _make_empty() -> pa.Array:
    return pa.array([], pa.binary())
