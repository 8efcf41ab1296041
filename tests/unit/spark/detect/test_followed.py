"""Patterns that follow a store are those of `td.Detector` to which the same is added, changed and removed."""

import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")
pytest.importorskip("sqlalchemy", reason="needs tidings[service]")

from tests.unit.spark.detect.followed_cases import FollowedStream, Subscribers
from tests.unit.spark.detect.pattern_cases import NAMES, PATTERN_TEXTS, START, at, disorder_rows, log

import tidings as td
from tidings.concepts import Vocabulary
from tidings.errors import TooLarge
from tidings.lang import render_pattern
from tidings.model.patterns import Mode
from tidings.spark.pipeline.run.pattern_reading import PatternReading

LATENESS = timedelta(seconds=4)
FEW_MATCHES = [written for written in PATTERN_TEXTS if written.mode is not Mode.ANY or len(written.pattern.steps()) < 3]
"""Without those of which a limit would choose the matches."""

PAIR = "a = kind = 'a' and key = $x\nb = kind = 'b' and key = $x\na ; b"
SILENT = "a = kind = 'a' and key = $x\nb = kind = 'b' and key = $x\na ; not b for 1 min"


class Replay:
    """A followed stream and a detector, to which the same happens between batches."""

    def __init__(self, stream, rng):
        self.stream, self.rng, self.wanted = stream, rng, {}
        self.detector, self.detections, self.newest = td.Detector(time="ts", lateness=LATENESS), Counter(), START

    def change(self):
        """Add or change a subscription, or remove one."""
        if self.wanted and self.rng.random() < 0.2:
            name = self.rng.choice(list(self.wanted))
            self.stream.subscribers.remove(name.removeprefix("o/"))
            del self.wanted[name]
        else:
            self.put(f"p{self.rng.randrange(40)}")

    def put(self, id):
        """Add a subscription, or change the one that is there."""
        written = self.rng.choice(FEW_MATCHES)
        text = render_pattern(written.pattern, "json")
        self.stream.subscribers.put(id, text, notation="json", mode=written.mode.value)
        self.wanted[f"o/{id}"] = replace(written, name=f"o/{id}")

    def take(self, rows):
        """Take the events of a batch, and the batch without events that follows."""
        self.claim()
        self.stream.take(rows, pieces=self.rng.choice((1, 3)))
        events = [dict(zip(NAMES, row, strict=True)) for row in rows]
        self._count(self.detector.detect_many(events))
        self.newest = max(self.newest, *(row[1] for row in rows))
        self._count(self.detector.on_time(self.newest - LATENESS))
        if self.rng.random() < 0.5:
            self.put(f"new{self.stream.batch}")  # it does not see what waits
        self.claim()
        self.stream.pass_time(self.newest - LATENESS)

    def end(self):
        """Let time pass to the newest event."""
        self.claim()
        self.stream.pass_time(self.newest)
        self._count(self.detector.on_time(self.newest))

    def claim(self):
        """Begin a batch, with the subscriptions as they are now."""
        self.stream.claim()
        for name in set(self.detector) - set(self.wanted):
            self.detector.remove(name)
        self.detector.add_many(self.wanted.values())  # those that are the same go on

    def _count(self, detections):
        self.detections.update((detection.pattern, detection.at, detection.events) for detection in detections)


@pytest.mark.parametrize(("seed", "documents"), [(1, False), (2, True), (3, True), (4, False)])
def test_patterns_that_come_change_and_go_find_what_a_detector_finds(seed, documents, tmp_path, monkeypatch):
    rng, arriving = random.Random(seed), disorder_rows(log(150, seed=seed), bound=4, seed=seed)
    replay = Replay(FollowedStream(Subscribers(), tmp_path, monkeypatch, documents=documents), rng)
    while arriving:
        for _ in range(rng.randrange(8)):
            replay.change()
        if rng.random() < 0.2:
            replay.stream.restart()
        size = rng.randrange(1, 25)
        replay.take(arriving[:size])
        arriving = arriving[size:]
    replay.end()
    assert replay.stream.matches() == replay.detections
    assert sum(replay.detections.values()) > 50
    assert not replay.stream.refused


@pytest.fixture
def stream(tmp_path, monkeypatch):
    return FollowedStream(Subscribers(), tmp_path, monkeypatch)


