"""A stream of valid UTF-8 for Arrow's CSV reader: invalid bytes are marked, and restored after reading.

Arrow's CSV reader gives up a whole file where one row has both invalid bytes and too many values. Here invalid
bytes become a character that no text has, so the reader sees valid text; `restore_invalid` puts an invalid byte back
into the columns, and the rows at fault are refused one by one.
"""

from __future__ import annotations

import codecs
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

MARK = "\U0010ffff"
"""Replaces invalid bytes: a code point that Unicode assigns to nothing."""

_BYTES = MARK.encode()


def _mark_invalid(problem: UnicodeError) -> tuple[str, int]:
    if not isinstance(problem, UnicodeDecodeError):
        raise problem
    return MARK, problem.end


codecs.register_error("tidings.mark", _mark_invalid)


class Utf8Stream:
    """A text file in any encoding as a file of UTF-8; `has_marks` tells whether something was marked."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        self._stream, self._ready = stream, b""
        self._end = b"\n"  # Arrow refuses a header that no line end follows; one more changes nothing
        self._decoder = codecs.getincrementaldecoder(encoding)("tidings.mark")
        self.has_marks = self.closed = False

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes, or all; none at the end."""
        while size < 0 or len(self._ready) < size:
            chunk = self._stream.read(size if size > 0 else -1)
            text = self._decoder.decode(chunk, final=not chunk)
            self.has_marks = self.has_marks or MARK in text
            self._ready += text.encode() if chunk else text.encode() + self._end
            if not chunk:
                self._end = b""
                break
        result, self._ready = (self._ready, b"") if size < 0 else (self._ready[:size], self._ready[size:])
        return result

    def readable(self) -> bool:
        """Return True, as Arrow asks of a file."""
        return True

    def close(self) -> None:
        """Mark it as closed; the underlying file belongs to the caller."""
        self.closed = True


def restore_invalid(column: pa.Array) -> pa.Array:
    """Return a column with each mark replaced by an invalid byte."""
    return pc.replace_substring(column, pattern=_BYTES, replacement=b"\xff")
