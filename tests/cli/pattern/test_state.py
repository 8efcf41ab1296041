"""States of `tidings pattern`: begun by `compile`, written and gone on with by `detect`, also after Ctrl-C."""

import json
import os
import pty
import signal
import subprocess
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.pattern.test_detect import AB, list_reports, parse_kinds
from tests.cli.samples import write_lines

import tidings as td
from tidings.matcher.tuning import FILE_TUNING

BC = "pattern bc\n  b = kind = 'b'\n  c = kind = 'c'\n  b ; c\n"


@pytest.fixture
def ab(tmp_path):
    (tmp_path / "ab.patterns").write_text(AB, encoding="utf-8")
    write_lines(tmp_path / "first.jsonl", parse_kinds("a@1"))
    write_lines(tmp_path / "second.jsonl", parse_kinds("b@2 c@3"))
    return "ab.patterns"


def test_compile_writes_a_state_that_detect_begins_with(tidings, ab):
    done = tidings("pattern", "compile", ab, "-o", "ab.state", "--event-id", "id", "--keep", "kind")
    assert "tidings pattern detect --state ab.state" in done.err
    first = tidings("pattern", "detect", "--state", "ab.state", "-e", "first.jsonl", "--save-state", "ab.state")
    assert first.lines == []
    assert "the state is in `ab.state`" in first.err
    (line,) = tidings("pattern", "detect", "--state", "ab.state", "-e", "second.jsonl").lines
    assert line["events"] == [0, 0]
    assert line["fields"] == [{"kind": "a"}, {"kind": "b"}]


def test_a_state_is_the_detector_s_own(tidings, ab, tmp_path):
    tidings("pattern", "detect", "-p", ab, "-e", "first.jsonl", "--save-state", "s", "--time", "time")
    watch = td.Detector.resume((tmp_path / "s").read_bytes())
    assert list(watch) == ["ab"]
    assert [detection.events for detection in watch.on_event({"kind": "b", "time": 5})] == [(0, 1)]


def test_a_state_that_has_seen_nothing_takes_any_setting(tidings, ab, tmp_path):
    tidings("pattern", "compile", ab, "-o", "s")
    write_lines(tmp_path / "e.jsonl", parse_kinds("b@2 a@1 a@3"))
    done = tidings(
        "pattern", "detect", "--state", "s", "-e", "e.jsonl", "--lateness", "5s", "--keep", "kind", "--partials", "7"
    )
    assert list_reports(done) == [("ab", [1, 0])]
    assert done.lines[0]["fields"] == [{"kind": "a"}, {"kind": "b"}]


def test_a_state_that_has_begun_keeps_its_settings(tidings, ab):
    tidings("pattern", "detect", "-p", ab, "-e", "first.jsonl", "--save-state", "s", "--lateness", "5s")
    for option in (("--lateness", "6s"), ("--keep", "kind"), ("--partials", "7")):
        done = tidings("pattern", "detect", "--state", "s", "-e", "second.jsonl", *option)
        assert done.code == 1
        assert f"the state has begun with another {option[0]}" in done.err
    assert tidings("pattern", "detect", "--state", "s", "-e", "second.jsonl", "--lateness", "5s").code == 0


def test_what_waits_goes_into_the_state(tidings, ab, tmp_path):
    write_lines(tmp_path / "late.jsonl", parse_kinds("b@9 a@6"))
    write_lines(tmp_path / "later.jsonl", parse_kinds("a@7 c@20"))
    command = ("pattern", "detect", "--event-id", "id")
    first = tidings(*command, "-p", ab, "-e", "late.jsonl", "--lateness", "10s", "--mode", "any", "--save-state", "s")
    assert first.lines == []
    both = tidings(*command, "--state", "s", "-e", "later.jsonl")
    assert sorted(list_reports(both)) == [("ab", [0, 0]), ("ab", [1, 0])]
    (tmp_path / "none.jsonl").write_text("", encoding="utf-8")
    assert list_reports(tidings(*command, "--state", "s", "-e", "none.jsonl")) == [("ab", [1, 0])]


def test_a_file_of_patterns_beside_a_state_says_what_is_watched(tidings, ab, tmp_path):
    tidings("pattern", "detect", "-p", ab, "-e", "first.jsonl", "--save-state", "s")
    (tmp_path / "both.patterns").write_text(AB + BC, encoding="utf-8")
    (tmp_path / "bc.patterns").write_text(BC, encoding="utf-8")
    command = ("pattern", "detect", "--state", "s", "-e", "second.jsonl")
    assert list_reports(tidings(*command, "-p", "both.patterns")) == [("ab", [0, 0]), ("bc", [0, 1])]
    assert list_reports(tidings(*command, "-p", "bc.patterns")) == [("bc", [0, 1])]
    assert list_reports(tidings(*command, "-p", "both.patterns", "--mode", "any")) == [("bc", [0, 1])]


