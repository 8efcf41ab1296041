"""`tidings pattern detect`."""

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cli.samples import write_lines

import tidings as td
from tidings.lang import WrittenPattern, render_patterns
from tidings.model.patterns import Mode
from tidings.testing.strategies.patterns import patterns, streams

EXAMPLES = Path(__file__).parents[3] / "examples"
ATTACKS, LOGINS = EXAMPLES / "attacks.patterns", EXAMPLES / "logins.jsonl"
AB = "pattern ab\n  a = kind = 'a'\n  b = kind = 'b'\n  a ; b\n"
SILENT = "pattern silent\n  a = kind = 'a'\n  b = kind = 'b'\n  a ; not b for 5 s\n"


@pytest.fixture
def ab(tmp_path):
    (tmp_path / "ab.patterns").write_text(AB, encoding="utf-8")
    return "ab.patterns"


def parse_kinds(text):
    """Events `a@3`: a kind and a second."""
    words = (word.split("@") for word in text.split())
    return [{"id": place, "kind": kind, "time": int(second)} for place, (kind, second) in enumerate(words)]


def list_reports(done):
    return [(line["pattern"], line["events"]) for line in done.lines]


def test_detections_come_as_json_lines(tidings):
    done = tidings("pattern", "detect", "-p", ATTACKS, "-e", LOGINS, "--event-id", "id")
    assert done.code == 0
    assert done.lines[1] == {
        "pattern": "intrusion",
        "at": "2024-07-01T12:02:40Z",
        "events": ["L00", "L02", "L07", "L08"],
        "bindings": {"x": "10.0.0.7"},
    }
    assert [line["pattern"] for line in done.lines] == ["hammering", "intrusion", "takeover", "lockout", "left open"]
    assert "note: 16 events, 5 patterns: 5 detections, 0 late, 0 dead letters" in done.err


def test_the_example_gives_what_the_detector_gives(tidings):
    from tidings.lang import read_patterns

    attacks = td.Detector(keep=["user"])
    attacks.add_many(read_patterns(ATTACKS.read_text(encoding="utf-8")))
    events = [json.loads(line) for line in LOGINS.read_text(encoding="utf-8").splitlines()]
    done = tidings("pattern", "detect", "-p", ATTACKS, "-e", LOGINS, "--event-id", "id", "--keep", "user", "-q")
    assert [as_line(detection) for detection in attacks.detect_many(events)] == done.lines
    assert done.err == ""


def as_line(detection, *, fields=True):
    line = {
        "pattern": detection.pattern,
        "at": detection.at.isoformat().replace("+00:00", "Z"),
        "events": list(detection.events),
        "bindings": detection.bindings,
    }
    return {**line, "fields": [dict(row) for row in detection.fields]} if fields else line


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(patterns(variables=True), min_size=1, max_size=3), streams(), st.sampled_from(list(Mode)), st.data())
def test_generated_patterns_give_what_the_detector_gives(tidings, tmp_path, drawn, events, mode, data):
    watch = td.Detector()
    given_patterns = [WrittenPattern(f"p{n}", pattern, mode) for n, pattern in enumerate(drawn)]
    watch.add_many(given_patterns)
    (tmp_path / "drawn.patterns").write_text(render_patterns(given_patterns), encoding="utf-8")
    rows = [{**event, "time": event["time"].isoformat()} for event in events]
    write_lines(tmp_path / "drawn.jsonl", rows)
    until = (max([event["time"] for event in events], default=datetime(1970, 1, 1, tzinfo=UTC))) + timedelta(seconds=2)
    expected = [*watch.detect_many(events), *watch.on_time(until)]
    command = ["pattern", "detect", "--event-id", "id", "--until", until.isoformat()]
    done = tidings(*command, "-p", "drawn.patterns", "-e", "drawn.jsonl")
    assert done.lines == [as_line(detection, fields=False) for detection in expected]

    # The same in two runs, through a state.
    cut = data.draw(st.integers(0, len(rows)))
    write_lines(tmp_path / "first.jsonl", rows[:cut])
    write_lines(tmp_path / "second.jsonl", rows[cut:])
    first = tidings(
        "pattern", "detect", "-p", "drawn.patterns", "-e", "first.jsonl", "--event-id", "id", "--save-state", "s"
    )
    second = tidings(*command, "--state", "s", "-e", "second.jsonl")
    assert first.lines + second.lines == done.lines


# Files -----------------------------------------------------------------------------------------


