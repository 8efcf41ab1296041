"""No pattern changes what another one reports, or which events are bad: any set of them, with others and without.

Patterns of one detector share a matcher, the numbers of values, and machines; events hold what some of them cannot
read, what no variable takes, and times that are none. What is asserted is the law of `docs/language.md`, section 9.
"""

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

import tidings as td
from tidings.model.patterns import Mode
from tidings.testing.strategies.patterns import patterns, streams

LIMIT = 100_000
MODES = st.sampled_from(list(Mode))
PATTERNS = st.one_of(
    patterns(mixed=True, most_steps=3),
    patterns(mixed=True, most_steps=3, variables=True),
    patterns(mixed=True, most_steps=3, variables="joins"),
)
SETS = st.lists(st.tuples(PATTERNS, MODES), min_size=1, max_size=3)
ODD = streams(odd=True)
BAD = st.sampled_from([None, 5, "text", ["kind", "a"]])
DECLARED = [
    None,
    td.Schema({"key": "number"}, closed=False),
    td.Schema({"kind": "text", "other": "several text"}, closed=False),
    td.Schema({"unasked": "number"}, closed=False),
]
UNASKED = st.fixed_dictionaries({}, optional={"unasked": st.sampled_from([1, "x", [1]])})


def watch_patterns(kind, pairs, *, schema=None, **settings):
    """Return a detector of patterns called by a letter and their places; those that a schema refuses stay out."""
    detector = td.Detector(schema=schema, **settings)
    for place, (pattern, mode) in enumerate(pairs):
        try:
            detector.add(f"{kind}{place}", pattern, mode=mode, limit=LIMIT if mode == "any" else None)
        except td.TidingsError:
            assert schema is not None
    return detector


def list_reports(detections, kind="p"):
    """Return what the patterns of one letter report, in words that can be compared."""
    return sorted(
        (detection.pattern, detection.at, detection.events, json.dumps(detection.bindings, default=str))
        for detection in detections
        if detection.pattern.startswith(kind)
    )


def collect_outcome(detector, batches):
    """Return what is reported, late and bad, batch by batch, and at the end of time."""
    reports = [detect_batch(detector, batch) for batch in batches]
    return [*reports, list_reports(detector.on_time(datetime(2000, 1, 1, tzinfo=UTC)))]


def detect_batch(detector, batch):
    """Return what is reported, late and bad of a batch."""
    detections = detector.detect_many(batch, on_error="collect")
    return list_reports(detections), detections.late, detections.dead_letters


def cut(events, at):
    return [events[:at], events[at:]]


@given(SETS, SETS, ODD, st.integers(0, 8), st.sampled_from(DECLARED), st.data())
def test_other_patterns_change_nothing(ours, others, events, at, schema, data):
    events = [event | data.draw(UNASKED) for event in events]
    events += data.draw(st.lists(BAD, max_size=1))
    alone, beside = watch_patterns("p", ours, schema=schema), watch_patterns("o", others, schema=schema)
    for pattern in alone.patterns:
        beside.add(
            pattern.name, pattern.pattern, mode=pattern.mode, limit=pattern.limit if pattern.mode == "any" else None
        )
    assert collect_outcome(alone, cut(events, at)) == collect_outcome(beside, cut(events, at))


@examples(50)
@given(SETS, SETS, ODD, st.integers(0, 8), st.sampled_from([None, "1 s", "3 s"]))
def test_patterns_that_come_and_go_change_nothing(ours, others, events, at, lateness):
    alone, beside = (watch_patterns("p", ours, lateness=lateness) for _ in range(2))
    first, second, third = events[:at], events[at : at + 3], events[at + 3 :]
    reports = {detector: [detect_batch(detector, first)] for detector in (alone, beside)}
    for place, (pattern, mode) in enumerate(others):
        beside.add(f"o{place}", pattern, mode=mode, limit=LIMIT if mode == "any" else None)
    for detector in (alone, beside):
        reports[detector].append(detect_batch(detector, second))
    for name in [name for name in beside if name.startswith("o")]:
        beside.remove(name)
    for detector in (alone, beside):
        reports[detector] += collect_outcome(detector, [third])
    assert reports[alone] == reports[beside]


