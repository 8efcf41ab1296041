"""Events over the size limit are dropped while they are read, counted with their size, and cost no other row."""

import csv
import io
import itertools
from functools import partial

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.spark.pipeline.sources.test_table_files import ADS, rows_of

from tidings.spark.pipeline.sources import line_cutter
from tidings.spark.pipeline.sources.csv_stream import CsvFormat, WholeRowReader
from tidings.spark.pipeline.sources.line_cutter import BYTE_ORDER_MARK, END_OF_FILE, cut_lines, take_refusals
from tidings.spark.pipeline.sources.size_limits import ReadTuning, describe_too_large
from tidings.spark.pipeline.sources.table_files import read_csv, read_parquet


def decode_first_bytes(text):
    """What a dead letter shows of an event that is too large."""
    return text[:200].decode("utf-8", "replace")


PARTS = st.lists(
    st.tuples(
        st.binary(max_size=5).flatmap(lambda start: st.sampled_from([0, 1, 40, 400]).map(lambda n: start + b"x" * n)),
        st.sampled_from([b"\n", b"\r\n", b"\r", b"\n\n"]),
    ),
    max_size=8,
)


PIECES = st.sampled_from([3, 7, 50, 1000])


LARGEST = st.sampled_from([1, 5, 41, 250, 10_000])


@given(PARTS, st.booleans(), st.booleans(), st.lists(st.integers(4, 2000), max_size=4), PIECES, LARGEST)
def test_ranges_of_a_file_give_every_line_once_and_tell_of_each_that_is_too_large(
    parts, marked, ended, cuts, piece, largest
):
    data = b"".join(line + end for line, end in parts) + (b"" if ended else b"last")
    content = data if marked else data.removeprefix(BYTE_ORDER_MARK)  # what a file begins with may be a mark by chance
    lines = [line for line in content.replace(b"\r", b"\n").split(b"\n") if line]
    data = BYTE_ORDER_MARK + data if marked else data
    bounds = sorted({0, *(cut for cut in cuts if cut < len(data)), END_OF_FILE})
    lines_read, refused = [], []
    tuning = ReadTuning(piece_bytes=piece)
    for start, stop in itertools.pairwise(bounds):
        for some, large in cut_lines(pa.BufferReader(data), start=start, stop=stop, largest=largest, tuning=tuning):
            lines_read += some.to_pylist()
            refused += large
    assert lines_read == [line for line in lines if len(line) <= largest]
    assert refused == [
        (describe_too_large(len(line), largest), decode_first_bytes(line)) for line in lines if len(line) > largest
    ]


def test_a_line_that_is_too_large_is_not_held():
    cutter = line_cutter.LineCutter(END_OF_FILE, line_cutter.PartialLine(5000))
    sizes = []
    for _ in range(100):
        cutter.cut(b"x" * 1000, 1000)
        sizes.append(len(cutter.partial.start))
    assert max(sizes) == 5000
    assert sizes[-1] == 200
    assert len(cutter.take_last()) == 0
    assert take_refusals(cutter.partial) == [(describe_too_large(100_000, 5000), "x" * 200)]


CELLS = st.text(alphabet='ab,"\n é', max_size=30)


@given(st.lists(st.tuples(CELLS, CELLS), max_size=10), PIECES, st.sampled_from([3, 20, 45, 10_000]))
def test_rows_that_fit_are_handed_on_as_they_are_written_and_the_others_are_told_of(cells, piece, largest):
    rows = []
    for row in [("id", "make"), *cells]:
        out = io.StringIO(newline="")
        csv.writer(out, lineterminator="\n").writerow(row)
        rows.append(out.getvalue().encode())
    text = WholeRowReader(
        io.BytesIO(b"".join(rows)),
        CsvFormat(),
        largest=largest,
        tuning=ReadTuning(piece_bytes=piece),
    )
    assert text.read() == b"".join(row for row in rows[:1] + rows[1:] if row is rows[0] or len(row) - 1 <= largest)
    large = [row[:-1] for row in rows[1:] if len(row) - 1 > largest]
    assert text.take_refusals() == [(describe_too_large(len(row), largest), decode_first_bytes(row)) for row in large]


def test_a_row_of_csv_that_is_too_large_is_one_refused_row_and_those_around_it_are_read(tmp_path):
    large = f'2,"{"x" * 40_000_000}\nand a line more"'
    (tmp_path / "a.csv").write_text(f'id,make\n1,"5"" disk"\n{large}\n3,5" disk\n4,"opel\nastra"\n')
    rows = rows_of(tmp_path / "a.csv", partial(read_csv, form=CsvFormat()))
    assert [(row["id"], row["make"]) for row in rows if row["_refused"] is None] == [
        (1, '5" disk'),
        (3, '5" disk'),
        (4, "opel\nastra"),
    ]
    [bad] = [row for row in rows if row["_refused"] is not None]
    assert bad["_refused"] == describe_too_large(len(large), 8_000_000)
    assert bad["_raw"] == large[:200]


def test_a_row_of_parquet_that_is_too_large_is_one_refused_row(tmp_path):
    pq.write_table(pa.table({"id": [1, 2, 3], "make": ["a", "x" * 9_000_000, "b"]}), tmp_path / "a.parquet")
    rows = rows_of(tmp_path / "a.parquet", read_parquet, ADS)
    assert [row["id"] for row in rows if row["_refused"] is None] == [1, 3]
    [bad] = [row for row in rows if row["_refused"] is not None]
    assert "more than an event may have (8 MB)" in bad["_refused"]
    assert bad["_raw"].startswith('{"id": 2, "make": "xxx')
    assert len(bad["_raw"]) == 200
