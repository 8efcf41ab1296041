"""The façade: what it takes and refuses, what it counts, and that it stays small on long streams."""

import pickle
import tracemalloc
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidings as td
from tidings.concepts import Declared
from tidings.errors import BadEvent, PatternError, TidingsError
from tidings.model.patterns import Mode

AB = "a = kind = 'a'\nb = kind = 'b'\na ; b"
KEYED = "a = kind = 'a' and k = $x\nb = kind = 'b' and k = $x\na ; b"
QUIET = "a = kind = 'a'\nb = kind = 'b'\na ; not b for 5 s"


def detector_of(text=AB, *, mode="restart", limit=None, **options):
    made = td.Detector(**options)
    made.add("p", text, mode=mode, limit=limit)
    return made


def letters(text, **more):
    return [{"id": place, "time": place, "kind": kind} | more for place, kind in enumerate(text)]


def list_events(detector, events, **options):
    return [detection.events for detection in detector.detect_many(events, **options)]


def at(seconds):
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


# Time -------------------------------------------------------------------------------------------------


def test_an_absence_is_reported_when_time_passes():
    detector = detector_of(QUIET)
    assert detector.next_deadline() is None
    detector.on_event({"id": 0, "time": 1, "kind": "a"})
    assert detector.next_deadline() == at(6)
    assert detector.on_time(5.999999) == []
    [detection] = detector.on_time("1970-01-01T00:00:06")
    assert (detection.events, detection.at) == ((0,), at(6))
    assert detector.next_deadline() is None


def test_a_deadline_is_gone_when_what_must_not_come_comes():
    detector = detector_of(QUIET)
    detector.detect_many(letters("aa"))
    assert detector.next_deadline() == at(5)
    detector.on_event({"id": 9, "time": 2, "kind": "b"})
    assert detector.next_deadline() is None
    detector.on_event({"id": 10, "time": 3, "kind": "a"})
    assert detector.next_deadline() == at(8)
    assert [detection.events for detection in detector.on_time(100)] == [(10,)]


def test_an_event_at_the_deadline_comes_after_it():
    detector = detector_of(QUIET)
    detector.on_event({"id": 0, "time": 0, "kind": "a"})
    assert list_events(detector, [{"id": 1, "time": 5, "kind": "b"}]) == [(0,)]


def test_what_comes_after_its_time_has_passed_is_late():
    detector = detector_of()
    detector.on_time(10)
    got = detector.detect_many([{"id": 7, "time": 9.5, "kind": "a"}, {"id": 8, "time": 10, "kind": "a"}])
    assert [(letter.event, letter.time) for letter in got.late] == [(7, at(9.5))]
    assert (detector.late, repr(got)) == (1, "<Detections: 0, 1 late, 0 dead letters>")
    assert list_events(detector, [{"id": 9, "time": 10, "kind": "b"}]) == [(8, 9)]


def test_events_wait_for_as_long_as_others_may_come_late():
    detector = detector_of(lateness="2 s")
    assert list_events(detector, [{"id": 1, "time": 2, "kind": "b"}, {"id": 0, "time": 1, "kind": "a"}]) == []
    assert list_events(detector, [{"id": 2, "time": 4, "kind": "z"}]) == [(0, 1)]
    late = detector.detect_many([{"id": 3, "time": 1.9, "kind": "a"}]).late
    assert [letter.event for letter in late] == [3]
    assert [detection.event for detection in detector.detect_many([{"id": 4, "time": 2, "kind": "a"}]).late] == []