def list_matches(stream):
    """Return pattern and events of all matches."""
    return sorted((row["pattern"], row["events"]) for row in stream.rows if row["kind"] == "match")


def test_there_may_be_no_patterns_at_first_and_none_at_the_end(stream):
    stream.claim()
    stream.take([(1, at(0), "a", 1, None)])
    stream.subscribers.put("pair", PAIR)
    stream.claim()
    stream.take([(2, at(1), "b", 1, None), (3, at(2), "a", 1, None), (4, at(3), "b", 1, None)])
    stream.claim()
    stream.pass_time(at(3))
    stream.subscribers.remove("pair")
    stream.claim()
    stream.take([(5, at(4), "a", 1, None), (6, at(5), "b", 1, None)])
    stream.claim()
    stream.pass_time(at(9))
    assert list_matches(stream) == [("o/pair", [3, 4])]
    assert [row["seen"] for row in stream.rows if row["kind"] == "tally"] == [1, 3, 2]


def test_a_batch_that_runs_again_uses_the_patterns_that_it_claimed(stream):
    stream.subscribers.put("pair", PAIR)
    first = stream.claim()
    stream.subscribers.remove("pair")
    stream.subscribers.put("late", PAIR)
    stream.restart()
    assert stream.claim(batch=0).patterns == first.patterns
    stream.take([(1, at(0), "a", 1, None), (2, at(1), "b", 1, None)])
    stream.pass_time(at(1))
    assert set(stream.claim().patterns) == {"o/late"}
    assert list_matches(stream) == [("o/pair", [1, 2])]


def test_a_pattern_that_comes_back_has_forgotten_what_it_saw(stream):
    stream.subscribers.put("pair", PAIR)
    stream.claim()
    stream.take([(1, at(0), "a", 1, None)])
    stream.claim()
    stream.pass_time(at(0))
    stream.subscribers.set_status("pair", "paused")
    stream.claim()
    stream.subscribers.set_status("pair", "active")
    stream.claim()
    stream.take([(2, at(1), "b", 1, None)])
    stream.claim()
    stream.pass_time(at(1))
    assert list_matches(stream) == []


def test_a_text_that_only_looks_different_is_the_same_pattern(stream):
    stream.subscribers.put("pair", PAIR)
    stream.claim()
    stream.take([(1, at(0), "a", 1, None)])
    stream.subscribers.put("pair", PAIR.replace(" = $x", "=$x"), labels=("new",))
    number = stream.claim().number
    assert number == stream.claim().number == 1
    stream.take([(2, at(1), "b", 1, None)])
    stream.pass_time(at(1))
    assert list_matches(stream) == [("o/pair", [1, 2])]


def test_what_cannot_be_compiled_is_refused_and_disturbs_nobody(stream):
    many = "\n".join(f"f{number} = kind = '{number}'" for number in range(9))
    stream.subscribers.put("pair", PAIR)
    stream.subscribers.put("huge", many + "\n" + " and ".join(f"f{number}" for number in range(9)))
    stream.subscribers.put("broken", "a = kind = 'a'\na ; ; b")
    stream.subscribers.put("other", "{]", notation="json")
    assert set(stream.claim().patterns) == {"o/pair"}
    assert sorted(id for id, _ in stream.refused) == ["o/broken", "o/huge", "o/other"]
    assert "takes too long to compile" in dict(stream.refused)["o/huge"]
    stream.subscribers.put("pair", "a = kind = 'a'\na ; ; b")
    assert set(stream.claim().patterns) == set()  # the old one is not what its owner asks for


# Many at once -------------------------------------------------------------------------------------


@pytest.fixture
def slow_stream(tmp_path, monkeypatch):
    """A stream whose claims have time to read one pattern each."""
    return FollowedStream(Subscribers(), tmp_path, monkeypatch, seconds=0)


def test_a_claim_reads_what_it_has_time_for_and_owners_take_turns(slow_stream):
    for number in range(3):
        slow_stream.subscribers.put(f"p{number}", PAIR, owner="many")
    slow_stream.subscribers.put("p", SILENT, owner="few")
    in_force = [[*slow_stream.claim().patterns] for _ in range(5)]
    order = ["many/p0", "few/p", "many/p1", "many/p2"]
    assert in_force == [order[:1], order[:2], order[:3], order, order]
    assert not slow_stream.follower.is_behind


