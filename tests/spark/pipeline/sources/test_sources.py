"""Sources as streams: whatever comes, nothing stops the query, and every line is one row, good or refused."""

import gzip
import json
import socket
import threading
import uuid
from datetime import UTC, datetime
from functools import reduce

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from tidings.errors import BadFrame
from tidings.spark.pipeline.config.settings import SourceSettings
from tidings.spark.pipeline.sources.json_decode import decode_json
from tidings.spark.pipeline.sources.sources import build_columns, stream_events

ADS = "id BIGINT, make STRING, price DOUBLE"


class Running:
    """A query that goes on while files are added; `rows` are all that came so far."""

    def __init__(self, frame, **trigger):
        self.rows, self.batches = [], []
        self.query = frame.writeStream.foreachBatch(self._take).trigger(**trigger or {"processingTime": "0 seconds"})
        self.query = self.query.start()

    def _take(self, batch, _):
        rows = [row.asDict(recursive=True) for row in batch.collect()]
        self.rows += rows
        self.batches.append(len(rows))

    def wait_for_rows(self):
        self.query.processAllAvailable()
        return self.rows

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self.query.stop()


def all_of(spark, source, derived=None):
    """Return every row of a source that is there now."""
    running = Running(stream_events(spark, source, derived or {}), availableNow=True)
    running.query.awaitTermination()
    return running.rows


def separate_refused(rows):
    return [r for r in rows if r["_refused"] is None], [r for r in rows if r["_refused"] is not None]


def ids(rows):
    return sorted(row["id"] for row in rows if row["id"] is not None)


# --- JSON text ----------------------------------------------------------------------------------------------

EVERY = (
    "id BIGINT, price DOUBLE, d DECIMAL(5,2), t TIMESTAMP, n TIMESTAMP_NTZ, day DATE, sold BOOLEAN, "
    "seller STRUCT<stars: INT, name: STRING>, tags ARRAY<INT>, extra MAP<STRING, INT>, text STRING"
)
GOOD = {
    "{}": {},
    '{"id":null}': {},
    '{"new":[1,{"a":2}],"id":1}': {"id": 1},
    '{"ID":1}': {},
    '{"id":"7","price":"8.5e3"}': {"id": 7, "price": 8500.0},
    '{"id":1,"id":2}': {"id": 2},
    '{"t":"2024-01-02T05:04:05+02:00"}': {"t": datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC).replace(tzinfo=None)},
    '{"t":"2024-01-02T03:04:05"}': {"t": datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC).replace(tzinfo=None)},
    '{"seller":{"name":5,"new":1}}': {"seller": {"stars": None, "name": "5"}},
    '{"tags":[1,null]}': {"tags": [1, None]},
    '{"text":{"a":1}}': {"text": '{"a":1}'},
    '{"text":"' + "y" * 5_000_000 + '"}': {"text": "y" * 5_000_000},
}
BAD = {
    '{"id":1,"price":"call me"}': "`price`: 'call me' does not fit DOUBLE",
    '{"id":9223372036854775808}': "`id`: '9223372036854775808' does not fit BIGINT",
    '{"id":1.5,"sold":1}': "`id`: '1.5' does not fit BIGINT; `sold`: '1' does not fit BOOLEAN",
    '{"d":1234.5}': "`d`: '1234.5' does not fit DECIMAL(5,2)",
    '{"price":"NaN"}': "`price`: 'NaN' does not fit DOUBLE",
    '{"price":"5d"}': "`price`: '5d' does not fit DOUBLE",
    '{"t":"yesterday"}': "`t`: 'yesterday' does not fit TIMESTAMP",
    '{"n":"2024-01-02T03:04:05Z"}': "`n`: '2024-01-02T03:04:05Z' does not fit TIMESTAMP_NTZ",
    '{"day":5}': "`day`: '5' does not fit DATE",
    '{"price":"8","seller":{"stars":"x"}}': '`seller`: \'{"stars":"x"}\' does not fit struct<stars:int,name:string>',
    '{"seller":"{}"}': "`seller`: '{}' does not fit struct<stars:int,name:string>",
    '{"tags":[1,"x"]}': "`tags`: '[1,\"x\"]' does not fit array<int>",
    '{"tags":"[1]"}': "`tags`: '[1]' does not fit array<int>",
    '{"extra":{"a":"x"}}': '`extra`: \'{"a":"x"}\' does not fit map<string,int>',
    '{"price":NaN}': "not JSON: '{\"price\":NaN}'",
    "{'id':1}": "not JSON: '{'id':1}'",
    '{"id":1': "not JSON: '{\"id\":1'",
    '{"id":1} {"id":2}': 'not one JSON object: \'{"id":1} {"id":2}\'',
    '[{"id":1}]': "not one JSON object: '[{\"id\":1}]'",
    "null": "not one JSON object: 'null'",
    "x" * 100: f"not JSON: '{'x' * 80}…'",
    "[" * 2000: f"not JSON: '{'[' * 80}…'",
    "": "an empty value",
}


