"""Rows one by one against columns, of the same CSV and Parquet files: `python -m benchmarks.spark.reading`.

The command line and feeds read rows that come one by one, with the number of their line; the workers of a pipeline read
the declared columns of whole files. Both have a reader of their own (docs/decisions/0017), and this is what one reader
for both would cost. No session is started: these are the functions that workers call. The values of both are compared
before anything is timed. Processor time.
"""

from __future__ import annotations

import argparse
import csv
import random
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from tidings.bench.harness.results import describe_machine
from tidings.bench.harness.timing import Clock, time_repeats, to_figure
from tidings.matcher.loading.row_readers import CsvRows, Lines, ParquetRows, batch_rows
from tidings.spark.pipeline.sources.csv_stream import CsvFormat
from tidings.spark.pipeline.sources.table_files import TargetTable, read_csv, read_parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tidings.bench.harness.timing import Figure
    from tidings.matcher.loading.row_readers import Row

TARGET = TargetTable(
    pa.schema([("id", pa.int64()), ("make", pa.string()), ("price", pa.int64()), ("lon", pa.float64())]),
    ("BIGINT", "STRING", "BIGINT", "DOUBLE"),
)


def main() -> None:
    """Measure and print a table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=200_000)
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--quick", action="store_true", help="a hundredth of the work, for a smoke test")
    arguments = options.parse_args()
    report(arguments.rows // 100 if arguments.quick else arguments.rows, repeat=arguments.repeat)


def report(rows: int, *, repeat: int) -> None:
    """Measure each reader on files of `rows` rows."""
    print(f"reading: {rows:,} rows of {len(TARGET.schema)} columns, processor time; {describe_machine()}")
    with tempfile.TemporaryDirectory() as folder:
        table = write_files(Path(folder), rows)
        files = {suffix: Path(folder) / f"ads.{suffix}" for suffix in ("csv", "parquet")}
        for suffix, (read_rows, read_columns) in READERS.items():
            file = files[suffix]
            check_agreement(table, read_rows(file), read_columns(file))
            by_rows = _time(lambda read=read_rows, file=file: sum(1 for _ in read(file)), repeat)
            by_columns = _time(lambda read=read_columns, file=file: sum(map(len, read(file))), repeat)
            print(
                f"  {suffix:<8} rows {rows / by_rows.median:>10,.0f}/s +-{by_rows.spread:.0%}"
                f"   columns {rows / by_columns.median:>12,.0f}/s +-{by_columns.spread:.0%}"
                f"   {by_rows.median / by_columns.median:.0f}x"
            )


def _time(work: Callable[[], object], repeat: int) -> Figure:
    return to_figure(time_repeats(work, repeat=repeat, clock=Clock.PROCESSOR), "s")


def write_files(folder: Path, rows: int) -> pa.Table:
    """Write the same car ads as `ads.csv` and `ads.parquet`, and return them."""
    draw = random.Random(1)
    makes = ["ford", "opel", "a, b", 'say "c"']
    ads = [(i, draw.choice(makes), draw.randrange(500, 50_000), draw.randrange(1_000) / 64) for i in range(rows)]
    with (folder / "ads.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(TARGET.schema.names)
        writer.writerows(ads)
    table = pa.table([pa.array(column) for column in zip(*ads, strict=True)], schema=TARGET.schema)
    pq.write_table(table, folder / "ads.parquet")
    return table


def check_agreement(table: pa.Table, rows: Iterator[Row], batches: Iterator[pa.RecordBatch]) -> None:
    """Refuse to time readers that do not give what was written."""
    expected = table.to_pylist()
    as_text = [{name: str(value) for name, value in row.items()} for row in expected]
    if [row.values for row in rows] not in (expected, as_text):
        msg = "the rows are not those that were written"
        raise RuntimeError(msg)
    columns = [batch.select(range(len(TARGET.schema))).rename_columns(TARGET.schema.names) for batch in batches]
    if pa.Table.from_batches(columns).to_pylist() != expected:
        msg = "the columns are not those that were written"
        raise RuntimeError(msg)


def _read_csv_rows(file: Path) -> Iterator[Row]:
    with file.open("rb") as stream:
        lines = Lines(stream, file.name)
        for batch in batch_rows(CsvRows(lines), lines):
            yield from batch


def _read_parquet_rows(file: Path) -> Iterator[Row]:
    with file.open("rb") as stream:
        for batch in ParquetRows(stream, file.name):
            yield from batch


READERS: dict[str, tuple[Callable[[Path], Iterator[Row]], Callable[[Path], Iterator[pa.RecordBatch]]]] = {
    "csv": (_read_csv_rows, lambda file: read_csv(str(file), TARGET, CsvFormat())),
    "parquet": (_read_parquet_rows, lambda file: read_parquet(str(file), TARGET)),
}
"""For each format the reader of rows and the reader of columns."""


if __name__ == "__main__":
    main()
