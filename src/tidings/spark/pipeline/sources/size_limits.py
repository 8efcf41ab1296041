"""How large an event may be, and the dead letter of one that is larger.

A line of fifty megabytes, on its way through Spark, is copied often enough to fill Java's heap and end the pipeline. So
every source has a bound. A larger event is a dead letter with its size and first bytes. Files of this machine are read
by our own workers, which drop such a line while reading it; what Spark's readers deliver (Kafka, sockets, remote
files) is cut before anything else is done with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.configuration.measure_kinds import format_size
from tidings.matcher.loading.row_readers import SHOWN_BYTES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DEFAULT_MAX_BYTES = 8_000_000
"""Bytes that an event may have by default."""


@dataclass(frozen=True, slots=True)
class ReadTuning:
    """How much of a file is in memory at once, and how files are split."""

    piece_bytes: int = 1 << 20  # read at once from a file of lines, or of CSV; lines of a piece are a batch
    block_bytes: int = 16 << 20  # of a CSV file, and about as many of a Parquet file; more for larger events
    batch_rows: int = 8192
    range_bytes: int = 16 << 20  # of a file of lines that one task reads; a compressed file is read by one


DEFAULT_TUNING = ReadTuning()
"""The sizes that pipelines use."""

QUOTED_LENGTH = 80
"""Characters of a value that a reason quotes."""


def describe_bound(largest: int) -> str:
    """Return the end of the reason of a dead letter, after the size.

    >>> describe_bound(8_000_000)
    ' bytes are more than an event may have (8 MB); `largest` in [source] says how many'
    """
    return f" bytes are more than an event may have ({format_size(largest)}); `largest` in [source] says how many"


def describe_too_large(size: int, largest: int) -> str:
    """Return the reason of a dead letter for an event of `size` bytes."""
    return f"{size:,}{describe_bound(largest)}"


def cut_large_texts(texts: DataFrame, largest: int = DEFAULT_MAX_BYTES) -> DataFrame:
    """Replace texts in `_text` that are too large by null; `_broken` has the reason, `_file` the first bytes."""
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
