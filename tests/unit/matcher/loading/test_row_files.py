"""Rows of JSON lines, CSV and Parquet, and subscriptions out of them."""

import gzip
import io
import json
import os
import sys
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidings as td
from tidings.errors import BadSubscriptions, FileError
from tidings.matcher.loading import row_readers
from tidings.matcher.loading.row_files import Form, RowFile, load_subscriptions, read_event
from tidings.matcher.tuning import FileTuning

ROWS = [{"id": "a", "n": 1}, {"id": "b", "n": None}, {"id": "č", "n": [1, 2]}]


def read(path, **options):
    with RowFile(path, **options) as file:
        return [row for batch in file for row in batch]


def values(path, **options):
    return [row.values for row in read(path, **options)]


def problems(path, **options):
    return {row.place: row.problem for row in read(path, **options) if row.problem}


@pytest.fixture
def file(tmp_path):
    def write(data, name="rows.jsonl"):
        path = tmp_path / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    return write


@pytest.fixture
def standard_input(monkeypatch):
    def give(data):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return give


def lines(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


# JSON lines ------------------------------------------------------------------------------------


def test_each_line_of_json_is_a_row(file):
    assert values(file(lines(ROWS))) == ROWS


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.log", "rows"])
def test_a_name_that_does_not_tell_is_json_lines(file, name):
    assert values(file(lines(ROWS), name)) == ROWS


def test_the_last_line_needs_no_end_and_a_mark_at_the_start_is_dropped(file):
    assert values(file(b"\xef\xbb\xbf" + lines(ROWS).strip().encode())) == ROWS


def test_lines_may_end_as_windows_ends_them(file):
    assert values(file(lines(ROWS).replace("\n", "\r\n"))) == ROWS


def test_rows_are_numbered_by_their_lines(file):
    rows = read(file('\n{"a": 1}\n   \n\n{"a": 2}\n'))
    assert [(row.number, row.place) for row in rows] == [(1, "line 2"), (4, "line 5")]


def test_a_bad_line_is_a_row_with_a_problem_and_keeps_its_text(file):
    rows = read(file(b'{"a": 1}\nnope\n{"a": 2}\n'))
    assert [row.values for row in rows] == [{"a": 1}, None, {"a": 2}]
    assert rows[1].problem == "not JSON: Expecting value (column 1)"
    assert rows[1].raw == "nope"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"[1]", "an array"),
        (b'"x"', "text"),
        (b"1", "a number"),
        (b"true", "a truth value"),
        (b"null", "null"),
        (b'{"a": NaN}', "NaN is not a finite number"),
        (b'{"a": -Infinity}', "-Infinity is not a finite number"),
        (b'{"a": "\xff"}', "not UTF-8 text (byte 7)"),
        (b'{"a": 1} {"a": 2}', "Extra data"),
        (b'{"a": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' + b"1" * 5000 + b"}", "not JSON"),
    ],
)
def test_every_way_to_be_wrong_has_its_words(file, line, words):
    (problem,) = problems(file(b'{"a": 1}\n' + line + b"\n")).values()
    assert words in problem


def test_json_over_several_lines_is_refused_with_a_way_out(file):
    for text, hint in (("[\n{}\n]", "jq -c .[]"), ('{\n "a": 1\n}', "jq -c .")):
        with pytest.raises(FileError, match="one object on each line") as refused:
            read(file(text))
        assert hint in str(refused.value)


@pytest.mark.parametrize("chunk", [300, 1 << 20])
def test_a_line_that_is_too_long_is_a_row_with_a_problem_and_the_others_are_read(tmp_path, chunk):
    tuning = FileTuning(longest_line=1000, read_bytes=chunk)
    path = tmp_path / "events.jsonl"
    large = json.dumps({"b": "x" * 3000})
    for last in ("", "\n"):
        path.write_text(f'{{"a": 1}}\n{large}\n{{"a": 2}}\n{large}{last}')
        with RowFile(path, tuning=tuning) as file:
            rows = [row for batch in file for row in batch]
        assert [row.values for row in rows][::2] == [{"a": 1}, {"a": 2}]
        if chunk == 300:
            assert {row.problem for row in rows[1::2]} == {f"a line of {len(large):,} bytes, and one may have 1,000"}
            assert {row.raw for row in rows[1::2]} == {large[:200]}


