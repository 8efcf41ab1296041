"""Patterns on batches: what the local detector finds, whatever the order and the partitions of the rows."""

from collections import Counter
from datetime import UTC

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tests.unit.spark.detect.pattern_cases import COLUMNS, LOGIN, PATTERN_TEXTS, at, count_detections_locally, log

import tidings as td
from tidings import spark as ts
from tidings.errors import BadFrame, FileError, PatternError, TidingsError


def count_detections(frame):
    return Counter(
        (row.pattern, row.at.replace(tzinfo=UTC), tuple(row.events)) for row in frame.collect() if row.kind == "match"
    )


@pytest.fixture(scope="module")
def logins(spark):
    rows = [
        (1, at(0), "denied", "10.0.0.1", "a"),
        (2, at(9), "success", "10.0.0.1", "b"),
        (3, at(5), "denied", "10.0.0.1", "c"),
        (4, at(6), "success", "10.0.0.2", "d"),
    ]
    return spark.createDataFrame(rows, "id BIGINT, ts TIMESTAMP, status STRING, ip STRING, page STRING")


def test_generated_patterns_are_found_as_the_local_detector_finds_them(spark):
    rows = sorted(log(), key=lambda row: (row[0] % 3, row[0]))  # times go back twice, and once within a partition
    pieces = [spark.createDataFrame(rows[start : start + 40], COLUMNS).coalesce(1) for start in (0, 40, 80)]
    frame = pieces[0].union(pieces[1]).union(pieces[2])
    in_order = sorted(rows, key=lambda row: row[1])
    expected = count_detections_locally(in_order, PATTERN_TEXTS)
    assert count_detections(ts.detect(frame, PATTERN_TEXTS, buckets=3, shards=2)) == expected
    assert len({pattern for pattern, *_ in expected}) > 20
    assert sum(expected.values()) > 500


def test_a_row_says_what_happened_to_whom_when_and_through_which_events(logins):
    detections = ts.detect(logins, {"intrusion": LOGIN})
    assert detections.columns == ["kind", "pattern", "key", "at", "events", "probability", "horizon", "estimator"]
    [row] = detections.collect()
    assert tuple(row) == ("match", "intrusion", "10.0.0.1", at(9).replace(tzinfo=None), [1, 3, 2], None, None, None)


def test_kept_columns_come_along_in_records(logins):
    [row] = ts.detect(logins, {"intrusion": LOGIN}, keep=["page", "ts"]).collect()
    assert [(event.id, event.page) for event in row.events] == [(1, "a"), (3, "c"), (2, "b")]
    assert row.events[1].ts == at(5).replace(tzinfo=None)


def test_patterns_come_in_many_forms(logins, tmp_path):
    detector = td.Detector()
    detector.add("intrusion", LOGIN, mode="any")
    (tmp_path / "logins.patterns").write_text("pattern intrusion mode any\n" + LOGIN)
    forms = [detector, tmp_path / "logins.patterns", [("intrusion", LOGIN)], {"intrusion": LOGIN}]
    assert [ts.detect(logins, form).count() for form in forms] == [1, 1, 1, 1]


def test_a_key_parts_the_stream_of_patterns_that_have_none(logins):
    both = {"plain": "d = status = 'denied'\ns = status = 'success'\nd ; s", "own": LOGIN}
    assert [(row.pattern, row.key, row.events) for row in ts.detect(logins, both).sort("pattern").collect()] == [
        ("own", "10.0.0.1", [1, 3, 2]),
        ("plain", None, [3, 4]),
    ]
    assert [
        (row.pattern, row.key, row.events) for row in ts.detect(logins, both, key="ip").sort("pattern").collect()
    ] == [
        ("own", "10.0.0.1", [1, 3, 2]),
        ("plain", "10.0.0.1", [3, 2]),
    ]


def test_several_values_of_a_key_are_a_list_and_equal_numbers_one_key(spark):
    rows = [(1, 1, "a", 7, 2.0), (2, 2, "b", 2, 7.0), (3, 3, "b", 9, 7.0)]
    frame = spark.createDataFrame(rows, "id INT, ts BIGINT, kind STRING, key INT, other DOUBLE")
    patterns = {
        "crossed": "a = kind = 'a' and key = $x and other = $y\nb = kind = 'b' and other = $x and key = $y\na ; b",
        "joined": "a = kind = 'a' and key = $x\nb = kind = 'b' and other = $x\na ; b",
    }
    rows_by_pattern = {row.pattern: (row.key, row.events) for row in ts.detect(frame, patterns, buckets=50).collect()}
    assert rows_by_pattern == {"crossed": ('["7", "2"]', [1, 2]), "joined": ("7", [1, 2])}


def test_time_passes_to_the_newest_event_of_all(spark):
    silent = {"silent": "a = kind = 'a' and key = $x\nb = kind = 'b' and key = $x\na ; not b for 1 min"}
    rows = [(1, at(0), "a", 1, 0.0), (2, at(60), "x", 2, 0.0), (3, at(10), "a", 3, 0.0), (4, at(15), "b", 3, 0.0)]
    rows.append((5, at(30), "a", 4, 0.0))
    [row] = ts.detect(spark.createDataFrame(rows, COLUMNS), silent).collect()
    assert (row.key, row.events, row.at) == ("1", [1], at(60).replace(tzinfo=None))