def test_what_waits_is_found_after_a_restart_and_what_is_in_force_goes_on(slow_stream):
    slow_stream.subscribers.put("pair", PAIR)
    slow_stream.claim()
    slow_stream.take([(1, at(0), "a", 1, None)])
    for number in range(3):
        slow_stream.subscribers.put(f"new{number}", PAIR, owner="many")
    assert len(slow_stream.claim().patterns) == 2
    slow_stream.restart()
    slow_stream.claim()
    slow_stream.subscribers.remove("new2", owner="many")
    assert [*slow_stream.claim().patterns] == ["o/pair", "many/new0", "many/new1"]
    slow_stream.take([(2, at(1), "b", 1, None)])
    slow_stream.pass_time(at(1))
    assert list_matches(slow_stream) == [("o/pair", [1, 2])]


def test_what_changed_and_waits_is_not_in_force_as_it_was(slow_stream):
    for id in ("first", "second"):
        slow_stream.subscribers.put(id, PAIR)
        slow_stream.claim()
    for id in ("first", "second"):
        slow_stream.subscribers.put(id, SILENT)
    assert [*slow_stream.claim().patterns] == ["o/first"]
    slow_stream.subscribers.put("first", PAIR)  # while the other still waits
    slow_stream.subscribers.limit_owner("o", "kind != 'x'")
    assert [*slow_stream.claim().patterns] == ["o/second"]
    slow_stream.restart()
    assert [*slow_stream.claim().patterns] == ["o/second", "o/first"]
    assert all("x" in str(pattern.tree) for pattern in slow_stream.claim().patterns.values())


def test_a_start_does_not_read_again_what_is_in_force(slow_stream, monkeypatch):
    for number in range(3):
        slow_stream.subscribers.put(f"p{number}", PAIR)
        before = slow_stream.claim()
    slow_stream.restart()
    monkeypatch.setattr(PatternReading, "read", lambda *_: pytest.fail("it is as it was"))
    assert slow_stream.claim() == before


def test_with_another_vocabulary_what_is_in_force_is_read_again_and_goes_on_meanwhile(slow_stream):
    for id in ("p0", "p1"):
        slow_stream.subscribers.put(id, PAIR)
        slow_stream.claim()
    slow_stream.vocabulary = Vocabulary(td.Schema({"key": "text", "kind": "number"}))
    slow_stream.restart()
    assert len(slow_stream.claim().patterns) == 1
    assert len(slow_stream.refused) == 1
    assert len(slow_stream.claim().patterns) == 0


def test_a_pattern_that_workers_could_not_read_is_refused_before_they_do(stream):
    deep = "kind = 'a'"
    for level in range(50):  # the bound of its owner is one level more than its JSON may have
        deep = f"(x{level} = 1 or y = 2 and {deep})"
    stream.subscribers.put("pair", PAIR, owner="free")
    stream.subscribers.put("deep", f"a = {deep}\nb = kind = 'b'\na ; b")
    stream.subscribers.limit_owner("o", "other >= 2 and (key = 1 or key = 2)")
    assert set(stream.claim().patterns) == {"free/pair"}
    assert [id for id, _ in stream.refused] == ["o/deep"]
    stream.take([(1, at(0), "a", 1, None), (2, at(1), "b", 1, None)])
    stream.pass_time(at(1))
    assert list_matches(stream) == [("free/pair", [1, 2])]


def test_a_pattern_of_a_version_that_cannot_be_read_disturbs_nobody(stream):
    stream.subscribers.put("pair", PAIR)
    version = stream.claim()
    broken = replace(version.patterns["o/pair"], name="o/broken", tree={"filters": [], "pattern": {"step": "?"}})
    stream.follower._version = stream.versions.write(version, [broken])  # noqa: SLF001 - as an older program might
    stream.claim()
    stream.take([(1, at(0), "a", 1, None), (2, at(1), "b", 1, None)])
    stream.pass_time(at(1))
    assert list_matches(stream) == [("o/pair", [1, 2])]