def test_all_forms_give_the_same(tidings, ab, tmp_path):
    rows = parse_kinds("a@1 c@2 b@3")
    write_lines(tmp_path / "e.jsonl", rows)
    (tmp_path / "e.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    text = "".join(f"{row['id']},{row['kind']},{row['time']}\n" for row in rows)
    (tmp_path / "e.csv").write_text("id,kind,time\n" + text, encoding="utf-8")
    times = [datetime.fromtimestamp(row["time"], UTC) for row in rows]
    pq.write_table(pa.table({"kind": [row["kind"] for row in rows], "time": times}), tmp_path / "e.parquet")
    for name in ("e.jsonl", "e.jsonl.gz", "e.csv", "e.parquet"):
        (line,) = tidings("pattern", "detect", "-p", ab, "-e", name).lines
        assert (line["events"], line["at"]) == ([0, 2], "1970-01-01T00:00:03Z"), name


def test_events_may_come_from_standard_input(tidings, ab):
    lines = "".join(json.dumps(row) + "\n" for row in parse_kinds("a@1 b@3"))
    assert list_reports(tidings("pattern", "detect", "-p", ab, "-e", "-", stdin=lines)) == [("ab", [0, 1])]
    assert tidings("pattern", "detect", "-p", "-", "-e", "-", stdin=lines).code == 2


def test_time_and_id_may_lie_in_records_and_be_called_as_one_likes(tidings, ab, tmp_path):
    rows = [{"kind": kind, "meta": {"at": f"2024-07-01T00:00:0{n}Z", "key": n / 2}} for n, kind in enumerate("ab")]
    write_lines(tmp_path / "e.jsonl", rows)
    (line,) = tidings(
        "pattern", "detect", "-p", ab, "-e", "e.jsonl", "--time", "meta.at", "--event-id", "meta.key"
    ).lines
    assert (line["events"], line["at"]) == ([0.0, 0.5], "2024-07-01T00:00:01Z")


def test_events_without_times_are_taken_where_no_pattern_asks(tidings, ab, tmp_path):
    write_lines(tmp_path / "e.jsonl", [{"kind": "a"}, {"kind": "b"}])
    done = tidings("pattern", "detect", "-p", ab, "-e", "e.jsonl")
    assert done.lines == [{"pattern": "ab", "at": None, "events": [0, 1], "bindings": {}}]


def test_events_without_times_pass_by_patterns_that_ask_for_them_and_that_is_told(tidings, tmp_path):
    (tmp_path / "two.patterns").write_text(SILENT + AB, encoding="utf-8")
    write_lines(tmp_path / "e.jsonl", [{"kind": "a"}, {"kind": "b", "time": "some day"}])
    done = tidings("pattern", "detect", "-p", "two.patterns", "-e", "e.jsonl")
    assert list_reports(done) == [("ab", [0, 1])]
    lack = "time: 2 of 2 events have no time that can be read, and take no part in 1 pattern (silent)"
    assert f"warning: {lack}" in done.err
    assert "1 detections, 0 late, 0 dead letters" in done.err


def test_what_a_filter_or_a_variable_cannot_use_is_told(tidings, tmp_path):
    text = "pattern p\n  a = kind > 5 and ip = $x\n  a ; b:a\n"
    (tmp_path / "p.patterns").write_text(text, encoding="utf-8")
    write_lines(tmp_path / "e.jsonl", [{"kind": 7, "ip": ["x", "y"]}, {"kind": "a", "ip": "x"}])
    done = tidings("pattern", "detect", "-p", "p.patterns", "-e", "e.jsonl")
    assert "warning: kind: 1 of 2 values are text, asked as numbers by 1 pattern (p)" in done.err
    assert "warning: ip: 1 of 2 values are several values, taken by variables of 1 pattern (p)" in done.err


# Bad and late events ---------------------------------------------------------------------------


@pytest.fixture
def events_file(tmp_path):
    lines = [
        '{"id": "a", "kind": "a", "time": 1}',
        "not json",
        '{"id": "c", "kind": "a", "time": "yesterday"}',
        '{"kind": "a", "time": 2}',
        '{"id": "e", "kind": {"b": 1}, "time": 1e300}',
        '{"id": "f", "kind": "b", "time": 0}',
        '{"id": "g", "kind": "b", "time": 9}',
    ]
    (tmp_path / "mixed.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return "mixed.jsonl"


def test_bad_and_late_events_are_told_with_their_lines_and_do_not_stop_the_others(tidings, ab, events_file, tmp_path):
    done = tidings("pattern", "detect", "-p", ab, "-e", events_file, "--event-id", "id", "--dead-letters", "dead.jsonl")
    assert done.code == 0
    assert list_reports(done) == [("ab", ["c", "g"])], "one without a time stands where it came"
    assert "warning: 2 of 7 events could not be read and were not taken\n  line 2: not JSON" in done.err
    assert "line 4: the event has no single value `id`" in done.err
    assert "warning: 1 of 7 events came late and were not taken\n  line 6: its time, 1970-01-01T00:00:00Z" in done.err
    assert "--lateness 1s would have put them in order" in done.err
    assert "note: 7 events, 1 patterns: 1 detections, 1 late, 2 dead letters" in done.err
    letters = [json.loads(line) for line in (tmp_path / "dead.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [letter["event"] for letter in letters] == [1, 3, "f"]


def test_lateness_puts_events_in_order(tidings, ab, tmp_path):
    write_lines(tmp_path / "e.jsonl", parse_kinds("b@3 a@1 b@9 a@4"))
    done = tidings("pattern", "detect", "-p", ab, "-e", "e.jsonl", "--lateness", "2s", "--mode", "any")
    assert list_reports(done) == [("ab", [1, 0]), ("ab", [1, 2])]
    assert "line 4: its time, 1970-01-01T00:00:04Z, lies more than 2 s behind" in done.err
    assert "--lateness 5s would have put them in order" in done.err
    done = tidings("pattern", "detect", "-p", ab, "-e", "e.jsonl", "--lateness", "5s", "--mode", "any")
    assert sorted(list_reports(done)) == [("ab", [1, 0]), ("ab", [1, 2]), ("ab", [3, 2])]
    assert tidings("pattern", "detect", "-p", ab, "-e", "e.jsonl", "--lateness", "5 parsecs").code == 2


def test_partial_matches_that_were_given_up_are_told(tidings, tmp_path):
    (tmp_path / "p.patterns").write_text(AB.replace("ab\n", "ab mode next\n", 1), encoding="utf-8")
    write_lines(tmp_path / "e.jsonl", parse_kinds("a@1 a@2 a@3 b@4"))
    done = tidings("pattern", "detect", "-p", "p.patterns", "-e", "e.jsonl", "--partials", "1")
    assert len(done.lines) < 3
    assert "partial matches were given up" in done.err


def test_a_limit_that_cut_is_told(tidings, tmp_path):
    (tmp_path / "p.patterns").write_text(AB.replace("ab\n", "ab mode any limit 1\n", 1), encoding="utf-8")
    write_lines(tmp_path / "e.jsonl", parse_kinds("a@1 a@2 b@4"))
    done = tidings("pattern", "detect", "-p", "p.patterns", "-e", "e.jsonl")
    assert len(done.lines) == 1
    assert "a pattern's limit, which cut them short" in done.err


# Time ------------------------------------------------------------------------------------------


def test_absences_count_up_to_the_last_event_or_further(tidings, tmp_path):
    (tmp_path / "silent.patterns").write_text(SILENT, encoding="utf-8")
    write_lines(tmp_path / "e.jsonl", parse_kinds("a@1 c@6 a@8 c@9"))
    command = ("pattern", "detect", "-p", "silent.patterns", "-e", "e.jsonl")
    assert list_reports(tidings(*command)) == [("silent", [0])]
    assert list_reports(tidings(*command, "--until", "1970-01-01T00:00:13Z")) == [("silent", [0]), ("silent", [2])]
    assert list_reports(tidings(*command, "--until", "1970-01-01T00:00:02Z")) == [("silent", [0])]
    assert list_reports(tidings(*command, "--lateness", "1h")) == [("silent", [0])]


# Options ---------------------------------------------------------------------------------------


def test_modes_are_those_of_the_paper_s_figure(tidings, ab, tmp_path):
    text = "pattern abc\n" + "".join(f"  {kind} = kind = '{kind}'\n" for kind in "abc") + "  a , b ; c\n"
    (tmp_path / "abc.patterns").write_text(text, encoding="utf-8")
    write_lines(tmp_path / "e.jsonl", parse_kinds(" ".join(f"{kind}@{at}" for at, kind in enumerate("ababcefabcddga"))))
    counts = [
        len(tidings("pattern", "detect", "-p", "abc.patterns", "-e", "e.jsonl", "--mode", mode).lines)
        for mode in ("restart", "overlap", "next", "any")
    ]
    assert counts == [2, 2, 3, 5]


def test_patterns_must_come_from_somewhere(tidings):
    done = tidings("pattern", "detect", "-e", LOGINS)
    assert done.code == 2
    assert "--patterns" in done.err


def test_options_may_come_from_the_environment(tidings, monkeypatch):
    for name, value in {"PATTERNS": ATTACKS, "EVENTS": LOGINS, "EVENT_ID": "id", "QUIET": "1"}.items():
        monkeypatch.setenv(f"TIDINGS_{name}", str(value))
    done = tidings("pattern", "detect")
    assert len(done.lines) == 5
    assert done.err == ""
