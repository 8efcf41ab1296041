"""Runs in a process of its own: a stream of patterns over a folder, until it is killed."""

import sys
from pathlib import Path

from tests.spark.pipeline.crashing import QUICK


def main(folder: Path) -> None:
    from tidings import spark as ts

    session = ts.session("killed", master="local[2]", config={**QUICK, "spark.sql.shuffle.partitions": "2"})
    start_query(session, folder).awaitTermination()


def start_query(session, folder, *, trigger=None):
    """Start the stream; the crash test goes on with it in its own session."""
    from tests.unit.spark.detect.pattern_cases import COLUMNS, PATTERN_TEXTS

    from tidings import spark as ts

    stream = session.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    detections = ts.detect(stream.withWatermark("ts", "4 seconds"), PATTERN_TEXTS, buckets=2, shards=1)
    query = detections.writeStream.format("json").option("checkpointLocation", str(folder / "state"))
    return query.trigger(**(trigger or {"processingTime": "0 seconds"})).start(str(folder / "out"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
