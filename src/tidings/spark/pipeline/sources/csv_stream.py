"""What stands between a CSV file and Arrow's reader, which gives up a whole file because of one row.

Arrow's reader stops where a row has both invalid bytes and too many values, and where a row does not fit into the block
that it reads at once. So `Utf8Stream` turns invalid bytes into a character that no text has, and `restore_invalid` puts
an invalid byte back into the columns, where the rows at fault are refused one by one. `WholeRowReader` passes complete
rows only, and drops one that is larger than an event may be while it is read. A row may span lines, so the ends of rows
are found by the rules of quotes. The header is never too large.
"""

from __future__ import annotations

import codecs
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.kernels.match.csv_rows import BEGIN, find_row_ends
from tidings.matcher.loading.row_readers import PartialLine
from tidings.spark.pipeline.sources import line_cutter
from tidings.spark.pipeline.sources.size_limits import DEFAULT_TUNING, ReadTuning

if TYPE_CHECKING:
    from tidings.kernels.array_types import IntArray

MARK = "\U0010ffff"
"""Replaces invalid bytes: a code point that Unicode assigns to nothing."""


def _mark_invalid(problem: UnicodeError) -> tuple[str, int]:
    if not isinstance(problem, UnicodeDecodeError):
        raise problem
    return MARK, problem.end


codecs.register_error("tidings.mark", _mark_invalid)


class Utf8Stream:
    """A text file in any encoding as a stream of UTF-8; `has_marks` tells whether something was marked."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        self._stream, self._ready = stream, b""
        self._end = b"\n"  # Arrow refuses a header that no line end follows; one more changes nothing
        self._decoder = codecs.getincrementaldecoder(encoding)("tidings.mark")
        self.has_marks = False

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes; none at the end."""
        while len(self._ready) < size:
            chunk = self._stream.read(size)
            text = self._decoder.decode(chunk, final=not chunk)
            self.has_marks = self.has_marks or MARK in text
            self._ready += text.encode()
            if not chunk:
                self._ready, self._end = self._ready + self._end, b""
                break
        result, self._ready = self._ready[:size], self._ready[size:]
        return result


def restore_invalid(column: pa.Array) -> pa.Array:
    """Return a column with each mark replaced by an invalid byte."""
    return pc.replace_substring(column, pattern=MARK.encode(), replacement=b"\xff")


@dataclass(frozen=True, slots=True)
class CsvFormat:
    """The dialect of a CSV file; without a header, the declared columns are those of the file, in order."""

    header: bool = True
    separator: str = ","
    quote: str = '"'
    escape: str | None = None
    null: str = ""
    encoding: str = "utf-8"
    several_lines: bool = True


class WholeRowReader(io.RawIOBase):
    """A file with the rows of a CSV file that are not too large; `take_refusals` has the others."""

    def __init__(
        self, text: Utf8Stream | BinaryIO, form: CsvFormat, *, largest: int, tuning: ReadTuning = DEFAULT_TUNING
    ) -> None:
        self._text, self._largest, self._several_lines = text, largest, form.several_lines
        self._signs = [ord(sign) if sign else -1 for sign in (form.separator, form.quote, form.escape)]
        self._state, self._header = BEGIN, form.header
        self._partial = PartialLine(line_cutter.END_OF_FILE if form.header else largest)
        self._ready, self._ended = b"", False
        self._piece_bytes = tuning.piece_bytes

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes of whole rows, or all; none at the end."""
        while not self._ended and (size < 0 or len(self._ready) < size):
            piece = self._text.read(self._piece_bytes)
            self._ended = not piece
            if piece:
                self._ready += self._cut_rows(piece)
                continue
            if self._partial.is_skipping:
                self._partial.end(b"")
            self._ready += self._partial.take()  # the last row, which has no end of line
        size = len(self._ready) if size < 0 else size
        result, self._ready = self._ready[:size], self._ready[size:]
        return result

    def readable(self) -> bool:
        """Return True, as Arrow asks of a file."""
        return True

    def take_refusals(self) -> list[line_cutter.RefusedText]:
        """Return the rows that were refused since the last call."""
        return line_cutter.take_refusals(self._partial)

    def _cut_rows(self, piece: bytes) -> bytes:
        """Return the rows that end in the piece, unchanged."""
        signs = np.frombuffer(piece, np.uint8)
        ends = np.empty(len(signs), np.int64)
        count, self._state = find_row_ends(signs, self._state, *self._signs, self._several_lines, ends)
        ends = ends[:count]
        if not count:
            self._partial.add(piece)
            return b""
        if self._header:
            return self._cut_header(piece, ends)
        whole, ends = line_cutter.join_lines(self._partial, piece, ends)
        starts = line_cutter.find_line_starts(ends)
        large = line_cutter.find_large(self._partial, whole, starts, ends)
        return (
            whole if not large.any() else line_cutter.select_bytes(whole, starts[~large], ends[~large] + 1)
        ).tobytes()

    def _cut_header(self, piece: bytes, ends: IntArray) -> bytes:
        """Return the header, of any size, and the rows after it; blank lines are no header."""
        before = self._partial.take()
        written = before + piece
        place = next((end for end in (ends + len(before)).tolist() if written[:end].strip()), None)
        if place is None:
            self._partial.add(written[len(before) + int(ends[-1]) + 1 :])
            return written[: len(before) + int(ends[-1]) + 1]
        self._header, self._state, self._partial = False, BEGIN, PartialLine(self._largest)
        return written[: place + 1] + self._cut_rows(written[place + 1 :])