@pytest.fixture(scope="module")
def rows_by_text(spark):
    texts = [*GOOD, *BAD]
    frame = spark.createDataFrame([(text,) for text in texts], "_text STRING")
    rows = decode_json(frame, StructType.fromDDL(EVERY), keep=(), options={}).collect()
    return {text: row.asDict(recursive=True) for text, row in zip(texts, rows, strict=True)}


@pytest.mark.parametrize("text", GOOD, ids=lambda text: text[:30])
def test_json_that_fits_is_read(rows_by_text, text):
    fields = {name: value for name, value in rows_by_text[text].items() if value is not None}
    assert fields == GOOD[text]


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:30])
def test_json_that_does_not_fit_is_refused_in_plain_words(rows_by_text, text):
    assert (rows_by_text[text]["_refused"], rows_by_text[text]["_raw"]) == (BAD[text], text)


def test_what_fits_of_a_refused_row_is_kept(rows_by_text):
    assert rows_by_text['{"id":1,"price":"call me"}']["id"] == 1


LINES = st.lists(
    st.fixed_dictionaries(
        {"id": st.integers(-(2**63), 2**63 - 1)},
        optional={
            "make": st.text(st.characters(codec="utf-8")) | st.none(),
            "price": st.floats(allow_nan=False, allow_infinity=False) | st.none(),
            "tags": st.lists(st.text(st.characters(codec="utf-8"), max_size=3)),
            "seller": st.fixed_dictionaries({"stars": st.integers(-5, 5)}),
            "new": st.integers() | st.text(st.characters(codec="utf-8")),
        },
    )
    | st.sampled_from(["not JSON", "[]", "{", '{"id": "x"}', '{"id": 1, "tags": [[1]', '{"id":3}{"id":4}', "7"]),
    max_size=40,
)


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LINES)
def test_generated_json_comes_back_as_json_reads_it_and_bad_lines_are_refused(spark, lines):
    columns = StructType.fromDDL(f"{ADS}, tags ARRAY<STRING>, seller STRUCT<stars: INT>")
    texts = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=len(lines) % 2 == 0) for line in lines]
    frame = spark.createDataFrame([(text,) for text in texts], "_text STRING")
    rows = [row.asDict(recursive=True) for row in decode_json(frame, columns, keep=(), options={}).collect()]
    for line, text, row in zip(lines, texts, rows, strict=True):
        if isinstance(line, str):
            assert (row["_raw"], bool(row["_refused"])) == (text, True)
        else:
            assert row == {name: line.get(name) for name in [*columns.names, "_refused", "_raw"]}


# --- directories --------------------------------------------------------------------------------------------