def test_a_pattern_that_holds_too_many_partial_matches_is_paused_and_the_others_go_on(tmp_path, monkeypatch):
    stream = FollowedStream(Subscribers(), tmp_path, monkeypatch, most_partials=20)
    stream.subscribers.put("greedy", "a = kind = 'a' and id = $x\nb = kind = 'b' and id = $x\na ; b")
    stream.subscribers.put("bounded", "a = kind = 'a' and id = $x\nb = kind = 'b' and id = $x\na ; b within 1 s")
    stream.subscribers.put("pair", PAIR)
    stream.claim()
    stream.take([(number, at(number), "a", 1, None) for number in range(100)])
    stream.pass_time(at(99))
    assert {row["pattern"] for row in stream.rows if row["kind"] == "heavy"} == {"o/greedy"}
    stream.follower.pause("o/greedy", TooLarge("it holds too many partial matches"))
    assert set(stream.claim().patterns) == {"o/bounded", "o/pair"}
    assert stream.subscribers.store.subscriptions.get("o", "greedy").status == "paused"
    actors = {record.actor for record in stream.subscribers.store.audit.list(owner="o") if record.action == "paused"}
    assert actors == {"pipeline: it holds too many partial matches"}  # whose it is may read why
    stream.take([(100, at(100), "b", 1, None)])
    stream.pass_time(at(100))
    assert list_matches(stream) == [("o/pair", [99, 100])]


def test_what_bounds_an_owner_bounds_each_filter_of_their_patterns(stream):
    stream.subscribers.put("pair", PAIR)
    stream.subscribers.put("pair", PAIR, owner="free")
    stream.subscribers.limit_owner("o", "other >= 2")
    stream.claim()
    stream.take([(1, at(0), "a", 1, 2.0), (2, at(1), "b", 1, 1.0), (3, at(2), "b", 1, 2.0)])
    stream.pass_time(at(2))
    assert list_matches(stream) == [("free/pair", [1, 2]), ("o/pair", [1, 3])]


def test_an_event_of_the_future_waits_for_its_time_and_makes_no_other_late(stream):
    stream.subscribers.put("any", "any = kind != ''\nany")
    stream.claim()
    stream.take([(1, at(55), "a", 1, None), (2, at(1), "a", 1, None)], clock=at(3))
    stream.subscribers.put("pair", PAIR)  # it begins after what moved time, not after what waits
    assert stream.claim().patterns["o/pair"].since == round(at(3).timestamp() * 1e6)
    stream.pass_time(at(3))
    stream.take([(3, at(4), "a", 1, None), (4, at(5), "b", 1, None)], clock=at(6))
    stream.claim()
    stream.pass_time(at(5))
    singles = [("o/any", [id]) for id in (2, 3, 4)]
    assert list_matches(stream) == [*singles, ("o/pair", [3, 4])]
    assert {row["at"] for row in stream.rows if row["kind"] == "due"} == {at(1), at(4), at(55)}
    stream.pass_time(at(55))
    assert ("o/any", [1]) in list_matches(stream)
    assert "late" not in {row["kind"] for row in stream.rows}


def test_documents_whose_values_are_of_several_kinds_keep_their_keys_apart(tmp_path, monkeypatch):
    stream = FollowedStream(Subscribers(), tmp_path, monkeypatch, documents=True, buckets=1)
    stream.subscribers.put("pair", PAIR)
    stream.claim()
    for number, (kind, key) in enumerate([("a", 17), ("a", "17"), ("a", [1]), ("b", "17"), ("b", 17.0), ("b", {})]):
        stream.take_document({"id": str(number), "kind": kind, "key": key, "data_base64": "AA=="}, at(number))
    stream.pass_time(at(9))
    rows = [(row["key"], row["events"]) for row in stream.rows if row["kind"] == "match"]
    assert sorted(rows) == [("17", ["0", "4"]), ("17", ["1", "3"])]


def test_an_event_that_cannot_be_read_is_a_dead_letter_with_its_text(tmp_path, monkeypatch):
    schema = td.Schema({"key": "number"}, closed=False)
    stream = FollowedStream(Subscribers(), tmp_path, monkeypatch, documents=True, schema=schema)
    stream.subscribers.put("pair", PAIR)
    stream.claim()
    stream.take_document({"id": "1", "kind": "a", "key": "many"}, at(0))
    (letter,) = [row for row in stream.rows if row["kind"] == "letter"]
    assert (letter["event"], letter["row"]) == ("1", '{"id": "1", "kind": "a", "key": "many"}')
    assert "`key`" in letter["reason"]


