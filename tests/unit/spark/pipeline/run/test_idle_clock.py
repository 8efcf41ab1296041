"""Time on an idle stream goes on from the newest event, by the clock, and only where something is due."""

import json
import time
from datetime import timedelta

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tidings.spark.pipeline.run import idle_clock
from tidings.spark.pipeline.run.idle_clock import IdleClock

SECOND = 1_000_000


class Hands:
    """A clock that is set by hand, in seconds."""

    def __init__(self, now):
        self.now = now

    def __call__(self):
        return self.now


def open_clock(folder, hands, **changes):
    settings = {"idle": timedelta(seconds=5), "lateness": timedelta(0), **changes}
    return IdleClock(folder, clock=hands, **settings)


def list_ticks(folder):
    """Return the times of the ticks, in seconds."""
    return [json.loads(path.read_text())["at"] / SECOND for path in sorted((folder / "ticks").glob("*.json"))]


def test_a_tick_is_as_late_as_the_newest_event_and_what_has_passed_since_but_for_the_idle_time(tmp_path):
    hands = Hands(1000.0)
    clock = open_clock(tmp_path, hands)
    clock.note_batch(0, 900 * SECOND, [])  # it came a hundred seconds after it happened
    clock.note_batch(1, None, [903 * SECOND])
    for hands.now in (1001.0, 1004.9, 1005.0, 1007.9):
        clock.advance(is_waiting=hands.now > 1001)
    assert list_ticks(tmp_path) == []  # idle for six seconds, but nothing is due at 902.9
    hands.now = 1008.0
    clock.advance(is_waiting=True)
    clock.advance(is_waiting=True)
    assert list_ticks(tmp_path) == [903.0]


def test_without_anything_due_it_never_ticks(tmp_path):
    hands = Hands(1000.0)
    clock = open_clock(tmp_path, hands)
    clock.note_batch(0, 900 * SECOND, [890 * SECOND])  # the watermark has passed it
    hands.now = 5000.0
    clock.advance(is_waiting=True)
    assert list_ticks(tmp_path) == []


def test_lateness_is_waited_for_too(tmp_path):
    hands = Hands(1000.0)
    clock = open_clock(tmp_path, hands, lateness=timedelta(seconds=10))
    clock.note_batch(0, 900 * SECOND, [900 * SECOND])  # the event itself waits for its turn
    hands.now = 1014.9
    clock.advance(is_waiting=True)
    assert list_ticks(tmp_path) == []
    hands.now = 1015.0
    clock.advance(is_waiting=True)
    assert list_ticks(tmp_path) == [910.0]


def test_events_begin_the_wait_anew(tmp_path):
    hands = Hands(1000.0)
    clock = open_clock(tmp_path, hands)
    clock.note_batch(0, 900 * SECOND, [901 * SECOND])
    for hands.now in (1004.0, 1008.9):
        clock.advance(is_waiting=hands.now > 1004)
    assert list_ticks(tmp_path) == []
    clock.note_batch(1, 907 * SECOND, [908 * SECOND])
    hands.now = 1009.0
    clock.advance(is_waiting=False)
    hands.now = 1015.0
    clock.advance(is_waiting=True)
    assert list_ticks(tmp_path) == [908.1]  # 907 s when the clock was at 1008.9


def test_what_is_due_is_remembered_over_a_restart_and_the_time_of_it_counts(tmp_path):
    hands = Hands(1000.0)
    clock = open_clock(tmp_path, hands)
    clock.note_batch(0, 900 * SECOND, [960 * SECOND])
    hands.now = 9000.0
    again = open_clock(tmp_path, hands)
    assert again.newest == 900 * SECOND
    again.advance(is_waiting=True)
    assert list_ticks(tmp_path) == []  # it has only just begun to wait
    hands.now = 9005.0
    again.advance(is_waiting=True)
    assert list_ticks(tmp_path) == [8900.0]


def test_a_clock_that_was_set_back_while_the_pipeline_was_away_stops_no_tick(tmp_path):
    open_clock(tmp_path, Hands(9000.0)).note_batch(0, 900 * SECOND, [905 * SECOND])
    hands = Hands(1000.0)
    again = open_clock(tmp_path, hands)
    hands.now = 1010.0
    again.advance(is_waiting=True)
    assert list_ticks(tmp_path) == [905.0]  # ten seconds went by that can be known of


def test_a_machine_whose_clock_is_set_moves_no_watermark_while_the_pipeline_runs(tmp_path, monkeypatch):
    """A watermark that was once in 2099 never comes back: all events of everybody would be late for patterns."""
    monkeypatch.setattr(idle_clock, "_read_uptime", uptime := Hands(50.0))
    monkeypatch.setattr(time, "time", machine := Hands(1000.0))
    clock = IdleClock(tmp_path, idle=timedelta(seconds=5), lateness=timedelta(0))
    clock.note_batch(0, 1000 * SECOND, [1003 * SECOND])
    uptime.now, machine.now = 60.0, 4_070_908_800.0
    clock.advance(is_waiting=True)
    assert list_ticks(tmp_path) == [1005.0]


def test_what_is_due_later_is_remembered_once_however_often_it_is_said(tmp_path):
    clock = open_clock(tmp_path, Hands(1000.0))
    for batch in range(5):
        clock.note_batch(batch, (900 + batch) * SECOND, [960 * SECOND, 970 * SECOND])
    assert json.loads((tmp_path / "clock.json").read_text())["due"] == [960 * SECOND, 970 * SECOND]


def test_a_batch_may_be_begun_without_time_passing(tmp_path):
    hands = Hands(1000.0)
    clock = open_clock(tmp_path, hands, idle=None)
    clock.note_batch(0, 900 * SECOND, [])
    for hands.now, is_waiting in ((1001.0, False), (1001.5, True), (1002.0, True), (1002.5, True)):
        clock.begin_batch(is_waiting=is_waiting)
    assert list_ticks(tmp_path) == [0.0, 0.0]


def test_without_an_idle_time_it_never_ticks(tmp_path):
    hands = Hands(1000.0)
    clock = open_clock(tmp_path, hands, idle=None)
    clock.note_batch(0, 900 * SECOND, [901 * SECOND])
    hands.now = 9000.0
    clock.advance(is_waiting=True)
    assert list_ticks(tmp_path) == []