def test_bad_events_take_no_part_and_are_told(spark):
    rows = [
        (1, at(0), "5", "u"),
        (2, at(1), "call me", "u"),
        (3, None, "5", "u"),
        (4, at(2), "6", "u"),
        (5, at(3), "7", None),
    ]
    frame = spark.createDataFrame(rows, "id INT, ts TIMESTAMP, price STRING, user STRING").coalesce(1)
    twice = {"twice": "p = price > 1 and user = $u\np, q:p"}
    declared = {"price": "number"}  # a column of text is text unless that is said
    assert [row.events for row in ts.detect(frame, twice, schema=declared).collect()] == [[1, 4]]
    letters = ts.bad_events(frame, twice, event_id="id", schema=declared).collect()
    assert [(row.event, row.reason) for row in letters] == [
        (2, "`price`: 'call me' is not a number"),
        (3, "the event has no `ts`"),
    ]
    assert letters[0].row == '{"id":2,"ts":"2024-07-01T00:00:01.000Z","price":"call me","user":"u"}'


def test_a_declared_column_gives_variables_its_declared_reading(spark):
    rows = [(1, at(0), "7"), (2, at(1), "x"), (3, at(2), " 7.0"), (4, at(3), None)]
    frame = spark.createDataFrame(rows, "id INT, ts TIMESTAMP, n STRING").coalesce(1)
    twice = {"twice": "p = n = $u\np ; q:p"}
    [row] = ts.detect(frame, twice, schema={"n": "number"}).collect()
    assert (row.key, row.events) == ("7", [1, 3])
    assert ts.detect(frame, twice).count() == 0, "as text they are two keys"
    assert [row.event for row in ts.bad_events(frame, twice, event_id="id", schema={"n": "number"}).collect()] == [2]


def test_values_of_variables_may_lie_in_records_and_be_dates(spark):
    frame = spark.sql("""
        SELECT id, ts, kind, named_struct('ip', ip) AS net, DATE'2024-01-01' AS day FROM VALUES
        (1, TIMESTAMP'2024-07-01', 'a', 'x'), (2, TIMESTAMP'2024-07-02', 'b', 'x') AS t(id, ts, kind, ip)
    """)
    patterns = {
        "a then b": "a = kind = 'a' and net.ip = $x and day = $d\nb = kind = 'b' and net.ip = $x and day = $d\na ; b"
    }
    [row] = ts.detect(frame, patterns).collect()
    assert (row.key, row.events) == ('["2024-01-01T00:00:00+00:00", "x"]', [1, 2])


def test_the_benchmark_runs_and_agrees_with_the_detector(spark, tmp_path, capsys):
    pytest.importorskip("duckdb", reason="needs tidings[bench]")
    from benchmarks.spark import patterns as benchmark

    path = benchmark.write_events(tmp_path, 2_000, keys=5, kinds=3)
    benchmark.report(benchmark.measure_patterns(spark, path, repeat=1), 2_000)
    assert "baseline" in capsys.readouterr().out


def test_no_events_are_no_matches(logins):
    assert ts.detect(logins.limit(0), {"intrusion": LOGIN}).collect() == []


@pytest.mark.parametrize(
    ("problem", "words", "options"),
    [
        (BadFrame, "no column `when`", {"time": "when"}),
        (BadFrame, "`page` is string; cast it", {"time": "page"}),
        (BadFrame, "no column `nr`", {"event_id": "nr"}),
        (BadFrame, "keep=\\['page'\\]", {"keep": "page"}),
        (BadFrame, "named twice", {"keep": ["id"]}),
        (BadFrame, "no column `user`", {"key": "user"}),
        (BadFrame, "buckets is a number from 1 up, not 0", {"buckets": 0}),
        (PatternError, "no patterns", {"patterns": {}}),
        (PatternError, "a pair of a name and a text", {"patterns": ["a"]}),
        (FileError, "cannot be read", {"patterns": "nowhere.patterns"}),
        (TidingsError, "brings its own `schema`", {"patterns": td.Detector(), "schema": {"ip": "text"}}),
        (TidingsError, "`ts` is declared time", {"patterns": {"n": "a = ts > 5\na"}}),
    ],
)
def test_what_makes_no_sense_is_refused_before_any_job(logins, problem, words, options):
    patterns = options.pop("patterns", {"intrusion": LOGIN})
    with pytest.raises(problem, match=words):
        ts.detect(logins, patterns, **options)


def test_a_list_gives_no_variable_its_value(spark):
    frame = spark.createDataFrame([(1, at(0), ["a"])], "id INT, ts TIMESTAMP, tags ARRAY<STRING>")
    with pytest.raises(BadFrame, match="`tags` gives a variable its value, and is array<string>"):
        ts.detect(frame, {"twice": "a = id > 0 and tags = $t\na ; b:a"})
