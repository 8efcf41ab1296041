"""How large an event may be, and what is said of one that is larger.

A line of fifty megabytes, on its way through Spark, is copied often enough to fill Java's heap and end the pipeline. So
every source has a bound, and what is beyond it is a dead letter: its size and its first bytes are kept, nothing
else. Files of this machine are read by our own workers, which let go of such a line as they read it; what
Spark's readers hand over (Kafka, sockets, remote files) is cut before anything else is done with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DEFAULT_MAX_BYTES = 8_000_000
"""Bytes that an event may have where the file says nothing."""

SHOWN_BYTES = 200
"""Bytes of a too large event that its dead letter shows."""

UNITS = {"kB": 10**3, "MB": 10**6, "GB": 10**9}
"""The units of a size, in bytes."""


def format_size(size: int) -> str:
    """Return a size as the file writes it, where that is a round number.

    >>> format_size(8_000_000), format_size(1_500), format_size(123_456_789)
    ('8 MB', '1.5 kB', '123,456,789 bytes')
    """
    for unit, factor in reversed(UNITS.items()):
        if size >= factor and size * 10 % factor == 0:
            return f"{size / factor:g} {unit}"
    return f"{size:,} bytes"


def describe_bound(largest: int) -> str:
    """Return what follows the size in the reason of a dead letter.

    >>> describe_bound(8_000_000)
    ' bytes are more than an event may have (8 MB); `largest` in [source] says how many'
    """
    return f" bytes are more than an event may have ({format_size(largest)}); `largest` in [source] says how many"


def describe_too_large(size: int, largest: int) -> str:
    """Return the reason of a dead letter for an event of so many bytes."""
    return f"{size:,}{describe_bound(largest)}"


def decode_first_bytes(start: bytes) -> str:
    """Return what a dead letter shows of an event; bytes that are no text are marked."""
    return start[:SHOWN_BYTES].decode("utf-8", "replace")


def cut_large_texts(texts: DataFrame, largest: int = DEFAULT_MAX_BYTES) -> DataFrame:
    """Take the texts that are too large out of `_text`, and say so in `_broken` and `_file`."""
    from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

    size, text = F.octet_length("_text"), F.col("_text")
    reason = F.concat(F.format_number(size, 0), F.lit(describe_bound(largest)))
    start = F.make_valid_utf8(F.substring(text.cast("binary"), 1, SHOWN_BYTES).cast("string"))
    return texts.withColumns(
        {
            "_broken": F.when(size > largest, reason),
            "_file": F.when(size > largest, start),
            "_text": F.when(~F.coalesce(size > largest, F.lit(False)), text),
        }
    )
