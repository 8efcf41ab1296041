"""CSV and Parquet files by name: against plain readings of the same files, and against everything that breaks them."""

import csv
import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial

import pytest
from tests.examples import examples

pytest.importorskip("pyspark", reason="needs tidings[spark]")

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from tidings.spark.pipeline.sources.arrow_cast import cast_column
from tidings.spark.pipeline.sources.csv_stream import CsvFormat
from tidings.spark.pipeline.sources.size_limits import ReadTuning
from tidings.spark.pipeline.sources.table_files import (
    TargetTable,
    open_file_system,
    read_csv,
    read_parquet,
    read_safely,
)

KINDS = {
    "id": (pa.int64(), "BIGINT"),
    "make": (pa.string(), "STRING"),
    "price": (pa.float64(), "DOUBLE"),
    "posted": (pa.timestamp("us", "UTC"), "TIMESTAMP"),
    "sold": (pa.bool_(), "BOOLEAN"),
}
ADS = TargetTable(
    pa.schema([(name, kind) for name, (kind, _) in KINDS.items()]), tuple(word for _, word in KINDS.values())
)
NAMES = [*KINDS, "_refused", "_raw"]

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.integers(-(2**63), 2**63 - 1),
            # The parser leaves NUL and a lone carriage return to the reader's taste; lone surrogates are no text.
            "make": st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1, max_size=8)
            | st.none(),
            "price": st.floats(allow_nan=False, allow_infinity=False) | st.none(),
            "posted": st.datetimes(timezones=st.just(UTC)) | st.none(),
            "sold": st.booleans() | st.none(),
        }
    ),
    max_size=20,
)
EXTRA = st.sampled_from(["", "colour", "Price", "id2"])


def rows_of(path, read, table=ADS):
    rows = []
    for batch in read_safely(str(path), table, read):
        names = [*table.schema.names, "_refused", "_raw"]
        rows += pa.RecordBatch.from_arrays(batch.columns, names).to_pylist()
    return rows


def in_csv(path, form=None, table=ADS):
    return rows_of(path, partial(read_csv, form=form or CsvFormat()), table)


def split(rows):
    good = [{name: row[name] for name in KINDS} for row in rows if row["_refused"] is None]
    return good, [row for row in rows if row["_refused"] is not None]


def as_text(value):
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


@examples(60)
@given(ROWS, st.permutations(list(KINDS)), EXTRA, st.data())
def test_csv_comes_back_by_name_and_planted_bad_values_are_refused(tmp_path_factory, rows, order, extra, data):
    bad = data.draw(st.sets(st.integers(0, max(len(rows) - 1, 0)))) if rows else set()
    text = io.StringIO(newline="")
    names = [extra, *order] if extra else order
    writer = csv.DictWriter(text, names, restval="x", extrasaction="ignore")
    writer.writeheader()
    for at, row in enumerate(rows):
        writer.writerow({name: as_text(row[name]) for name in KINDS} | ({"price": "call me"} if at in bad else {}))
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    path.write_text(text.getvalue(), newline="", encoding="utf-8")
    good, refused = split(in_csv(path))
    assert good == [row for at, row in enumerate(rows) if at not in bad]
    assert [row["_refused"] for row in refused] == ["`price`: 'call me' does not fit DOUBLE"] * len(bad)
    assert [row["id"] for row in refused] == [rows[at]["id"] for at in sorted(bad)]
    assert all(json.loads(row["_raw"])["price"] == "call me" for row in refused)


@examples(60)
@given(ROWS, st.permutations(list(KINDS)), EXTRA, st.sets(st.sampled_from(["make", "price", "sold"])), st.booleans())
def test_parquet_comes_back_as_pyarrow_reads_it(tmp_path_factory, rows, order, extra, missing, as_words):
    fields = [(name, KINDS[name][0]) for name in order if name not in missing]
    table = pa.Table.from_pylist(rows, pa.schema(fields))
    if as_words and "price" not in missing:
        place = table.schema.get_field_index("price")
        words = [
            None if row["price"] is None else "call me" if row["price"] < 0 else repr(row["price"]) for row in rows
        ]
        table = table.set_column(place, "price", pa.array(words, pa.string()))
    if extra:
        table = table.append_column(extra, pa.array(range(len(rows))))
    path = tmp_path_factory.mktemp("parquet") / "a.parquet"
    pq.write_table(table, path, row_group_size=7)
    read = [{name: row.get(name) for name in KINDS} for row in pq.read_table(path).to_pylist()]
    expected = [row for row in read if row["price"] != "call me"]
    for row in expected:
        row["price"] = None if row["price"] is None else float(row["price"])
    good, refused = split(rows_of(path, read_parquet))
    assert good == expected
    assert len(good) + len(refused) == len(rows)
    assert {row["_refused"] for row in refused} <= {"`price`: 'call me' does not fit DOUBLE"}


