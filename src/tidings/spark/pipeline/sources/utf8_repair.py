"""Bytes on their way into a reader that wants UTF-8: what is not text is marked, and found again behind it.

Arrow's CSV reader gives a whole file up where one row has both bytes that are no text and too many values. Here
such bytes become a character that no text has, so the reader sees text throughout; `unmended` puts a byte
that is not UTF-8 back into the columns, and the rows at fault are refused one by one.
"""

from __future__ import annotations

import codecs
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

MARK = "\U0010ffff"
"""What stands for bytes that are no text: a code point that Unicode gives to nobody."""

_BYTES = MARK.encode()


def _mark_invalid(problem: UnicodeError) -> tuple[str, int]:
    if not isinstance(problem, UnicodeDecodeError):
        raise problem
    return MARK, problem.end


codecs.register_error("tidings.mark", _mark_invalid)


class Utf8Stream:
    """A file of text in any encoding as a file of UTF-8; `marks` says whether something had to be marked."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        self._stream, self._ready = stream, b""
        self._end = b"\n"  # Arrow refuses a header that no line end follows; one more changes nothing
        self._decoder = codecs.getincrementaldecoder(encoding)("tidings.mark")
        self.has_marks = self.closed = False

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes, or all; nothing at the end."""
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
        """Tell that this is a file to read from."""
        return True

    def close(self) -> None:
        """Read no more; the file beneath is closed by who opened it."""
        self.closed = True


def restore_invalid(column: pa.Array) -> pa.Array:
    """Return bytes with what was marked as a byte that is not UTF-8."""
    return pc.replace_substring(column, pattern=_BYTES, replacement=b"\xff")