@examples(50)
@given(SETS, SETS, streams(), st.sampled_from(["text", "list", "none"]))
def test_other_patterns_change_nothing_in_tables(ours, others, events, form):
    start = datetime(1970, 1, 1, tzinfo=UTC)
    table = pa.table(
        {
            "id": pa.array(range(len(events)), pa.int64()),
            "time": pa.array(
                [None if n % 3 == 2 else start + timedelta(seconds=n) for n in range(len(events))],
                pa.timestamp("us", "UTC"),
            ),
            "kind": pa.array([event["kind"] for event in events], pa.string()),
            "other": pa.array([str(event.get("other")) for event in events], pa.string()),
        }
    )
    if form != "none":
        keys = [event.get("key") for event in events]
        column = pa.array([None if key is None else str(key) for key in keys], pa.string())
        lists = [None if key is None else [1] * (1 + isinstance(key, str)) for key in keys]
        table = table.append_column("key", column if form == "text" else pa.array(lists, pa.list_(pa.int64())))
    alone, beside = watch_patterns("p", ours), watch_patterns("o", others)
    for pattern in alone.patterns:
        beside.add(
            pattern.name, pattern.pattern, mode=pattern.mode, limit=pattern.limit if pattern.mode == "any" else None
        )
    rows = watch_patterns("p", ours)
    first = collect_outcome(alone, [table])
    assert first == collect_outcome(beside, [table])
    assert first == collect_outcome(rows, [table.to_pylist()])


# Named cases ----------------------------------------------------------------------------------------

AB = "a = kind = 'a'\nb = kind = 'b'\na ; b"
INTRUDERS = {
    "a list under a variable": "a = kind = 'a' and ips = $x\nb = kind = 'b' and ips = $x\na ; b",
    "a record under a variable": "a = where = $x\nb = where = $x\na ; b",
    "times": "a = kind = 'a'\nb = kind = 'b'\na ; b within 5 s",
    "another kind": "a = kind > 5\na",
    "another kind under a variable": "a = kind > 5 and kind = $x\na ; b:a",
    "a truth": "a = kind = true\na",
}
EVENTS = [
    {"id": 0, "kind": "a", "ips": ["10.0.0.1", "10.0.0.2"], "where": {"room": 5}},
    {"id": 1, "kind": "b", "ips": {"v4": "10.0.0.1"}, "where": [{"room": 5}, {"room": 6}], "time": "some day"},
]


@pytest.mark.parametrize("text", INTRUDERS.values(), ids=INTRUDERS)
def test_a_pattern_that_cannot_read_an_event_harms_nobody(text):
    detector = td.Detector()
    detector.add("ours", AB)
    detector.add("eve", text)
    detections = detector.detect_many(EVENTS)
    assert [(detection.pattern, detection.events) for detection in detections if detection.pattern == "ours"] == [
        ("ours", (0, 1))
    ]
    assert not detections.dead_letters
    assert any("eve" in mismatch.patterns for mismatch in detector.mismatches()), "and it is told why nothing comes"


def test_a_pattern_that_asks_for_records_harms_nobody():
    detector = td.Detector()
    detector.add("ours", AB)
    detector.add("eve", "a = kind has (n > 5)\na")
    assert [detection.events for detection in detector.detect_many(EVENTS)] == [(0, 1)]


def test_variables_of_one_attribute_beside_filters_of_every_kind():
    detector = td.Detector()
    for name, text in {"number": "k > 0", "text": "k like '*'", "truth": "k = true", "any": "k exists"}.items():
        detector.add(name, f"a = {text} and k = $x\na ; b:a", mode="any")
    values = [1, "1", True, 1.0, "1", True, [1, 2], "x", None]
    detections = detector.detect_many([{"id": place, "time": place, "k": value} for place, value in enumerate(values)])
    pairs = {name: [detection.events for detection in detections if detection.pattern == name] for name in detector}
    assert pairs == {
        "number": [(0, 3), (1, 4)],  # text that is a number satisfies `k > 0`, and joins its like alone
        "text": [(1, 4)],
        "truth": [(2, 5)],
        "any": [(0, 3), (1, 4), (2, 5)],
    }