def lines_of(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def parquet_of(rows):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue().to_pybytes()


DRIFT = {
    # kind: (content of a file, good rows in it, refused rows in it)
    "json": [
        (lines_of({"id": 1, "make": "ford", "price": 5}), 1, 0),
        (lines_of({"colour": "red", "price": 5.5, "id": 2}), 1, 0),
        (lines_of({"id": 3}, {"id": "x3"}, {"id": 4, "price": "call me"}, {"id": 5, "price": "6"}), 2, 2),
        (b"", 0, 0),
        (b"\xef\xbb\xbf" + lines_of({"id": 6}) + b"\r\n \n\t\n" + b'{"id": 7}', 2, 0),
        (b'{"id": 8, "make": "\xff"}\n{"id": 8\n\x00\x01\x02\n', 0, 3),
        (lines_of({"id": 9, "make": "opel"}), 1, 0),
    ],
    "csv": [
        (b"id,make,price\n1,ford,5\n", 1, 0),
        (b"id,colour,make,price\n2,red,ford,5.5\n", 1, 0),
        (b"price,id\ncall me,4\n,3\n6,5\n", 2, 1),
        (b"", 0, 0),
        (b"\xef\xbb\xbfid,make\r\n6,ford\r\n\r\n7,\r\n", 2, 0),
        (bytes(range(256)) * 9, 0, 1),
        (b"id,make\n8\nx,y\n8,\xff\n", 0, 3),
        (b"make,id\nopel,9\n", 1, 0),
    ],
    "parquet": [
        (parquet_of([{"id": 1, "make": "ford", "price": 5.0}]), 1, 0),
        (parquet_of([{"colour": "red", "price": 5, "id": 2}]), 1, 0),
        (parquet_of([{"id": "3"}, {"id": "x3"}, {"id": "5"}]), 2, 1),
        (parquet_of([{"id": 4, "price": "call me"}, {"id": 6, "price": "1"}, {"id": 7, "price": None}]), 2, 1),
        (parquet_of([{"id": 8}])[:-9], 0, 1),
        (bytes(range(256)) * 9, 0, 1),
        (b"", 0, 0),
        (parquet_of([{"id": 9, "make": "opel"}]), 1, 0),
    ],
}


@pytest.mark.parametrize("kind", DRIFT)
def test_files_that_change_while_the_query_runs_never_stop_it_and_every_line_is_accounted_for(spark, tmp_path, kind):
    folder = tmp_path / "in"
    folder.mkdir()
    source = SourceSettings(kind, path=str(folder), columns=ADS)
    with Running(stream_events(spark, source, {"twice": "price * 2"})) as running:
        for number, (content, good, refused) in enumerate(DRIFT[kind]):
            before = len(running.rows)
            (tmp_path / "next").write_bytes(content)
            (tmp_path / "next").rename(folder / f"{number} ä 100%#?{number}.{kind}")  # whole, as a landing zone should
            came = separate_refused(running.wait_for_rows()[before:])
            assert tuple(map(len, came)) == (good, refused), (number, came)
    good, refused = separate_refused(running.rows)
    assert ids(good) == ([1, 2, 3, 5, 6, 7, 9])
    assert good[0] == {"id": 1, "make": "ford", "price": 5.0, "twice": 10.0, "_refused": None, "_raw": None}
    assert good[-1]["make"] == "opel"
    assert all(row["_raw"] and row["twice"] is None for row in refused)
    assert [row["id"] for row in refused if "call me" in row["_raw"]] == [4]


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_hidden_files_are_left_alone_and_folders_are_gone_through(spark, tmp_path, kind):
    content = {"json": '{{"id": {}}}\n', "csv": "id\n{}\n"}[kind]
    names = ["plain", "sp ace", "ä", "100%", "a%20b", "h#?", "[a]", "{b}", "日本", "day=1/x", "day=2/x", "more/x", "*"]
    for number, name in enumerate([*names, "_hidden", ".hidden", "_temporary/x"]):
        file = tmp_path / f"{name}.{kind}"
        file.parent.mkdir(exist_ok=True)
        file.write_text(content.format(number))
    good, refused = separate_refused(all_of(spark, SourceSettings(kind, path=str(tmp_path), columns=ADS)))
    assert (ids(good), refused) == (list(range(len(names))), [])


def test_options_of_the_listing_are_handed_on(spark, tmp_path):
    for number in range(4):
        (tmp_path / f"{number}.csv").write_text(f"id;make\n{number};x\n")
    (tmp_path / "4.txt").write_text("id;make\n4;x\n")
    options = {"maxFilesPerTrigger": "2", "pathGlobFilter": "*.csv", "sep": ";"}
    source = SourceSettings("csv", path=str(tmp_path), columns=ADS, options=options)
    running = Running(stream_events(spark, source, {}), availableNow=True)
    running.query.awaitTermination()
    assert running.batches == [2, 2]
    assert [row["make"] for row in running.rows] == ["x"] * 4


def test_spark_lists_files_without_reading_them(spark, tmp_path):
    with (tmp_path / "huge.parquet").open("wb") as file:
        file.truncate(3 << 30)  # Spark itself would refuse to take in more than 2 GB of it
    (row,) = all_of(spark, SourceSettings("parquet", path=str(tmp_path), columns=ADS))
    assert row["_refused"].startswith("the file cannot be read")
    assert json.loads(row["_raw"])["file"].endswith("huge.parquet")


def test_columns_that_a_csv_file_cannot_hold_are_refused_together(spark, tmp_path):
    source = SourceSettings("csv", path=str(tmp_path), columns="id INT, tags ARRAY<INT>, seller STRUCT<stars: INT>")
    with pytest.raises(BadFrame, match=r"`tags` array<int>, `seller` struct<stars:int> *;"):
        stream_events(spark, source, {})


# --- derived columns ----------------------------------------------------------------------------------------

FAILING = [
    "10 / price",
    "1 / 0",
    "CAST(make AS INT)",
    "CAST('x' AS INT)",
    "array(1, 2)[CAST(price AS INT) - 1]",
    "element_at(array(1, 2), CAST(price AS INT))",
    "2147483647 + CAST(id AS INT)",
    "raise_error(make)",
    "url_decode('%zz' || make)",
    "make RLIKE ('(' || make)",
    "make > 5  -- a remark",
]


def test_an_expression_that_fails_on_a_row_refuses_the_row_and_never_stops_the_query(spark, tmp_path):
    (tmp_path / "a.json").write_bytes(lines_of({"id": 1, "make": "ford", "price": 0}))
    source = SourceSettings("json", path=str(tmp_path), columns=ADS)
    frames = [
        stream_events(spark, source, {"made": expression}).selectExpr(
            "id", f"{number} number", "made IS NULL empty", "_refused"
        )
        for number, expression in enumerate(FAILING)
    ]
    running = Running(reduce(DataFrame.union, frames), availableNow=True)
    running.query.awaitTermination()
    reason = "derived `made` cannot be computed from this row"
    assert sorted(row["number"] for row in running.rows) == list(range(len(FAILING)))
    assert [row for row in running.rows if (row["id"], row["empty"], row["_refused"]) != (1, True, reason)] == []


def test_derived_columns_use_those_before_and_are_null_where_a_row_is_refused(spark, tmp_path):
    ads = [{"id": 1, "price": 4}, {"id": 2, "price": 0}, {"id": 3}, {"id": 4, "price": "x"}]
    (tmp_path / "a.json").write_bytes(lines_of(*ads))
    derived = {
        "share": "10 / price",
        "both": "share + id",
        "spot": "named_struct('lon', 1.0D)",
        "one": "1",
        "now": "now()",
    }
    rows = sorted(
        all_of(spark, SourceSettings("json", path=str(tmp_path), columns=ADS), derived), key=lambda row: row["id"]
    )
    assert [*rows[0]] == ["id", "make", "price", *derived, "_refused", "_raw"]
    assert [(row["share"], row["both"], row["one"]) for row in rows] == [
        (2.5, 3.5, 1),
        (None, None, None),
        (None, None, 1),
        (None, None, None),
    ]
    assert [row["spot"] for row in rows] == [{"lon": 1.0}, None, {"lon": 1.0}, None]
    assert rows[3]["_refused"] == "`price`: 'x' does not fit DOUBLE"
    assert rows[1]["_raw"] is None


# --- the other kinds ----------------------------------------------------------------------------------------


def test_columns_are_known_without_reading_anything(spark):
    assert (
        build_columns(SourceSettings("json", columns="id BIGINT NOT NULL, `a b` INT")).simpleString()
        == "struct<id:bigint,a b:int>"
    )
    assert build_columns(SourceSettings("json", columns="id BIGINT NOT NULL"))["id"].nullable
    assert build_columns(SourceSettings("rate")).names == ["timestamp", "value"]
    assert build_columns(SourceSettings("socket", value="text")).names == ["value"]
    assert build_columns(SourceSettings("kafka", columns="id INT")).names == ["id", "kafka"]
    assert build_columns(SourceSettings("kafka", columns="id INT"))["kafka"].dataType.names[0] == "key"
    assert build_columns(SourceSettings("json", id="id")).names == ["document", "id"]
    for columns in ("", "BIGINT"):
        with pytest.raises(BadFrame, match="must be names and types"):
            build_columns(SourceSettings("json", columns=columns))


def test_a_rate_comes_with_its_two_columns(spark):
    source = SourceSettings("rate", options={"rowsPerSecond": "100", "rampUpTime": "0"})
    frame = stream_events(spark, source, {"odd": "value % 2 = 1"})
    assert frame.columns == ["timestamp", "value", "odd", "_refused", "_raw"]
    with Running(frame) as running:
        while not running.rows and running.query.isActive:
            running.query.awaitTermination(0.2)
    assert all(row["odd"] == (row["value"] % 2 == 1) for row in running.rows)


@pytest.mark.parametrize("value", ["json", "text"])
def test_a_socket_gives_lines_of_json_or_text(spark, value):
    with socket.create_server(("127.0.0.1", 0)) as server:
        done = threading.Event()

        def serve():
            line, _ = server.accept()
            with line:
                line.sendall(b'{"id": 1}\n\nnot JSON\n{"id": 2}\n')
                done.wait(60)

        thread = threading.Thread(target=serve)
        thread.start()
        source = SourceSettings("socket", host="127.0.0.1", port=server.getsockname()[1], value=value, columns="id INT")
        name = f"lines_{uuid.uuid4().hex}"
        query = stream_events(spark, source, {}).writeStream.format("memory").queryName(name).start()
        try:
            while spark.table(name).count() < 3 and query.isActive:
                query.awaitTermination(0.2)
            rows = [row.asDict() for row in spark.table(name).collect()]
        finally:
            query.stop()
            done.set()
            thread.join()
    if value == "text":
        assert [row["value"] for row in rows] == ['{"id": 1}', "not JSON", '{"id": 2}']
    else:
        assert [(row["id"], row["_raw"]) for row in rows] == [(1, None), (None, "not JSON"), (2, None)]


def test_packed_json_is_read_and_a_broken_file_is_one_refused_row(spark, tmp_path):
    whole = "".join(json.dumps({"id": number, "name": "ü" * 200}) + "\n" for number in range(2000))
    (tmp_path / "good.json.gz").write_bytes(gzip.compress(whole.encode()))
    (tmp_path / "cut.json.gz").write_bytes(gzip.compress(whole.encode())[:-200])
    (tmp_path / "noise.json.gz").write_bytes(bytes(range(256)) * 4)
    (tmp_path / "plain.json").write_text('{"id": 5000, "name": "x"}\n\nnot JSON\n')
    rows = all_of(spark, SourceSettings("json", path=str(tmp_path), columns="id BIGINT, name STRING"))
    reasons = [row["_refused"] for row in rows if row["_refused"] is not None]
    assert sum("the file cannot be read" in reason for reason in reasons) == 2
    assert sum("not JSON" in reason for reason in reasons) >= 1
    good = [row["id"] for row in rows if row["_refused"] is None]
    assert sorted(set(good)) == [*range(2000), 5000]
    assert good.count(0) == 2  # of the whole file, and of the one that ends too soon
