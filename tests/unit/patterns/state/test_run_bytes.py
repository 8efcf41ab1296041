"""States as bytes: every kind of id and value comes back as it was, and damage is told."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

import tidings as td
from tidings.errors import StateError
from tidings.patterns.state.graph_bytes import pack_state, unpack_state
from tidings.patterns.state.run_bytes import from_plain, run_from_bytes, run_to_bytes, to_plain

KEYED = "a = kind = 'a' and k = $x\nb = kind = 'b' and k = $x\na ; b"
NOW = datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=UTC).replace(tzinfo=None)
IDS = [0, -5, 2**80, "text", "", 1.5, float("inf"), True, b"\x00\xff", UUID(int=5), Decimal("1.50"), NOW.date()]
IDS += [NOW, NOW.replace(tzinfo=UTC), time(3, 4), timedelta(days=-1, microseconds=1), (1, ("a", 2.5)), [1, [2]]]
IDS += [{"float": 1, 2: [None]}]


def detector_of(text=KEYED, **options):
    made = td.Detector(**options)
    made.add("p", text, mode="next")
    return made


@pytest.mark.parametrize("id_", IDS, ids=repr)
def test_ids_of_all_kinds_come_back(id_):
    detector = detector_of(keep=["note"])
    detector.on_event({"id": id_, "time": 0, "kind": "a", "k": 1, "note": id_})
    [detection] = td.Detector.resume(detector.snapshot()).on_event({"id": 9, "time": 1, "kind": "b", "k": 1})
    assert detection.events == (id_, 9)
    assert type(detection.events[0]) is type(id_)
    assert detection.fields == ({"note": id_}, {"note": None})


KEYS = [0, 2**70, "text", 1.5, True, Decimal("1.50"), NOW, NOW.replace(tzinfo=UTC), date(2020, 1, 1)]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_keys_of_all_kinds_come_back(key):
    detector = detector_of()
    detector.on_event({"id": 0, "time": 0, "kind": "a", "k": key})
    [detection] = td.Detector.resume(detector.snapshot()).on_event({"id": 1, "time": 1, "kind": "b", "k": key})
    assert detection.bindings == {"x": key}
    assert type(detection.bindings["x"]) is type(key)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False) | st.datetimes() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(plain)
def test_a_value_in_plain_form_comes_back(value):
    assert from_plain(to_plain(value)) == value


def test_what_has_no_form_is_kept_as_text():
    assert from_plain(to_plain(1 + 2j)) == "(1+2j)"


def snapshot():
    detector = detector_of(lateness="1 s")
    detector.detect_many([{"id": n, "time": n, "kind": "a", "k": n} for n in range(3)])
    return detector.snapshot()


@given(st.integers(0, 10**9), st.integers(1, 255))
@examples(300)
def test_a_damaged_state_is_refused(place, change):
    state = bytearray(snapshot())
    state[place % len(state)] ^= change
    with pytest.raises(StateError):
        td.Detector.resume(bytes(state))


@given(st.integers(0, 10**9))
def test_a_state_that_was_cut_short_is_refused(length):
    state = snapshot()
    with pytest.raises(StateError):
        td.Detector.resume(state[: length % len(state)])


@pytest.mark.parametrize("other", [b"", b"tidings-state-1\n", b"PK\x03\x04", None, "text", 5])
def test_what_is_no_state_is_refused(other):
    with pytest.raises(StateError):
        td.Detector.resume(other)


def test_where_a_detector_stands_is_not_a_detector():
    with pytest.raises(StateError, match="the state of a stream, not of a detector"):
        td.Detector.resume(run_to_bytes(detector_of().run))


def test_a_state_goes_on_among_other_patterns():
    first, second = td.Detector(), td.Detector()
    first.add("one", KEYED)
    first.add("gone", "c = kind = 'c'\nd = kind = 'd'\nc ; d")
    second.add("new", "a = kind = 'a'\ne = kind = 'e'\na ; e")
    second.add("one", KEYED)
    first.detect_many([{"id": 0, "time": 0, "kind": "a", "k": 1}, {"id": 1, "time": 0, "kind": "c"}])
    forked = second.fork()
    run_from_bytes(forked.run, run_to_bytes(first.run))
    detections = forked.detect_many([{"id": 2 + n, "time": 1, "kind": kind, "k": 1} for n, kind in enumerate("bde")])
    assert [(detection.pattern, detection.events) for detection in detections] == [("one", (0, 2))]


def test_settings_and_surroundings_come_back():
    schema = td.Schema({"kind": "text", "k": "text"})
    options = {"time": "ts", "event_id": "n", "keep": ["k"], "lateness": "3 s", "partials": 7}
    detector = detector_of(schema=schema, **options)
    detector.add("all", "a = kind = 'a'\na ; s:a", mode="any", limit=3)
    other = td.Detector.resume(detector.snapshot())
    for name in ("time", "event_id", "keep", "lateness", "partials"):
        assert getattr(other, name) == getattr(detector, name)
    assert [(pattern.name, pattern.mode, pattern.limit) for pattern in other.patterns] == [
        (pattern.name, pattern.mode, pattern.limit) for pattern in detector.patterns
    ]
    assert other.vocabulary.schema == schema
    assert other.snapshot() == detector.snapshot()


def test_a_state_from_before_times_parted_patterns_goes_on():
    """Older states have one run for each way to part the stream, and do not say whether its patterns ask for times."""
    for text in (KEYED, KEYED + " within 5 s"):
        detector = detector_of(text)
        detector.on_event({"id": 0, "time": 0, "kind": "a", "k": 1})
        header, arrays = unpack_state(detector.snapshot())
        header["runs"] = [[ways, head] for ways, head, _ in header["runs"]]
        [detection] = td.Detector.resume(pack_state(header, arrays)).on_event({"id": 1, "time": 1, "kind": "b", "k": 1})
        assert detection.events == (0, 1)


def test_a_state_holds_patterns_that_ask_for_times_beside_those_that_do_not():
    detector = detector_of()
    detector.add("timed", KEYED + " within 5 s", mode="next")
    detector.detect_many([{"id": 0, "time": 0, "kind": "a", "k": 1}, {"id": 1, "kind": "a", "k": 1}])
    got = td.Detector.resume(detector.snapshot()).on_event({"id": 2, "time": 1, "kind": "b", "k": 1})
    assert sorted((detection.pattern, detection.events) for detection in got) == [
        ("p", (0, 2)),
        ("p", (1, 2)),
        ("timed", (0, 2)),
    ]


@pytest.mark.parametrize("modes", [("restart", "next"), ("next", "restart"), ("next", "any"), ("any", "restart")])
@pytest.mark.parametrize("removed", [0, 1])
def test_removing_a_pattern_keeps_the_partial_matches_of_another(modes, removed):
    text = "a = kind = 'a'\nb = kind = 'b'\na , b"
    watch = td.Detector()
    for mode in modes:
        watch.add(mode, text, mode=mode)
    watch.on_event({"id": 0, "kind": "a"})
    watch.remove(modes[removed])
    completed = watch.on_event({"id": 1, "kind": "b"})
    assert [(detection.pattern, detection.events) for detection in completed] == [(modes[1 - removed], (0, 1))]
