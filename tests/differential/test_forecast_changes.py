"""Patterns that come and go while a detector runs: what goes on, what begins anew, and what is told again."""

from __future__ import annotations

import pytest
from forecast_worlds import (
    build_events,
    build_pattern,
    check_same_counts,
    compute_own_gaps,
    draw_events,
    list_forecasts,
    train_model,
    watch_pattern,
)

import tidings as td

KEYED = " and key = $x"

OTHERS = ("a , b , c", "b ; a", "a ; b within 4 s", "c , c")


def with_others(model, learn, change, events, cut):
    """Run one pattern and let others come and go at a place of the stream; return what is told of it."""
    watch = td.Detector(model=model, learn=learn)
    watch.add("p", build_pattern("a , b ; c"), horizon=3, tell="every")
    if change == "remove":
        for place, body in enumerate(OTHERS):
            watch.add(f"other {place}", build_pattern(body), horizon=2)
    forecasts = list_forecasts(watch.detect_many(events[:cut]).forecasts, "p")
    for place, body in enumerate(OTHERS):
        if change == "add":
            watch.add(f"other {place}", build_pattern(body), horizon=2)
        elif change == "remove":
            watch.remove(f"other {place}")
    forecasts += list_forecasts(watch.detect_many(events[cut:]).forecasts, "p")
    return forecasts, watch


@pytest.mark.parametrize("change", ["add", "remove"])
@pytest.mark.parametrize("cut", [0, 1, 7, 30])
def test_patterns_that_come_and_go_leave_others_where_they_stand(change, cut):
    events = draw_events(60)
    model = train_model(build_pattern("a , b ; c"), draw_events(300, seed=2))
    wanted, _ = with_others(model, False, None, events, cut)
    forecasts, _ = with_others(model, False, change, events, cut)
    assert forecasts == wanted


@pytest.mark.parametrize("change", ["add", "remove"])
@pytest.mark.parametrize("cut", [1, 7, 30])
def test_and_leave_what_is_learned_of_them(change, cut):
    """Moves, and waits that had not ended when the others came, are counted as if nothing had changed."""
    events = draw_events(60)
    _, alone = with_others(td.Model(), True, None, events, cut)
    _, watch = with_others(td.Model(), True, change, events, cut)
    mine, theirs = alone.model["p"].counts, watch.model["p"].counts
    assert theirs.moves.tolist() == mine.moves.tolist()
    assert theirs.waits.tolist() == mine.waits.tolist()
    assert watch.model.traffic.seen == alone.model.traffic.seen
    again = td.Detector.resume(watch.snapshot()).model
    check_same_counts(again, watch.model)


def list_gaps(watch):
    return [watch.model.traffic.own[f"(('key',),) {name}"] for name in ("gaps", "events", "time")]


def test_gaps_of_keys_stay_counted_when_patterns_come():
    events, pattern = draw_events(60, keys=4), build_pattern("a ; b", key=KEYED)
    watch = watch_pattern(pattern, learn=True)
    watch.detect_many(events[:40])
    wanted = compute_own_gaps(pattern, events[:40])
    assert list_gaps(watch) == wanted
    watch.add("q", build_pattern("a ; b ; c", key=KEYED))
    assert list_gaps(watch) == wanted
    watch.detect_many([])
    watch.forecast("q", horizon=3)
    assert list_gaps(watch) == wanted
    watch.detect_many(events[40:])
    assert list_gaps(watch) == compute_own_gaps(pattern, events)


def test_gaps_of_keys_stay_counted_when_the_only_pattern_goes():
    events, pattern = draw_events(60, keys=4), build_pattern("a ; b", key=KEYED)
    watch = watch_pattern(pattern, learn=True)
    watch.detect_many(events[:40])
    wanted = compute_own_gaps(pattern, events[:40])
    watch.remove("p")
    watch.add("p", pattern)
    watch.forecast("p", horizon=3)
    assert list_gaps(watch) == wanted