def test_a_line_of_csv_that_is_too_long_ends_the_file(tmp_path):
    tuning = FileTuning(longest_line=1000, read_bytes=300)
    (tmp_path / "events.csv").write_text("a\n" + "x" * 3000 + "\n")
    with (
        RowFile(tmp_path / "events.csv", tuning=tuning) as file,
        pytest.raises(FileError, match="3,000 bytes, and one may have 1,000"),
    ):
        list(file)


def test_columns_are_those_of_csv_and_parquet_and_json_has_none(tmp_path):
    (tmp_path / "a.csv").write_text("make,price\nford,1\n")
    pq.write_table(pa.table({"make": ["ford"], "seller": [{"kind": "x"}]}), tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text('{"make": "ford"}\n')
    for name, columns in {
        "a.csv": ["make", "price"],
        "a.parquet": ["make", "seller", "seller.kind"],
        "a.jsonl": None,
    }.items():
        with RowFile(tmp_path / name) as file:
            known_columns = file.find_columns()
            assert (None if known_columns is None else list(known_columns)) == columns
            assert len([row for batch in file for row in batch]) == 1


def test_lines_that_span_several_reads_are_whole(file):
    assert values(file(lines(ROWS)), tuning=FileTuning(read_bytes=7)) == ROWS


# CSV -------------------------------------------------------------------------------------------


def test_cells_are_text_under_the_names_of_the_header(file):
    path = file('id,car.make,note\n1,ford,"a, ""b""\nc"\n2,,\n', "rows.csv")
    assert values(path) == [
        {"id": "1", "car.make": "ford", "note": 'a, "b"\nc'},
        {"id": "2", "car.make": None, "note": None},
    ]


def test_rows_of_csv_are_numbered_from_0_and_placed_by_line(file):
    rows = read(file('a,b\n"x\ny",1\n\n2,3\n', "rows.csv"))
    assert [(row.number, row.place) for row in rows] == [(0, "line 2"), (1, "line 5")]


def test_a_row_with_too_many_or_too_few_cells_is_bad(file):
    path = file(b"a,b\n1\n1,2,3\n1,2\n\xff,2\n", "rows.csv")
    assert problems(path) == {
        "line 2": "1 cells, and the header has 2",
        "line 3": "3 cells, and the header has 2",
        "line 5": "not UTF-8 text",
    }
    assert [row.raw for row in read(path)] == ["1", "1,2,3", '{"a": "1", "b": "2"}', "\\xff,2"]


def test_a_cell_beyond_what_csv_takes_is_bad(file):
    assert "not CSV" in problems(file(f"a,b\n{'x' * 200_000},2\n1,2\n", "rows.csv"))["line 2"]


def test_a_header_must_be_clear(file):
    with pytest.raises(FileError, match="has the column `a` twice"):
        read(file("a,b,a\n", "rows.csv"))
    with pytest.raises(FileError, match="not CSV in UTF-8"):
        read(file(b"\xff,b\n", "rows.csv"))


def test_numbers_in_csv_are_read_as_the_filters_ask(file):
    searches = td.Matcher()
    searches.add("s", "price < 9000 and zip = '01234'")
    (event,) = values(file("price,zip\n8500,01234\n", "rows.csv"))
    assert searches.match(event) == ["s"]


# Parquet ---------------------------------------------------------------------------------------


def test_parquet_keeps_the_kinds_of_its_columns(tmp_path):
    rows = [{"id": 1, "at": datetime(2024, 7, 1, tzinfo=UTC), "tags": ["x"], "price": Decimal("1.50"), "o": {"p": 1}}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    (row,) = read(tmp_path / "rows.parquet")
    assert row.values == rows[0]
    assert (row.number, row.place) == (0, "row 1")
    assert json.loads(row.raw)["price"] == "1.50"


def test_parquet_comes_in_batches(tmp_path):
    pq.write_table(pa.table({"n": list(range(25))}), tmp_path / "rows.parquet")
    with RowFile(tmp_path / "rows.parquet", tuning=FileTuning(batch_rows=10)) as file:
        assert [len(batch) for batch in file] == [10, 10, 5]
        assert file.share == 1.0


def test_parquet_is_known_by_its_first_bytes(tmp_path, standard_input):
    pq.write_table(pa.table({"n": [1]}), tmp_path / "rows")
    assert values(tmp_path / "rows") == [{"n": 1}]
    standard_input((tmp_path / "rows").read_bytes())
    assert values("-") == [{"n": 1}]


def test_what_is_not_parquet_is_refused(file):
    for data in (b"", b"PAR1", b"nope" * 10):
        with pytest.raises(FileError, match="cannot read"):
            read(file(data, "rows.parquet"))


# Any file --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rows.jsonl.gz", "rows.gz", "rows.jsonl"])
def test_gzip_is_unpacked_whatever_its_name(file, name):
    assert values(file(gzip.compress(lines(ROWS).encode()), name)) == ROWS


def test_gzipped_csv_and_parquet_are_told_by_their_names(file, tmp_path):
    assert values(file(gzip.compress(b"a\n1\n"), "rows.csv.gz")) == [{"a": "1"}]
    pq.write_table(pa.table({"n": [1]}), tmp_path / "rows.parquet")
    packed = file(gzip.compress((tmp_path / "rows.parquet").read_bytes()), "rows.parquet.gz")
    assert values(packed) == [{"n": 1}]


@pytest.mark.parametrize("cut", [12, -4])
def test_gzip_that_is_cut_short_is_refused(file, cut):
    with pytest.raises(FileError, match="cannot read"):
        read(file(gzip.compress(lines(ROWS).encode())[:cut]))


def test_a_dash_is_standard_input(standard_input):
    standard_input(lines(ROWS).encode())
    assert values("-") == ROWS
    standard_input(gzip.compress(lines(ROWS).encode()))
    assert values("-") == ROWS
    standard_input(b"a,b\n1,2\n")
    assert values("-", form=Form.CSV) == [{"a": "1", "b": "2"}]


def test_a_name_that_tells_wins_over_the_form(file):
    assert values(file("a\n1\n", "rows.csv"), form=Form.JSONL) == [{"a": "1"}]


def test_closed_standard_input_is_told(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(FileError, match="cannot read `standard input`: it is closed"):
        RowFile("-")


def test_what_is_no_such_file_is_told_on_opening(tmp_path):
    with pytest.raises(FileError, match="No such file"):
        RowFile(tmp_path / "nowhere.jsonl")
    with pytest.raises(FileError, match="Is a directory"):
        RowFile(tmp_path)


def test_binary_data_and_other_encodings_are_refused(file):
    for data in (bytes(range(256)), '{"a": 1}'.encode("utf-16")):
        for name in ("rows.jsonl", "rows.csv"):
            with pytest.raises(FileError, match="binary data, or text that is not UTF-8"):
                read(file(data, name))


def test_an_empty_file_has_no_rows(file):
    assert [values(file(b"", name)) for name in ("rows.jsonl", "rows.csv")] == [[], []]


def test_a_batch_ends_where_the_pipe_has_no_more_to_give():
    reading, writing = os.pipe()
    with open(reading, "rb") as stream, open(writing, "wb", buffering=0) as out:
        rows = row_readers.Lines(stream, "pipe")
        batches = row_readers.batch_rows(row_readers.parse_json_rows(rows), rows)
        out.write(b'{"a": 1}\n{"a": 2}\n\n{"a"')  # the blank line must not hold the two rows back
        assert [row.values for row in next(batches)] == [{"a": 1}, {"a": 2}]
        out.write(b": 3}\n")
        assert [row.values for row in next(batches)] == [{"a": 3}]


def test_batches_are_never_large(file):
    with RowFile(file('{"a": 1}\n' * 25), tuning=FileTuning(batch_rows=10)) as opened:
        assert [len(batch) for batch in opened] == [10, 10, 5]
        assert opened.share == 1.0


# One event -------------------------------------------------------------------------------------


def test_one_event_may_go_over_several_lines(file):
    assert read_event(file(json.dumps(ROWS[0], indent=2))) == ROWS[0]


def test_one_event_of_several_is_chosen_by_its_number(file):
    path = file(lines(ROWS))
    assert read_event(path, row=2) == ROWS[2]
    with pytest.raises(FileError, match="has 3 events; choose one"):
        read_event(path)
    with pytest.raises(FileError, match="no event 7"):
        read_event(path, row=7)


def test_one_event_may_come_from_csv(file):
    assert read_event(file("a,b\n1,2\n", "row.csv")) == {"a": "1", "b": "2"}


def test_one_event_that_cannot_be_read_is_told_with_its_place(file):
    with pytest.raises(FileError, match="line 1: not JSON"):
        read_event(file("nope"))


# Subscriptions ---------------------------------------------------------------------------------


def load(matcher, path):
    with RowFile(path) as file:
        return load_subscriptions(matcher, file)


def test_filters_come_in_any_notation(file):
    rows = [
        {"id": "text", "filter": "a = 1"},
        {"id": "url", "filter": "a=1", "notation": "url"},
        {"id": "tree", "filter": {"attr": "a", "op": "=", "value": 1}, "note": "more is no harm"},
        {"id": "json", "filter": '{"attr": "a", "op": "=", "value": 1}', "notation": "json"},
        {"id": "all", "filter": True},
    ]
    searches = td.Matcher()
    done = load(searches, file(lines(rows)))
    assert (done.rows, done.refused, done.replaced) == (5, [], 0)
    assert set(searches.match({"a": 1})) == {"text", "url", "tree", "json", "all"}


def test_csv_holds_subscriptions_too(file):
    searches = td.Matcher()
    load(searches, file("id,filter,notation\ns1,\"make = 'ford', \",\ns2,make=ford,url\n", "subs.csv"))
    assert list(searches) == ["s2"]
    load(searches, file("id,filter\ns1,\"make in ('ford', 'vw')\"\n", "subs.csv"))
    assert set(searches) == {"s1", "s2"}


def test_refusals_name_the_line_and_the_id_and_keep_the_good_ones(file):
    rows = [{"id": "good", "filter": "a = 1"}, {"id": "bad", "filter": "a = "}, {"filter": "a = 1"}, {"id": []}, 5]
    rows.append({"id": [], "filter": "a = 1"})
    searches = td.Matcher()
    done = load(searches, file(lines(rows)))
    assert list(searches) == ["good"]
    assert [(refusal.place, refusal.id) for refusal in done.refused] == [
        ("line 2", "bad"),
        ("line 3", None),
        ("line 4", []),
        ("line 5", None),
        ("line 6", []),
    ]
    error = done.build_error("subs.jsonl")
    assert isinstance(error, BadSubscriptions)
    assert str(error).startswith("5 of 6 subscriptions in `subs.jsonl` were refused:\n")
    assert len(error.errors) == 5


def test_refusals_of_one_id_name_each_line(file):
    rows = [{"id": "x", "filter": "a = "}, {"id": "x", "filter": "a = "}]
    done = load(td.Matcher(), file(lines(rows)))
    assert [refusal.place for refusal in done.refused] == ["line 1", "line 2"]


def test_an_id_that_comes_again_replaces_and_is_counted(file):
    searches = td.Matcher()
    done = load(searches, file(lines([{"id": "s", "filter": "a = 1"}, {"id": "s", "filter": "a = 2"}])))
    assert (len(searches), done.replaced) == (1, 1)
    assert searches.match({"a": 2}) == ["s"]
