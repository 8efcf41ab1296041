"""A stream on Spark that matches nothing: what `latency` is compared with. Run by it, in a process of its own.

Files of JSON in; for each micro-batch one row with the id of each event, written beside the sink's folder and put
into it by one rename, as `tidings run` does.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from benchmarks.spark import ground

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def main(folder: Path, columns: str, kind: str) -> None:
    """Go on until killed."""
    session = ground.open_session()
    stream = session.readStream.schema(columns).json(str(folder / "in"))

    def write(frame: DataFrame, batch: int) -> None:
        staged, final = folder / "out" / f"_staging-{batch}", folder / "out" / f"batch={batch:08}"
        frame.select(F.col("id").alias("event")).write.format(kind).save(str(staged))
        staged.rename(final)

    stream.writeStream.foreachBatch(write).option(
        "checkpointLocation", str(folder / "state")
    ).start().awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