def test_a_row_of_another_length_is_refused_with_its_line(tmp_path):
    (tmp_path / "a.csv").write_text("id,make\n1,ford\n2\n3,opel,red\n4,audi\n")
    good, refused = split(in_csv(tmp_path / "a.csv"))
    assert [row["id"] for row in good] == [1, 4]
    assert [(row["_refused"], row["_raw"]) for row in refused] == [
        ("1 values where the header has 2", "2"),
        ("3 values where the header has 2", "3,opel,red"),
    ]


def test_bytes_that_are_no_text_cost_their_own_row_only(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"id,make\n1,ford\n2,\xff\xfe\n3,opel\n\xff,\xff,\xff\n")
    good, refused = split(in_csv(tmp_path / "a.csv"))
    assert [row["id"] for row in good] == [1, 3]
    assert refused[0]["_refused"] == "`make`: '��' does not fit STRING"
    assert len(refused) == 2


@pytest.mark.parametrize("content", [b"", b"\n\n", b"id,make", b"id,make\n", b"\xef\xbb\xbfid,make\r\n"])
def test_an_empty_csv_file_has_no_rows(tmp_path, content):
    (tmp_path / "a.csv").write_bytes(content)
    assert in_csv(tmp_path / "a.csv") == []


@pytest.mark.parametrize("content", [bytes(range(256)) * 50, b"\0\0\0", b"1,ford\n2,opel\n", b'"'])
def test_a_csv_file_without_a_known_header_is_one_refused_row(tmp_path, content):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    (row,) = in_csv(path)
    assert row["_refused"].startswith("the file cannot be read: ")
    assert json.loads(row["_raw"]) == {"file": str(path)}


def test_spark_words_for_the_form_of_csv_are_kept(tmp_path):
    (tmp_path / "a.csv").write_bytes("1;'für; sich';-\n".encode("latin-1"))
    table = TargetTable(pa.schema([("id", pa.int64()), ("make", pa.string()), ("price", pa.float64())]), ("", "", ""))
    form = CsvFormat(header=False, separator=";", quote="'", null="-", encoding="latin-1")
    (row,) = in_csv(tmp_path / "a.csv", form, table)
    assert (row["id"], row["make"], row["price"], row["_refused"]) == (1, "für; sich", None, None)


def test_compressed_csv_is_read_and_a_cut_one_is_accounted_for(tmp_path):
    import gzip

    packed = gzip.compress(b"id,make\n" + b"1,ford\n" * 5000)
    (tmp_path / "a.csv.gz").write_bytes(packed)
    (tmp_path / "b.csv.gz").write_bytes(packed[:-30])
    assert len(split(in_csv(tmp_path / "a.csv.gz"))[0]) == 5000
    assert "the file cannot be read" in in_csv(tmp_path / "b.csv.gz")[-1]["_refused"]


def test_a_cut_or_foreign_parquet_file_is_one_refused_row(tmp_path):
    whole = tmp_path / "whole.parquet"
    pq.write_table(pa.table({"id": list(range(1000))}), whole)
    content = whole.read_bytes()
    for name, broken in {"cut": content[:-40], "short": content[:5], "words": b"not parquet at all"}.items():
        path = tmp_path / name
        path.write_bytes(broken)
        (row,) = rows_of(path, read_parquet)
        assert row["_refused"].startswith("the file cannot be read")
        assert json.loads(row["_raw"])["file"] == str(path)
    (tmp_path / "gone").mkdir()
    assert len(rows_of(tmp_path / "gone", read_parquet)) == 1