def test_a_learner_takes_events_while_it_has_no_pattern():
    events, pattern = draw_events(60, keys=4), build_pattern("a ; b", key=KEYED)
    watch = watch_pattern(pattern, learn=True)
    watch.detect_many(events[:20])
    watch.remove("p")
    watch.detect_many(events[20:40])
    watch.add("p", pattern)
    watch.detect_many(events[40:])
    assert watch.forecast("p", horizon=3) is not None
    alone = td.Detector(learn=True)
    alone.detect_many([])
    alone.add("p", "a = kind = 'a'\nb = kind = 'b'\na ; b")
    alone.detect_many([{"id": 1, "ts": 0, "kind": "a"}])
    assert alone.forecast("p", horizon=3) is not None


def test_a_pattern_that_is_replaced_by_one_of_another_mode_begins_anew():
    body = build_pattern("a , b , a , b")
    events = build_events("abababa")
    model = train_model(body, draw_events(300, kinds="ab"), "overlap") + train_model(body, draw_events(300, kinds="ab"))
    watch = watch_pattern(body, "overlap", model=model)
    watch.detect_many(events)
    watch.forecast("p", horizon=2)
    watch.add("p", body, mode="restart")
    fresh = watch_pattern(body, "restart", model=model)
    assert watch.forecast("p", horizon=2) == fresh.forecast("p", horizon=2)


def test_a_pattern_that_is_added_again_unchanged_goes_on():
    body, events = build_pattern("a ; b ; c"), draw_events(40)
    model = train_model(body, draw_events(300, seed=3))
    first, second = watch_pattern(body, model=model, horizon=3), watch_pattern(body, model=model, horizon=3)
    first.detect_many(events)
    second.detect_many(events[:21])
    second.add("p", body, horizon=3)
    second.detect_many(events[21:])
    assert second.forecast("p") == first.forecast("p")


@pytest.mark.parametrize("learn", [False, True])
@pytest.mark.parametrize("key", ["", KEYED])
@pytest.mark.parametrize("body", ["a ; b ; c", "a ; b ; c within 9 s"])
def test_a_pattern_that_is_removed_and_added_again_begins_anew(body, key, learn):
    """It has not seen what was before, in the forecast as in detection; the others go on."""
    pattern, other = build_pattern(body, key=key), build_pattern("a ; b", key=key)
    model = train_model(pattern, draw_events(300, seed=3, keys=2)) + train_model(
        other, draw_events(300, seed=3, keys=2)
    )
    watch = watch_pattern(pattern, model=model, learn=learn, horizon=3)
    watch.add("q", other, horizon=3)
    watch.detect_many(build_events("ab", [1, 1]))
    before = watch.model["p"].counts.moves
    watch.remove("p")
    watch.add("p", pattern, horizon=3)
    if not learn:
        fresh = watch_pattern(pattern, model=model, horizon=3)
        assert watch.forecast("p")[-1].probability == fresh.forecast("p")[-1].probability
    assert [forecast.key for forecast in watch.forecast("p")] == [None]
    events = build_events("abc", [1, 1, 1])[2:]
    assert [detection.pattern for detection in watch.detect_many(events)] == []
    if learn:  # the last event came where nothing had begun
        course, more = watch.model["p"].course, watch.model["p"].counts.moves - before
        assert more.sum() == pytest.approx(1)
        assert more[course.chain_state_of[course.start]].sum() == pytest.approx(1)


@pytest.mark.parametrize("learn", [False, True])
def test_a_pattern_that_is_added_again_with_another_plan_tells_the_crossing(learn):
    """What was told by the old plan was not told by the new one; with the same plan nothing is told twice."""
    pattern = build_pattern("a , b")
    model = train_model(pattern, build_events("ab" * 40))
    watch = watch_pattern(pattern, model=model, learn=learn, horizon=5, threshold=0.5)
    forecasts = [list_forecasts(watch.detect_many(build_events("c")).forecasts)]
    for plan in ({"threshold": 0.5}, {"threshold": 0.4}, {"threshold": 0.4}, {"threshold": 0.4, "tell": "episode"}):
        watch.add("p", pattern, horizon=5, **plan)
        forecasts.append(list_forecasts(watch.detect_many(build_events("c")).forecasts))
    assert [len(forecast) for forecast in forecasts] == [1, 0, 1, 0, 1]