def test_a_state_has_its_own_modes_and_schema(tidings, ab, tmp_path):
    tidings("pattern", "compile", ab, "-o", "s")
    (tmp_path / "kinds.toml").write_text('kind = "text"\n', encoding="utf-8")
    assert tidings("pattern", "detect", "--state", "s", "-e", "first.jsonl", "--mode", "any").code == 2
    assert tidings("pattern", "detect", "--state", "s", "-e", "first.jsonl", "--schema", "kinds.toml").code == 2


def test_events_called_by_their_lines_are_warned_of(tidings, ab):
    tidings("pattern", "detect", "-p", ab, "-e", "first.jsonl", "--save-state", "s")
    assert (
        "--event-id FIELD would tell them apart"
        in tidings("pattern", "detect", "--state", "s", "-e", "second.jsonl").err
    )


def test_a_state_never_overwrites_what_is_none(tidings, ab, tmp_path):
    before = (tmp_path / "first.jsonl").read_bytes()
    for command in (
        ("compile", ab, "-o", "first.jsonl"),
        ("detect", "-p", ab, "-e", "first.jsonl", "--save-state", "first.jsonl"),
    ):
        done = tidings("pattern", *command)
        assert done.code == 1
        assert "is no detector's state" in done.err
    assert (tmp_path / "first.jsonl").read_bytes() == before


def test_a_damaged_state_is_refused(tidings, ab, tmp_path):
    tidings("pattern", "compile", ab, "-o", "s")
    (tmp_path / "s").write_bytes((tmp_path / "s").read_bytes()[:-1])
    done = tidings("pattern", "detect", "--state", "s", "-e", "first.jsonl")
    assert (done.code, done.out) == (1, "")
    assert "damaged" in done.err


# In a process of its own -----------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_saves_what_was_taken(spawn, tidings, ab, tmp_path, number):
    process = spawn("pattern", "detect", "-p", ab, "-e", "-", "--save-state", "s", stdin=subprocess.PIPE)
    process.stdin.write(b'{"kind": "a", "time": 1}\n{"kind": "b", "time": 2}\n{"kind": "a", "time": 3}\n')
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["events"] == [0, 1]
    process.send_signal(number)
    assert process.wait(timeout=60) == 130
    assert process.stderr.read().decode() == "note: stopped after 3 events; go on with: --state s\n"
    write_lines(tmp_path / "rest.jsonl", parse_kinds("b@5"))
    assert list_reports(tidings("pattern", "detect", "--state", "s", "-e", "rest.jsonl")) == [("ab", [2, 0])]


def test_a_terminal_gets_a_table(spawn, ab, tmp_path):
    write_lines(tmp_path / "both.jsonl", parse_kinds("a@1 b@2"))
    ours, theirs = pty.openpty()
    process = spawn("pattern", "detect", "-p", ab, "-e", "both.jsonl", "-q", stdout=theirs)
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # how Linux says that the other end is closed
        while chunk := os.read(ours, 65536):
            shown += chunk
    os.close(ours)
    assert process.wait(timeout=60) == 0
    assert shown.decode().split("\r\n")[:2] == [
        "at                    pattern  events",
        "1970-01-01T00:00:02Z  ab       0, 1",
    ]


def test_ctrl_c_in_the_middle_of_a_batch_waits_for_its_end(tidings, ab, tmp_path, monkeypatch):
    batch = FILE_TUNING.batch_rows
    rows = parse_kinds(" ".join(f"c@{n}" for n in range(batch - 3)) + " a@5001 b@5002 a@5003 b@5004 a@5005 b@5006")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "all.parquet")
    detect_many = td.Detector.detect_many

    def interrupt(self, events, **options):
        os.kill(os.getpid(), signal.SIGINT)
        return detect_many(self, events, **options)

    with monkeypatch.context() as now:
        now.setattr(td.Detector, "detect_many", interrupt)
        done = tidings("pattern", "detect", "-p", ab, "-e", "all.parquet", "--event-id", "id", "--save-state", "s")
    assert done.code == 130
    assert list_reports(done) == [("ab", [batch - 3, batch - 2])]
    assert f"stopped after {batch:,} events" in done.err
    write_lines(tmp_path / "rest.jsonl", rows[batch:])
    later = [("ab", [batch - 1, batch]), ("ab", [batch + 1, batch + 2])]
    assert list_reports(tidings("pattern", "detect", "--state", "s", "-e", "rest.jsonl")) == later


def test_a_second_ctrl_c_is_obeyed_at_once_and_nothing_is_saved(tidings, ab, tmp_path, monkeypatch):
    def twice(self, events, **options):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(td.Detector, "detect_many", twice)
    before = signal.getsignal(signal.SIGINT)  # not always Python's own: shells let background jobs ignore it
    done = tidings("pattern", "detect", "-p", ab, "-e", "first.jsonl", "--save-state", "s")
    assert (done.code, done.err) == (130, "")
    assert not (tmp_path / "s").exists()
    assert signal.getsignal(signal.SIGINT) is before