def test_pages_that_are_broken_inside_cost_what_cannot_be_read(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"id": list(range(20000))}), path, compression="none", use_dictionary=False, write_page_checksum=True
    )
    content = bytearray(path.read_bytes())
    content[5000:5008] = bytes(8)
    path.write_bytes(content)
    assert "the file cannot be read" in rows_of(path, read_parquet)[-1]["_refused"]


def test_nested_columns_are_read_by_name(tmp_path):
    kind = pa.struct([("kind", pa.string()), ("stars", pa.int32())])
    table = TargetTable(pa.schema([("seller", kind), ("tags", pa.list_(pa.string()))]), ("struct", "array"))
    seller = [{"stars": 5, "new": 1, "kind": "shop"}, {"stars": 2**40, "new": 1, "kind": "shop"}, None]
    pq.write_table(pa.table({"seller": seller, "tags": [["a"], [], None]}), tmp_path / "a.parquet")
    rows = rows_of(tmp_path / "a.parquet", read_parquet, table)
    assert [row["seller"] for row in rows] == [{"kind": "shop", "stars": 5}, None, None]
    assert [row["_refused"] is None for row in rows] == [True, False, True]


def test_a_large_file_passes_in_small_pieces(tmp_path):
    path = tmp_path / "a.parquet"
    text = [f"{number:01000}" for number in range(40_000)]  # 40 MB in one row group
    pq.write_table(pa.table({"id": range(40_000), "make": text}), path, use_dictionary=False, compression="none")
    del text
    before, most, rows = pa.total_allocated_bytes(), 0, 0
    for batch in read_safely(str(path), ADS, partial(read_parquet, tuning=ReadTuning(block_bytes=1 << 20))):
        most, rows = max(most, pa.total_allocated_bytes() - before), rows + batch.num_rows
    assert rows == 40_000
    assert most < 12 << 20


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, None], pa.float64(), [1.0, None]),
        ([1, 2**40], pa.int32(), [1, "bad"]),
        ([1.0, 1.5], pa.int64(), [1, "bad"]),
        ([1, 0], pa.bool_(), ["bad", "bad"]),
        ([1], pa.timestamp("us", "UTC"), ["bad"]),
        ([True], pa.int64(), ["bad"]),
        ([1, 2.5], pa.string(), ["1", "2.5"]),
        (["1", " 2 ", "2.0", "+3"], pa.int64(), [1, 2, "bad", "bad"]),
        (["true", "0", "yes"], pa.bool_(), [True, False, "bad"]),
        (["12.3", "12.345", "1e4"], pa.decimal128(5, 2), [Decimal("12.30"), "bad", "bad"]),
        (["2024-01-02", "2024-13-01"], pa.date32(), [date(2024, 1, 2), "bad"]),
        ([b"\xff", b"5"], pa.int64(), ["bad", 5]),
        ([[1]], pa.string(), ["bad"]),
        (["[1]"], pa.list_(pa.int64()), ["bad"]),
        ([None], pa.list_(pa.int64()), [None]),
    ],
)
def test_what_fits_is_cast_and_what_does_not_is_found(values, kind, expected):
    column = pa.array(list(map(str, values))) if kind == pa.string() and 2.5 in values else pa.array(values)
    made = cast_column(column, kind)
    cast_values = ["bad" if bad else value for value, bad in zip(made.values.to_pylist(), made.bad, strict=True)]
    assert cast_values == expected
    assert made.values.type == kind


def test_times_are_read_with_a_zone_without_one_and_finer_than_spark_has_them():
    texts = [
        "2024-01-02T03:04:05Z",
        "2024-01-02 05:04:05+02:00",
        "2024-01-02T03:04:05",
        "2024-01-02T03:04:05.123456789Z",
        "x",
    ]
    made = cast_column(pa.array(texts), pa.timestamp("us", "UTC"))
    moment = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert made.values.to_pylist() == [moment, moment, moment, moment.replace(microsecond=123456), None]
    assert made.bad.tolist() == [False, False, False, False, True]
    assert cast_column(pa.array(texts[:3]), pa.timestamp("us")).bad.tolist() == [True, True, False]


def test_paths_are_those_that_spark_writes():
    assert open_file_system("file:/a b/100%#?.csv")[1] == "/a b/100%#?.csv"
    assert open_file_system("file:///a")[1] == "/a"
    assert open_file_system("/a:b")[1] == "/a:b"
