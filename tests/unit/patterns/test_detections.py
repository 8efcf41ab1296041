"""What a detector reports, read one by one and as a table."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pyarrow as pa
import pytest

import tidings as td

AB = "a = kind = 'a'\nb = kind = 'b'\na ; b"
KEYED = (
    "a = kind = 'a' and k = $x\nb = kind = 'b' and k = $x and j = $y\nc = kind = 'c' and k = $x and j = $y\na ; b ; c"
)
START = datetime(1970, 1, 1, tzinfo=UTC)


def watching(**patterns):
    made = td.Detector()
    for name, (text, mode) in patterns.items():
        made.add(name, text, mode=mode)
    return made


def letters(text, **more):
    return [{"id": place, "time": place, "kind": kind} | more for place, kind in enumerate(text)]


def test_detections_come_in_the_order_of_completion_and_then_of_patterns():
    detector = watching(q=(KEYED, "any"), p=(AB, "overlap"), r=("b = kind = 'b'\nb", "restart"))
    detections = detector.detect_many(letters("abcb", k=1, j=2))
    assert [(detection.pattern, detection.events) for detection in detections] == [
        ("p", (0, 1)),
        ("r", (1,)),
        ("q", (0, 1, 2)),
        ("p", (0, 3)),
        ("r", (3,)),
    ]
    assert detections.by_pattern() == {"q": 1, "p": 2, "r": 2}
    assert len(detections) == 5


def test_a_deadline_comes_before_the_events_of_its_time():
    detector = watching(
        p=("b = kind = 'b'\nb", "restart"), q=("a = kind = 'a'\nz = kind = 'z'\na ; not z for 1 s", "next")
    )
    assert [detection.pattern for detection in detector.detect_many(letters("ab"))] == ["q", "p"]


def test_a_table_says_what_the_detections_say():
    detections = watching(p=(AB, "any"), q=(KEYED, "any")).detect_many(letters("aabc", k="x", j=5))
    table = detections.to_arrow()
    assert table.column_names == ["pattern", "at", "events", "bindings"]
    for row, detection in zip(table.to_pylist(), detections, strict=True):
        assert (row["pattern"], row["at"], tuple(row["events"])) == (detection.pattern, detection.at, detection.events)
        assert dict(row["bindings"]) == {name: str(value) for name, value in detection.bindings.items()}


@pytest.mark.parametrize("ids", [[1, "x"], [UUID(int=1), UUID(int=2)], [1, 2.5], [None, "x"], [(1,), "x"]])
def test_a_table_takes_ids_of_all_kinds(ids):
    events = [event | {"id": id_} for event, id_ in zip(letters("ab"), ids, strict=True)]
    [row] = watching(p=(AB, "any")).detect_many(events).to_arrow().to_pylist()
    assert len(row["events"]) == 2


def test_nothing_found_is_an_empty_table():
    for detection in (td.Detector().detect_many([]), watching(p=(AB, "any")).detect_many(letters("b"))):
        assert (len(detection), list(detection), detection.by_pattern(), detection.to_arrow().num_rows) == (
            0,
            [],
            {},
            0,
        )


def test_detections_stay_readable_when_the_detector_goes_on_and_forgets():
    detector = td.Detector(keep=["k"])
    detector.add("p", KEYED.replace("\na ; b ; c", "\na ; b ; c within 9 s"), mode="next")
    early = detector.detect_many(letters("abc", k="x", j=5))
    numbers = range(150_000)
    kinds = pa.array(["a"]).take(pa.array([0] * len(numbers)))
    table = pa.table(
        {"id": numbers, "time": [100 + n // 50 for n in numbers], "kind": kinds, "k": numbers, "j": numbers}
    )
    detector.detect_many(table)
    assert len(detector.run.archive) < 100_000
    [detection] = early
    assert (detection.events, detection.bindings, detection.fields) == (
        (0, 1, 2),
        {"x": "x", "y": 5},
        ({"k": "x"},) * 3,
    )


def test_many_reports_of_one_event_are_all_there():
    detections = watching(p=("a = kind = 'a'\nb = kind = 'b'\na ; s:a ; b", "next"), q=(AB, "next")).detect_many(
        letters("a" * 3000 + "b")
    )
    assert detections.by_pattern() == {"p": 2999, "q": 3000}
    assert {detection.at for detection in detections} == {START + timedelta(seconds=3000)}


def test_every_embedding_up_to_the_limit_is_there():
    detector = td.Detector()
    detector.add("p", "a = kind = 'a'\na{2,}", mode="any", limit=100_000)
    detections = list(detector.detect_many(letters("a" * 15)))
    assert len(detections) == len({detection.events for detection in detections}) == 2**15 - 15 - 1


def test_a_long_match_is_told_in_full():
    [detection] = watching(p=("a = kind = 'a'\nb = kind = 'b'\na{300,300} ; b", "restart")).detect_many(
        letters("a" * 300 + "b")
    )
    assert detection.events == tuple(range(301))


def test_a_bucket_calls_patterns_by_their_places_whether_they_ask_for_times_or_not():
    watch = td.Detector()
    text = "a = kind = 'a' and k = $x\nb = kind = 'b' and k = $x\na ; b"
    for name, end in {"plain": "", "timed": " within 5 s", "silent": " ; not b for 5 s"}.items():
        watch.add(name, text + end)
    rows = [{"id": n, "time": n, "kind": kind, "k": 1} for n, kind in enumerate("ab")]
    events, _ = watch.compile().reader.read(rows, watch.run.value_numbers, 0)
    completions = watch.run.advance(events, 20_000_000)
    assert [list(watch)[place] for place in completions.patterns.tolist()] == ["plain", "timed", "silent"]