def test_events_of_one_time_that_wait_keep_the_order_they_came_in():
    detector = detector_of(AB.replace("a ; b", "a , b"), lateness="1 s")
    first = list_events(detector, [{"id": n, "time": 5 - n // 100, "kind": "ab"[n % 2]} for n in range(200)])
    assert first == [(n, n + 1) for n in range(100, 200, 2)]
    assert [detection.events for detection in detector.on_time(9)] == [(n, n + 1) for n in range(0, 100, 2)]


def test_time_that_passes_releases_what_waits():
    detector = detector_of(lateness=timedelta(minutes=1))
    assert list_events(detector, letters("ab")) == []
    assert [detection.events for detection in detector.on_time(1)] == [(0, 1)]
    assert [detection.event for detection in detector.detect_many([{"id": 5, "time": 0.5, "kind": "a"}]).late] == [5]


def test_events_without_a_time_stand_where_they_came():
    detector = detector_of()
    [detection] = detector.detect_many([{"id": 0, "kind": "a"}, {"id": 1, "kind": "b"}])
    assert detection.events == (0, 1)
    assert detection.at == datetime.min.replace(tzinfo=UTC)
    got = detector.detect_many(
        [{"id": 2, "time": 10, "kind": "a"}, {"id": 3, "kind": "b"}, {"id": 4, "time": 5, "kind": "a"}]
    )
    assert [(detection.events, detection.at) for detection in got] == [((2, 3), at(10))]
    assert [late.event for late in got.late] == [4]


TIMED = {"absence": QUIET, "within": AB + " within 5 s", "condition": AB.replace("a ; b", "a ; b @ t(b) - t(a) < 5 s")}
NO_TIMES = [{}, {"time": None}, {"time": "yesterday"}, {"time": True}, {"time": float("nan")}]
NO_TIMES += [{"time": 1_700_000_000_000}, {"time": [1]}, {"time": np.datetime64("NaT")}]


@pytest.mark.parametrize("when", NO_TIMES, ids=repr)
@pytest.mark.parametrize("text", TIMED.values(), ids=TIMED)
def test_an_event_without_a_time_passes_by_patterns_that_ask_for_times_and_no_others(text, when):
    detector = detector_of(text)
    detector.add("plain", AB)
    events = [{"id": 0, "time": 0, "kind": "a"}, {"id": 1, "kind": "b"} | when, {"id": 2, "time": 3, "kind": "b"}]
    got = [*detector.detect_many(events), *detector.on_time(20)]
    reported = {detection.pattern: detection.events for detection in got}
    assert reported == {"plain": (0, 1)} | ({} if text == QUIET else {"p": (0, 2)})
    [lack] = detector.mismatches()
    assert str(lack) == "time: 1 of 3 events have no time that can be read, and take no part in 1 pattern (p)"
    assert lack.to_dict()["patterns"] == ["p"]


def test_an_event_without_a_time_is_not_the_next_one_of_a_pattern_that_asks_for_times():
    detector = detector_of(AB.replace("a ; b", "a , b within 5 s"))
    detector.add("plain", AB.replace("a ; b", "a , b"))
    events = [{"id": 0, "time": 0, "kind": "a"}, {"id": 1, "kind": "z"}, {"id": 2, "time": 3, "kind": "b"}]
    assert [(detection.pattern, detection.events) for detection in detector.detect_many(events)] == [("p", (0, 2))]


def test_an_event_without_a_time_waits_with_the_others_and_passes_by_when_its_turn_comes():
    detector = detector_of(AB + " within 9 s", lateness="5 s")
    detector.add("plain", AB)
    detector.detect_many([{"id": 0, "time": 0, "kind": "a"}, {"id": 1, "kind": "b"}])
    detector = td.Detector.resume(detector.snapshot())
    got = detector.detect_many([{"id": 2, "time": 1, "kind": "b"}, {"id": 3, "time": 20, "kind": "z"}])
    assert [(detection.pattern, detection.events) for detection in got] == [("plain", (0, 1)), ("p", (0, 2))]


def test_times_and_ids_have_the_names_they_are_given():
    for text in TIMED.values():
        named = detector_of(text, time="ts", event_id="n")
        named.on_event({"n": 1, "ts": 0, "kind": "a"})
        assert not named.mismatches()


# Bad events -------------------------------------------------------------------------------------------

DECLARED = td.Schema({"k": "number", "unasked": "time"}, closed=False)
BAD = [5, {"id": 1, "time": 1, "kind": "b", "k": "x"}, {"id": 1, "time": 1, "kind": "b", "k": [1, 2]}]
BAD += [{"id": 1, "time": 1, "kind": "b", "k": 1, "unasked": "soon"}, {"id": 1, "kind": "b", "k": float("inf")}]


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_a_bad_event_takes_nothing_or_is_collected(bad):
    events = [{"id": 0, "time": 0, "kind": "a", "k": 1}, bad, {"id": 2, "time": 2, "kind": "b", "k": 1}]
    detector = detector_of(KEYED, schema=DECLARED)
    with pytest.raises(BadEvent):
        detector.detect_many(events)
    assert list_events(detector, events[2:]) == [], "the first event was not taken"
    detector = detector_of(KEYED, schema=DECLARED)
    got = detector.detect_many(events, on_error="collect")
    assert [detection.events for detection in got] == [(0, 2)]
    assert [letter.index for letter in got.dead_letters] == [1]


def test_a_table_with_bad_rows_is_collected_row_by_row():
    table = pa.table({"id": [0, 1, 2], "time": [0, 1, 2], "kind": ["a", "b", "b"], "k": ["1", "x", "1.0"]})
    got = detector_of(KEYED, schema=DECLARED).detect_many(table, on_error="collect")
    assert [(detection.events, detection.bindings) for detection in got] == [((0, 2), {"x": 1})]
    assert [letter.index for letter in got.dead_letters] == [1]


def test_events_without_an_id_are_called_by_their_number_dead_ones_counted():
    detector = detector_of()
    assert list_events(detector, [{"time": 0, "kind": "a"}, "?", {"time": 1, "kind": "b"}], on_error="collect") == [
        (0, 2)
    ]
    assert list_events(detector, [{"time": 2, "kind": "a"}, {"time": 3, "kind": "b"}]) == [(3, 4)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: td.Detector(partials=0), "partials is how many partial matches are kept, not `0`"),
        (lambda: td.Detector(lateness=timedelta(-1)), "lateness is a span of time, not `-1 day"),
        (lambda: detector_of().detect_many([], on_error="skip"), "on_error is `raise` or `collect`, not `skip`"),
        (
            lambda: detector_of(mode="once"),
            "a pattern's mode is one of `restart`, `overlap`, `next`, `any`, not `once`",
        ),
        (lambda: td.Detector().add("", AB), "a pattern's name is text, not `''`"),
        (lambda: detector_of(mode="any", limit=0), "a limit is 1 or more"),
        (lambda: td.Detector().remove("p"), "no pattern is called `p`"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(TidingsError) as problem:
        make()
    assert message in str(problem.value)


def test_many_patterns_are_added_or_none():
    detector = detector_of()
    wide = "a = kind = 'a'\na{20000,}"
    with pytest.raises(PatternError, match="more than 16,384 configurations"):
        detector.add("p", wide)
    assert list_events(detector, letters("ab")) == [(0, 1)]


# Keys -------------------------------------------------------------------------------------------------

NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)
ALIKE = [(1, 1.0), (0.5, 0.5), ("1", "1"), (True, True), (NOON.replace(tzinfo=None), NOON)]
UNLIKE = [(1, "1"), (1, True), (0, False), ("true", True), (1, 2), (None, None), (float("nan"), float("nan"))]


@pytest.mark.parametrize(("first", "second"), ALIKE, ids=repr)
def test_equal_values_are_one_key(first, second):
    events = [{"id": 0, "time": 0, "kind": "a", "k": first}, {"id": 1, "time": 1, "kind": "b", "k": second}]
    [detection] = detector_of(KEYED).detect_many(events)
    assert detection.bindings == {"x": first}


@pytest.mark.parametrize(("first", "second"), UNLIKE, ids=repr)
def test_other_values_are_other_keys(first, second):
    events = [{"id": 0, "time": 0, "kind": "a", "k": first}, {"id": 1, "time": 1, "kind": "b", "k": second}]
    assert list_events(detector_of(KEYED), events) == []


def test_keys_of_several_variables_agree_in_all_of_them():
    text = "a = kind = 'a' and k = $x and j = $y\nb = kind = 'b' and j = $x and k = $y\na ; b"
    events = [
        {"id": n, "time": n, "kind": kind, "k": k, "j": j} for n, (kind, k, j) in enumerate(["a12", "b12", "b21"])
    ]
    [detection] = detector_of(text).detect_many(events)
    assert (detection.events, detection.bindings) == ((0, 2), {"x": "1", "y": "2"})


def test_a_variable_may_look_into_a_record():
    text = KEYED.replace("k =", "who.id =")
    events = [{"id": n, "time": n, "kind": kind, "who": {"id": 5}} for n, kind in enumerate("ab")]
    for form in (list, pa.Table.from_pylist):
        [detection] = detector_of(text, keep=["who.id"]).detect_many(form(events))
        assert (detection.bindings, detection.fields) == ({"x": 5}, ({"who.id": 5}, {"who.id": 5}))


SEVERAL = [[1, 2], {"of": 1}, [1, 1], [{"of": 1}], float("inf"), b"1", td.Range(1, 2), object()]


@pytest.mark.parametrize("value", SEVERAL, ids=repr)
def test_what_no_variable_takes_does_not_satisfy_the_filter_and_is_counted(value):
    events = [{"id": n, "time": n, "kind": kind, "k": 1} for n, kind in enumerate("abb")]
    events[1]["k"] = value
    detector = detector_of(KEYED)
    detector.add("plain", AB)
    assert [(detection.pattern, detection.events) for detection in detector.detect_many(events)] == [
        ("plain", (0, 1)),
        ("p", (0, 2)),
    ]
    [mismatch] = detector.mismatches()
    assert (mismatch.attribute, mismatch.values, mismatch.mismatched, mismatch.patterns) == ("k", 3, 1, ("p",))


def test_what_variables_could_not_take_is_told_in_words():
    detector = detector_of(KEYED)
    values = [1, [1, 2], [1, 3], {"of": 1}]
    detector.detect_many([{"id": n, "time": n, "kind": "a", "k": k} for n, k in enumerate(values)])
    words = "k: 3 of 4 values are several values and records, taken by variables of 1 pattern (p)"
    assert [str(mismatch) for mismatch in detector.mismatches()] == [words]
    detector.remove("p")
    assert detector.mismatches() == (), "nobody asks any more"


ONE = [[1], [None, 1], [[1]], np.int64(1), [float("nan"), 1]]


@pytest.mark.parametrize("value", ONE, ids=repr)
def test_a_list_of_one_value_is_that_value(value):
    events = [{"id": 0, "time": 0, "kind": "a", "k": 1}, {"id": 1, "time": 1, "kind": "b", "k": value}]
    assert list_events(detector_of(KEYED), events) == [(0, 1)]


@pytest.mark.parametrize("value", [None, [], {}, float("nan"), [None], np.datetime64("NaT")], ids=repr)
def test_nothing_gives_a_variable_nothing_and_is_no_mismatch(value):
    detector = detector_of(KEYED)
    assert list_events(detector, [{"id": n, "time": n, "kind": kind, "k": value} for n, kind in enumerate("ab")]) == []
    assert detector.mismatches() == ()


READINGS = {
    "number": (["1", 1, 1.0, " 1e0", np.int64(1)], 1),
    "time": (["1970-01-01", date(1970, 1, 1), "1970-01-01T01:00:00+01:00"], datetime(1970, 1, 1, tzinfo=UTC)),
    "bool": (["true", True, "True"], True),
    "ip": (["10.0.0.1", "::ffff:10.0.0.1", " 10.0.0.1"], "10.0.0.1"),
    "text": (["1", "1"], "1"),
    "several number": ([["1"], 1, [1.0]], 1),
}


@pytest.mark.parametrize("kind", READINGS)
def test_a_declared_attribute_gives_a_variable_its_declared_reading(kind):
    values, reading = READINGS[kind]
    events = [{"id": n, "time": n, "kind": "a", "k": value} for n, value in enumerate(values)]
    detector = detector_of(
        "a = kind = 'a' and k = $x\na{2,}", mode="overlap", schema=td.Schema({"k": kind}, closed=False)
    )
    got = detector.detect_many(events)
    assert [detection.events[-2:] for detection in got] == [(n, n + 1) for n in range(len(values) - 1)]
    assert {detection.bindings["x"] for detection in got} == {reading}


def test_numbers_that_floats_cannot_tell_apart_are_two_keys_declared_or_not():
    rows = [("a", Decimal(2**70)), ("b", Decimal(2**70 + 1))]
    for schema in (None, td.Schema({"k": "number"}, closed=False)):
        events = [{"id": n, "time": n, "kind": kind, "k": k} for n, (kind, k) in enumerate(rows)]
        assert list_events(detector_of(KEYED, schema=schema), events) == []


def test_synonyms_units_and_concepts_give_variables_one_value():
    ontology = td.Ontology(attributes={"ip": Declared(synonyms=("address",)), "width": Declared(unit="cm")})
    text = "a = kind = 'a' and ip = $x and width = $w\nb = kind = 'b' and address = $x and width = $w\na ; b"
    events = [{"id": 0, "kind": "a", "address": "h", "width": "1 m"}]
    events += [{"id": 1, "kind": "b", "ip": "h", "width": 100}]
    names = ("id", "kind", "address", "ip")
    table = pa.table({name: [event.get(name) for event in events] for name in names} | {"width": ["1 m", "100"]})
    for form in (events, table):
        [detection] = detector_of(text, ontology=ontology).detect_many(form)
        assert (detection.events, detection.bindings) == ((0, 1), {"x": "h", "w": 100})


def test_few_kinds_of_events_are_counted_as_often_as_they_come():
    table = pa.table({"time": range(1000), "kind": ["x"] * 900 + ["7"] * 100})
    detector = detector_of("a = kind > 5\na")
    assert len(detector.detect_many(table)) == 100
    assert [str(mismatch) for mismatch in detector.mismatches()] == [
        "kind: 900 of 1,000 values are text, asked as numbers by 1 pattern (p)"
    ]


def test_few_kinds_of_events_are_told_apart_by_all_that_feeds_an_attribute():
    ontology = td.Ontology(attributes={"sort": Declared(synonyms=("kind",))})
    table = pa.table({"time": range(1000), "kind": ["a", "b"] * 500, "n": [1] * 1000})
    detector = detector_of("a = sort = 'a' and n = 1\nb = sort = 'b' and n = 1\na , b", ontology=ontology)
    assert len(detector.detect_many(table)) == 500


# Bounds -----------------------------------------------------------------------------------------------

LOOSE = AB.replace("a ; b", "(a ; b) @ t(b) - t(a) < 1 h")


@pytest.mark.parametrize("text", [AB, LOOSE], ids=["compact", "one by one"])
def test_a_limit_cuts_and_is_counted_once_for_each_event(text):
    detector = detector_of(text, mode="any", limit=2)
    assert [len(list_events(detector, [event])) for event in letters("aaaabbab")] == [0, 0, 0, 0, 2, 2, 0, 2]
    assert detector.cut == 3
    plenty = detector_of(text, mode="any", limit=4)
    assert len(list_events(plenty, letters("aaaab"))) == 4
    assert plenty.cut == 0


@pytest.mark.parametrize("mode", ["next", "any"])
@pytest.mark.parametrize("size", [20, 21, 22, 100])
def test_the_oldest_partial_matches_are_dropped_and_counted(mode, size):
    detector = detector_of(mode=mode, partials=10)
    kept = list_events(detector, letters("a" * size + "b"))
    assert 10 <= len(kept) <= 20
    assert sorted(kept) == [(place, size) for place in range(size - len(kept), size)]
    assert detector.dropped == size - len(kept)


def test_one_key_that_drops_leaves_the_others():
    detector = detector_of(KEYED, mode="next", partials=5)
    events = [{"id": n, "time": n, "kind": "a", "k": "crowded" if n else "lone"} for n in range(50)]
    detector.detect_many(events)
    assert list_events(detector, [{"id": 50, "time": 50, "kind": "b", "k": "lone"}]) == [(0, 50)]
    assert detector.dropped >= 35


SMALL = {
    "keyed": KEYED + " within 5 s",
    "joined": KEYED.replace("b = kind = 'b' and k = $x", "b = kind = 'b'") + " within 5 s",
    "absence": "a = kind = 'a' and k = $x\nc = kind = 'c' and k = $x\na ; not c for 5 s",
    "two": "a = kind = 'a' and k = $x and j = $y\nb = kind = 'b' and k = $x and j = $y\na ; b within 5 s",
    "timed": KEYED.replace("a ; b", "(a ; b) @ t(b) - t(a) < 5 s"),
}


@pytest.mark.parametrize("lateness", [None, "2 s"])
def test_nothing_grows_on_a_long_stream_of_ever_new_keys(lateness):
    detector = td.Detector(lateness=lateness, keep=["j"])
    for (name, text), mode in product(SMALL.items(), Mode):
        detector.add(f"{name} {mode}", text, mode=mode, limit=5 if mode == "any" else None)
    sizes = []
    for piece in range(12):
        n = np.arange(piece * 25_000, (piece + 1) * 25_000)
        kinds = pa.array(["a", "b", "z"]).take(n * 7 % 3)
        detector.detect_many(pa.table({"id": n, "time": n // 10, "kind": kinds, "k": n // 3, "j": n}))
        runs = [run for _, run in detector.run.prepare_graph_runs()]
        pools = sum(run.state.pool.size + run.state.cells.size + run.state.spent.size for run in runs)
        fresh = sum(run.state.fresh.size for run in runs)
        sizes.append((pools, fresh, len(detector.run.value_numbers), len(detector.run.archive)))
    assert np.all(np.max(sizes[8:], axis=0) <= 2 * np.max(sizes[4:8], axis=0))
    assert np.all(np.max(sizes, axis=0) < [8_000_000, 4_000_000, 400_000, 400_000])
    assert sum(run.tidy() for run in runs) < 2_000, "what five seconds hold, and no more"
    assert all(len(run.find_used_keys()) < 500 for run in runs)
    assert len(detector.snapshot()) < 2_000_000
    assert detector.dropped == 0


def test_events_one_by_one_leave_nothing_behind_either():
    detector = detector_of(KEYED + " within 5 s")
    event = {"id": 0, "time": 0, "kind": "a", "k": 0}
    for n in range(600):
        detector.on_event(event | {"id": n, "time": n, "k": n})
    tracemalloc.start()
    for n in range(600, 1_200):
        detector.on_event(event | {"id": n, "time": n, "k": n})
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 1_000_000


# The rest ---------------------------------------------------------------------------------------------


def test_it_is_a_collection_of_patterns():
    detector = detector_of()
    assert (len(detector), "p" in detector, list(detector), repr(detector)) == (
        1,
        True,
        ["p"],
        "<Detector: 1 patterns>",
    )
    assert detector["p"] == detector.patterns[0].pattern
    detector.remove("p")
    assert (len(detector), list_events(detector, letters("ab"))) == (0, [])
    assert detector.on_time(5) == []


def test_patterns_by_hand_and_in_json_are_the_same():
    by_text = detector_of()
    for source, notation in ((by_text["p"], "text"), (td.lang.render_pattern(by_text["p"], "json"), "json")):
        other = td.Detector()
        other.add("p", source, notation=notation)
        assert other["p"] == by_text["p"]


def test_steps_that_were_served_are_counted():
    detector = detector_of()
    detector.detect_many(letters("azab"))
    assert detector.transitions == 2


@given(st.lists(st.sampled_from("ab"), max_size=6))
def test_a_pickled_detector_goes_on(word):
    detector = detector_of(mode="any")
    events = letters("".join(word))
    detector.detect_many(events)
    other = pickle.loads(pickle.dumps(detector))
    last = {"id": 99, "time": 99, "kind": "b"}
    assert detector.on_event(last) == other.on_event(last)
