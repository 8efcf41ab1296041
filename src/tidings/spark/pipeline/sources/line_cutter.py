"""Lines and rows of a file, cut out of pieces of it, without ever keeping one that is larger than an event may be.

A line belongs to the range in which it begins, so adjoining ranges give every line once, wherever their ends are. Line
feeds and carriage returns end a line, and empty lines are dropped, so the two together end one. The ends in a piece
are found by one array operation. A line that spans pieces is collected until it is larger than an event may be; from
there on its bytes are counted and dropped. Memory: the largest event and a piece.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from tidings.matcher.loading.row_readers import BYTE_ORDER_MARK, SHOWN_BYTES, PartialLine
from tidings.spark.pipeline.sources.size_limits import DEFAULT_TUNING, ReadTuning, describe_too_large

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidings.kernels.array_types import BoolArray, ByteArray, IntArray

END_OF_FILE = sys.maxsize
"""Where a range ends that goes to the end of the file."""

_LF, _CR = 10, 13
_NO_LINES = pa.array([], pa.binary())

RefusedText: TypeAlias = tuple[str, str]
"""The reason, and the text that is refused."""


def cut_lines(
    stream: pa.NativeFile, *, start: int, stop: int, largest: int, tuning: ReadTuning = DEFAULT_TUNING
) -> Iterator[tuple[pa.Array, list[RefusedText]]]:
    """Yield the lines that begin within the range, piece by piece, and those that are too large.

    A compressed stream cannot be entered in the middle: its range is all of it.
    """
    cutter = LineCutter(stop, PartialLine(largest))
    if start:  # the byte before may end a line, and then one begins here
        stream.seek(start - 1)
        cutter = LineCutter(stop, PartialLine(largest, is_skipping=True), position=start - 1)
    while not cutter.is_done and (piece := stream.read(tuning.piece_bytes)):
        # No range ends within the mark.
        lines = cutter.cut(piece if cutter.position else piece.removeprefix(BYTE_ORDER_MARK), len(piece))
        yield lines, take_refusals(cutter.partial)
    yield cutter.take_last(), take_refusals(cutter.partial)


@dataclass(slots=True)
class LineCutter:
    """Cuts the pieces of a range into lines."""

    stop: int
    partial: PartialLine
    position: int = 0  # where the next piece begins

    @property
    def is_done(self) -> bool:
        """Whether the next line begins after the range."""
        return self.position - len(self.partial) >= self.stop

    def cut(self, piece: bytes, size: int) -> pa.Array:
        """Return the lines that end in the next piece, which is `size` bytes of the file."""
        signs = np.frombuffer(piece, np.uint8)
        ends = np.flatnonzero((signs == _LF) | (signs == _CR))
        self.position += size
        if not len(ends):
            self.partial.add(piece)
            return _NO_LINES
        whole, ends = join_lines(self.partial, piece, ends)
        starts, begin = find_line_starts(ends), self.position - len(self.partial) - len(whole)
        wanted = (ends > starts) & (starts < self.stop - begin)
        starts, ends = starts[wanted], ends[wanted]
        fit = ~find_large(self.partial, whole, starts, ends)
        starts, ends = starts[fit], ends[fit]
        # One Arrow array of slices, without a Python object for each.
        offsets = np.concatenate(([0], np.cumsum(ends - starts))).astype(np.int32)
        kept = select_bytes(whole, starts, ends)
        return pa.Array.from_buffers(pa.binary(), len(starts), [None, pa.py_buffer(offsets), pa.py_buffer(kept)])

    def take_last(self) -> pa.Array:
        """Return the last line, which has no end of line."""
        if self.is_done:
            self.partial.refused.clear()  # of a line of the next range
            return _NO_LINES
        if self.partial.is_skipping:
            self.partial.end(b"")
        last = self.partial.take()
        return pa.array([last] if last else [], pa.binary())


def join_lines(partial: PartialLine, piece: bytes, ends: IntArray) -> tuple[ByteArray, IntArray]:
    """Return the bytes of the lines that end in a piece, and their ends; the rest becomes the partial line.

    The first line has what was read of it before. One that was skipped ends here, and is left out.
    """
    first, last = int(ends[0]), int(ends[-1])
    if partial.is_skipping:
        partial.end(piece[:first])
        whole, ends = piece[first + 1 : last + 1], ends[1:] - first - 1
    else:
        before = partial.take()
        whole, ends = before + piece[: last + 1], ends + len(before)
    partial.add(piece[last + 1 :])
    return np.frombuffer(whole, np.uint8), ends


def find_large(partial: PartialLine, whole: ByteArray, starts: IntArray, ends: IntArray) -> BoolArray:
    """Return which of the lines between starts and ends are too large, and refuse those."""
    large = ends - starts > partial.largest
    for low, high in zip(starts[large].tolist(), ends[large].tolist(), strict=True):
        partial.refused.append((high - low, whole[low:high][:SHOWN_BYTES].tobytes()))
    return large


def take_refusals(partial: PartialLine) -> list[RefusedText]:
    """Return the lines that were refused since the last call; another thread may be adding some."""
    refused = [partial.refused.pop(0) for _ in range(len(partial.refused))]
    return [(describe_too_large(size, partial.largest), start.decode("utf-8", "replace")) for size, start in refused]


def find_line_starts(ends: IntArray) -> IntArray:
    """Return the starts of the lines with these ends."""
    return np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends


def select_bytes(whole: ByteArray, starts: IntArray, ends: IntArray) -> ByteArray:
    """Return the bytes between each start and its end; a slice may end where the next one starts."""
    steps = np.zeros(len(whole) + 1, np.int8)
    steps[starts] += 1
    steps[ends] -= 1
    return whole[np.cumsum(steps[:-1], dtype=np.int8).view(np.bool_)]