def test_a_forecast_learns_until_a_model_knows_its_pattern_and_then_forecasts(tmp_path, monkeypatch):
    path, history = tmp_path / "patterns.model", [dict(zip(NAMES, row, strict=True)) for row in log(300, seed=5)]
    stream = FollowedStream(Subscribers(), tmp_path / "versions", monkeypatch, model=path)
    stream.subscribers.put("soon", PAIR, kind="forecast", horizon="4 own events", threshold=0.01, status="learning")
    stream.subscribers.put("pair", PAIR)
    watch = td.Detector(time="ts")
    watch.add("pair", PAIR)
    rows = log(60, seed=6)
    stream.claim()
    stream.take(rows[:30])
    stream.pass_time(rows[29][1])
    assert {row["kind"] for row in stream.rows} <= {"match", "tally", "due"}
    td.train(watch, history).save(path)
    stream.claim()
    stream.take(rows[30:])
    stream.pass_time(rows[-1][1])
    forecasts = [row for row in stream.rows if row["kind"] == "forecast"]
    assert forecasts
    assert {row["pattern"] for row in forecasts} == {"o/soon"}
    assert {row["horizon"] for row in forecasts} == {"4 own events"}
    assert {pattern for pattern, _ in list_matches(stream)} == {"o/pair"}
    assert stream.subscribers.store.subscriptions.get("o", "soon").status == "active"
    newest = stream.versions.find_newest()
    for written in ("learning", "active"):  # an edit that changes nothing: who checks it may know no model
        stream.subscribers.put(
            "soon", PAIR, kind="forecast", horizon="4 own events", threshold=0.01, name=written, status=written
        )
        stream.claim()
        assert stream.subscribers.store.subscriptions.get("o", "soon").status == "active"
    stream.subscribers.limit_owner("o", "v > 0")  # which makes it a pattern that nobody has counted
    stream.claim()
    assert stream.subscribers.store.subscriptions.get("o", "soon").status == "learning"
    stream.subscribers.put("soon", PAIR, kind="forecast", horizon="4 own events", threshold=0.01, status="active")
    stream.claim()
    assert stream.subscribers.store.subscriptions.get("o", "soon").status == "learning"
    assert stream.versions.find_newest() == newest + 1


def test_a_forecast_of_a_bounded_owner_shows_no_event_beyond_the_bound_and_none_of_it_is_lost_there(
    tmp_path, monkeypatch
):
    path, text = tmp_path / "patterns.model", "a = kind = 'a'\na ; a2:a ; a3:a"
    stream = FollowedStream(Subscribers(), tmp_path / "versions", monkeypatch, model=path)
    stream.subscribers.limit_owner("shop", "key = 1")
    for owner in ("shop", "free"):
        stream.subscribers.put("soon", text, owner=owner, kind="forecast", horizon="10 own events", threshold=0.1)
    watch = td.Detector(time="ts")
    watch.add_many(pattern.to_written() for pattern in stream.claim().patterns.values())
    td.train(watch, [{"ts": at(number), "kind": "a", "key": number % 4 // 2} for number in range(200)]).save(path)
    stream.claim()
    stream.take([(number, at(number), *row, None) for number, row in enumerate([("b", 1), ("a", 2), ("a", 1)])])
    stream.pass_time(at(9))
    forecasts = {(row["pattern"], *row["events"]) for row in stream.rows if row["kind"] == "forecast"}
    assert forecasts == {("free/soon", 1), ("shop/soon", 2)}


def test_an_event_that_comes_again_counts_once_also_after_a_restart(tmp_path, monkeypatch):
    stream = FollowedStream(Subscribers(), tmp_path, monkeypatch, within=timedelta(hours=1))
    stream.subscribers.put("pair", "a = kind = 'a'\na ; a2:a")
    first, second = (1, at(0), "a", 1, None), (2, at(1), "a", 1, None)
    stream.claim(now=0)
    stream.take([first, first], pieces=2)
    stream.claim(now=60)
    stream.take([first])
    stream.restart()
    stream.claim(now=120)
    stream.take([first, second])
    stream.claim(now=4000)
    stream.take([(2, at(2), "a", 1, None)])  # an hour has passed: its id is forgotten
    stream.claim(now=4001)
    stream.pass_time(at(2))
    assert list_matches(stream) == [("o/pair", [1, 2])]
