"""Patterns that come and go while a detector runs: what goes on, what begins anew, and what is told again."""

from __future__ import annotations

import pytest
from forecast_worlds import events_of, own_gaps, pattern_of, random_events, same_counts, told, trained, watching

import tidings as td

KEYED = " and key = $x"

OTHERS = ("a , b , c", "b ; a", "a ; b within 4 s", "c , c")


def with_others(model, learn, change, events, cut):
    """Run one pattern and let others come and go at a place of the stream; return what is told of it."""
    watch = td.Detector(model=model, learn=learn)
    watch.add("p", pattern_of("a , b ; c"), horizon=3, tell="every")
    if change == "remove":
        for place, body in enumerate(OTHERS):
            watch.add(f"other {place}", pattern_of(body), horizon=2)
    found = told(watch.detect_many(events[:cut]).forecasts, "p")
    for place, body in enumerate(OTHERS):
        if change == "add":
            watch.add(f"other {place}", pattern_of(body), horizon=2)
        elif change == "remove":
            watch.remove(f"other {place}")
    found += told(watch.detect_many(events[cut:]).forecasts, "p")
    return found, watch


@pytest.mark.parametrize("change", ["add", "remove"])
@pytest.mark.parametrize("cut", [0, 1, 7, 30])
def test_patterns_that_come_and_go_leave_others_where_they_stand(change, cut):
    events = random_events(60)
    model = trained(pattern_of("a , b ; c"), random_events(300, seed=2))
    wanted, _ = with_others(model, False, None, events, cut)
    found, _ = with_others(model, False, change, events, cut)
    assert found == wanted


@pytest.mark.parametrize("change", ["add", "remove"])
@pytest.mark.parametrize("cut", [1, 7, 30])
def test_and_leave_what_is_learned_of_them(change, cut):
    """Moves, and waits that had not ended when the others came, are counted as if nothing had changed."""
    events = random_events(60)
    _, alone = with_others(td.Model(), True, None, events, cut)
    _, watch = with_others(td.Model(), True, change, events, cut)
    mine, theirs = alone.model["p"].counts, watch.model["p"].counts
    assert theirs.moves.tolist() == mine.moves.tolist()
    assert theirs.waits.tolist() == mine.waits.tolist()
    assert watch.model.traffic.seen == alone.model.traffic.seen
    again = td.Detector.resume(watch.snapshot()).model
    same_counts(again, watch.model)


def gaps_of(watch):
    return [watch.model.traffic.own[f"(('key',),) {name}"] for name in ("gaps", "events", "time")]


def test_gaps_of_keys_stay_counted_when_patterns_come():
    events, pattern = random_events(60, keys=4), pattern_of("a ; b", key=KEYED)
    watch = watching(pattern, learn=True)
    watch.detect_many(events[:40])
    wanted = own_gaps(pattern, events[:40])
    assert gaps_of(watch) == wanted
    watch.add("q", pattern_of("a ; b ; c", key=KEYED))
    assert gaps_of(watch) == wanted
    watch.detect_many([])
    watch.forecast("q", horizon=3)
    assert gaps_of(watch) == wanted
    watch.detect_many(events[40:])
    assert gaps_of(watch) == own_gaps(pattern, events)


def test_gaps_of_keys_stay_counted_when_the_only_pattern_goes():
    events, pattern = random_events(60, keys=4), pattern_of("a ; b", key=KEYED)
    watch = watching(pattern, learn=True)
    watch.detect_many(events[:40])
    wanted = own_gaps(pattern, events[:40])
    watch.remove("p")
    watch.add("p", pattern)
    watch.forecast("p", horizon=3)
    assert gaps_of(watch) == wanted


def test_a_pattern_that_is_replaced_by_one_of_another_mode_begins_anew():
    body = pattern_of("a , b , a , b")
    events = events_of("abababa")
    model = trained(body, random_events(300, kinds="ab"), "overlap") + trained(body, random_events(300, kinds="ab"))
    watch = watching(body, "overlap", model=model)
    watch.detect_many(events)
    watch.forecast("p", horizon=2)
    watch.add("p", body, mode="restart")
    fresh = watching(body, "restart", model=model)
    assert watch.forecast("p", horizon=2) == fresh.forecast("p", horizon=2)


def test_a_pattern_that_is_added_again_unchanged_goes_on():
    body, events = pattern_of("a ; b ; c"), random_events(40)
    model = trained(body, random_events(300, seed=3))
    one, two = watching(body, model=model, horizon=3), watching(body, model=model, horizon=3)
    one.detect_many(events)
    two.detect_many(events[:21])
    two.add("p", body, horizon=3)
    two.detect_many(events[21:])
    assert two.forecast("p") == one.forecast("p")


@pytest.mark.parametrize("learn", [False, True])
@pytest.mark.parametrize("key", ["", KEYED])
@pytest.mark.parametrize("body", ["a ; b ; c", "a ; b ; c within 9 s"])
def test_a_pattern_that_is_removed_and_added_again_begins_anew(body, key, learn):
    """It has not seen what was before, in the forecast as in detection; the others go on."""
    pattern, other = pattern_of(body, key=key), pattern_of("a ; b", key=key)
    model = trained(pattern, random_events(300, seed=3, keys=2)) + trained(other, random_events(300, seed=3, keys=2))
    watch = watching(pattern, model=model, learn=learn, horizon=3)
    watch.add("q", other, horizon=3)
    watch.detect_many(events_of("ab", [1, 1]))
    before = watch.model["p"].counts.moves
    watch.remove("p")
    watch.add("p", pattern, horizon=3)
    if not learn:
        fresh = watching(pattern, model=model, horizon=3)
        assert watch.forecast("p")[-1].probability == fresh.forecast("p")[-1].probability
    assert [one.key for one in watch.forecast("p")] == [None]
    events = events_of("abc", [1, 1, 1])[2:]
    assert [one.pattern for one in watch.detect_many(events)] == []
    if learn:  # the last event came where nothing had begun
        course, more = watch.model["p"].course, watch.model["p"].counts.moves - before
        assert more.sum() == pytest.approx(1)
        assert more[course.chain[course.start]].sum() == pytest.approx(1)


@pytest.mark.parametrize("learn", [False, True])
def test_a_pattern_that_is_added_again_with_another_plan_tells_the_crossing(learn):
    """What was told by the old plan was not told by the new one; with the same plan nothing is told twice."""
    pattern = pattern_of("a , b")
    model = trained(pattern, events_of("ab" * 40))
    watch = watching(pattern, model=model, learn=learn, horizon=5, threshold=0.5)
    found = [told(watch.detect_many(events_of("c")).forecasts)]
    for plan in ({"threshold": 0.5}, {"threshold": 0.4}, {"threshold": 0.4}, {"threshold": 0.4, "tell": "episode"}):
        watch.add("p", pattern, horizon=5, **plan)
        found.append(told(watch.detect_many(events_of("c")).forecasts))
    assert [len(one) for one in found] == [1, 0, 1, 0, 1]
