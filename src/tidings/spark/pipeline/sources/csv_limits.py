"""A filter in front of Arrow's CSV reader that drops rows which are larger than an event may be.

Arrow's reader gives up a whole file where a row does not fit into the block that it reads at once. This reader passes
complete rows only, and drops one that is too large while it is read (`line_cutter.PartialLine`). A row may span
lines, so the ends of rows are found by the rules of quotes. The header is never too large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from tidings.kernels.match.csv_rows import BEGIN, find_row_ends
from tidings.spark.pipeline.sources.line_cutter import END_OF_FILE, PartialLine, find_starts, select_bytes
from tidings.spark.pipeline.sources.size_limits import DEFAULT_TUNING, ReadTuning

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidings.spark.pipeline.sources.line_cutter import Refusal


class ByteReader(Protocol):
    """A file of bytes."""

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes, or none at the end."""


class WholeRowReader:
    """A file-like object with the rows of a CSV file that are not too large; `take_refusals` has the others."""

    def __init__(
        self,
        text: ByteReader,
        *,
        signs: tuple[str, str | None, str | None],
        several_lines: bool,
        header: bool,
        largest: int,
        tuning: ReadTuning = DEFAULT_TUNING,
    ) -> None:
        """Read from `text`; `signs` are the separator, the quote and the escape character."""
        self._text, self._largest, self._several_lines = text, largest, several_lines
        self._signs = [ord(sign) if sign else -1 for sign in signs]
        self._state, self._header = BEGIN, header
        self._partial = PartialLine(END_OF_FILE if header else largest)
        self._ready, self._ended = b"", False
        self._piece_bytes = tuning.piece_bytes
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes of whole rows, or all; none at the end."""
        while not self._ended and (size < 0 or len(self._ready) < size):
            piece = self._text.read(self._piece_bytes)
            self._ended = not piece
            self._ready += self._cut_rows(piece) if piece else self._take_last_row()
        size = len(self._ready) if size < 0 else size
        result, self._ready = self._ready[:size], self._ready[size:]
        return result

    def readable(self) -> bool:
        """Return True, as Arrow asks of a file."""
        return True

    def close(self) -> None:
        """Mark it as closed; the underlying file belongs to the caller."""
        self.closed = True

    def take_refusals(self) -> list[Refusal]:
        """Return the rows that were refused since the last call."""
        return self._partial.take_refusals()

    def _cut_rows(self, piece: bytes) -> bytes:
        """Return the rows that end in the piece, unchanged."""
        ends = self._find_row_ends(piece)
        if not len(ends):
            self._partial.add(piece)
            return b""
        if self._header:
            return self._cut_header(piece, ends)
        first, last = int(ends[0]), int(ends[-1])
        if self._partial.is_skipping:
            self._partial.end(piece[:first])
            whole, ends = piece[first + 1 : last + 1], ends[1:] - first - 1
        else:
            before = self._partial.take()
            whole, ends = before + piece[: last + 1], ends + len(before)
        rows = self._drop_large_rows(whole, ends)
        self._partial.add(piece[last + 1 :])
        return rows

    def _cut_header(self, piece: bytes, ends: NDArray[np.int64]) -> bytes:
        """Return the header, of any size, and the rows after it; blank lines are no header."""
        before = self._partial.take()
        written = before + piece
        place = next((end for end in (ends + len(before)).tolist() if written[:end].strip()), None)
        if place is None:
            self._partial.add(written[len(before) + int(ends[-1]) + 1 :])
            return written[: len(before) + int(ends[-1]) + 1]
        self._header, self._state, self._partial = False, BEGIN, PartialLine(self._largest)
        return written[: place + 1] + self._cut_rows(written[place + 1 :])

    def _find_row_ends(self, piece: bytes) -> NDArray[np.int64]:
        signs = np.frombuffer(piece, np.uint8)
        ends = np.empty(len(signs), np.int64)
        count, self._state = find_row_ends(signs, self._state, *self._signs, self._several_lines, ends)
        return ends[:count]

    def _drop_large_rows(self, whole: bytes, ends: NDArray[np.int64]) -> bytes:
        signs, starts = np.frombuffer(whole, np.uint8), find_starts(ends)
        large = self._partial.find_large(signs, starts, ends)
        return whole if not large.any() else select_bytes(signs, starts[~large], ends[~large] + 1).tobytes()

    def _take_last_row(self) -> bytes:
        """Return the last row, which has no end of line, if it is not too large."""
        if self._partial.is_skipping:
            self._partial.end(b"")
        return self._partial.take()
