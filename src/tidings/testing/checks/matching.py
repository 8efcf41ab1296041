"""Checks of answers: one event or many, good or bad, compared with `evaluate`."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tidings.algebra import evaluate
from tidings.bench.workloads import NOW, car_ads, saved_searches
from tidings.errors import BadEvent, Unsupported
from tidings.model import TRUE, Event, EventBatch
from tidings.testing.checks.base import (
    DECLARED,
    EVENTS,
    add_supported,
    choose_vocabulary,
    collect_answers,
    collect_batch,
    expect_error,
    fill_matcher,
    find_scope,
    run_on_cases,
)
from tidings.testing.strategies import cases, mixed_cases

if TYPE_CHECKING:
    import pyarrow as pa

    from tidings.matcher import Matcher
    from tidings.matcher.algorithm import SubId
    from tidings.model import Filter
    from tidings.model.values import EventValue
    from tidings.testing.checks.base import MatcherFactory
    from tidings.testing.strategies import Case, World

BAD = {"make": "ford", "brand": 7, "price": "expensive"}
"""An event whose price no search can read: bad where the price is declared, else merely without a price."""


def check_agrees_with_evaluate(factory: MatcherFactory) -> None:
    """On drawn worlds, filters and events, answers are those of `evaluate`, for single events and batches."""
    run_on_cases(cases(bad=True), lambda case: compare_with_evaluate(factory, case), examples=150)


def compare_with_evaluate(factory: MatcherFactory, case: Case) -> None:
    """Assert that a matcher answers a case as `evaluate` does, for single events and for the batch."""
    matcher = factory(**case.world.keywords)
    filters = add_supported(matcher, dict(enumerate(case.filters)))
    expected = [_evaluate_all(filters, event, case.world) for event in case.events]
    matches = matcher.match_many(list(case.events), on_error="collect")
    assert [set(ids) for ids in matches.by_event()] == [ids or set() for ids in expected]
    assert {letter.index for letter in matches.dead_letters} == {
        number for number, ids in enumerate(expected) if ids is None
    }
    assert all(letter.reason for letter in matches.dead_letters)
    for event, ids in zip(case.events, expected, strict=True):
        _check_event(matcher, event, ids)


def _check_event(matcher: Matcher, event: dict[str, EventValue], expected: set[int] | None) -> None:
    if expected is None:
        expect_error(BadEvent, lambda: matcher.match(event))
    else:
        matches = matcher.match(event)
        assert set(matches) == expected
        assert len(matches) == len(expected)


def _evaluate_all(filters: dict[int, Filter], event: dict[str, EventValue], world: World) -> set[int] | None:
    """Return the ids whose filters `evaluate` accepts; None for an event that is bad whatever the filter."""
    try:
        evaluate(TRUE, event, **world.keywords)
    except BadEvent:
        return None
    return {id for id, tree in filters.items() if evaluate(tree, event, **world.keywords)}


def check_agrees_with_evaluate_on_mixed_kinds(factory: MatcherFactory) -> None:
    """Answers are those of `evaluate` where filters read one attribute as different kinds; no event is bad."""
    run_on_cases(mixed_cases(find_scope(factory)), lambda case: compare_with_evaluate(factory, case), examples=100)


def check_kinds_live_side_by_side(factory: MatcherFactory) -> None:
    """Filters that read one attribute as different kinds each match the values that they can read."""
    matcher = factory()
    matcher.add_many(
        [
            ("number", "code < 5"),
            ("text", "code = 'x'"),
            ("time", "code >= 2024-05-01"),
            ("truth", "code = true"),
            ("amount", "code > 1 GB"),
            ("there", "code exists"),
        ],
        on_error="collect",
    )
    expected: list[tuple[EventValue, set[str]]] = [
        ("x", {"text", "there"}),
        (3, {"number", "there"}),
        ("3", {"number", "there"}),
        ("2024-05-01", {"time", "there"}),
        (True, {"truth", "there"}),
        ("true", {"truth", "there"}),
        ("2 GB", {"amount", "there"}),
        (["x", 3, "2 GB", True], {"text", "number", "amount", "truth", "there"}),
        ([7, "y"], {"there"}),
        ({"of": 1}, {"there"}),
        (float("inf"), {"there"}),
        (float("nan"), set()),
        (None, set()),
    ]
    for value, ids in expected:
        assert set(matcher.match({"code": value})) == ids & set(matcher), value
    events = [{"code": value} for value, _ in expected]
    assert collect_batch(matcher, events) == [ids & set(matcher) for _, ids in expected]


def check_agrees_with_evaluate_on_car_ads(factory: MatcherFactory) -> None:
    """Answers are those of `evaluate` on a small market of car ads."""
    matcher = factory(now=NOW)
    problems = matcher.add_many(saved_searches(60, seed=3), on_error="collect")
    assert all(isinstance(problem, Unsupported) for _, problem in problems)
    ads = car_ads(40, seed=3)
    wanted = [{id for id in matcher if evaluate(matcher[id], ad, now=NOW)} for ad in ads]
    assert any(wanted) or problems
    assert collect_batch(matcher, ads) == wanted


def check_batch_equals_scalar(factory: MatcherFactory) -> None:
    """`match_many` returns what `match` returns, in each form of its result and for each form of a batch."""
    matcher = fill_matcher(factory)
    wanted = collect_answers(matcher)
    events = list(EVENTS)
    wrapped = [Event(id=number, values=event, payload=b"opaque") for number, event in enumerate(EVENTS)]
    for batch in (events, tuple(events), iter(events), EventBatch(events), wrapped):
        matches = matcher.match_many(batch)
        lists = matches.by_event()
        assert [set(ids) for ids in lists] == wanted
        assert len(lists) == len(events)
        pairs = [(number, id) for number, ids in enumerate(lists) for id in ids]
        assert sorted(matches) == sorted(pairs)
        assert len(matches) == len(pairs)
        assert list(zip(matches.event_index.tolist(), matches.ids, strict=True)) == list(matches)
        assert matches.event_index.dtype == "int64"
        _check_arrow(matches.to_arrow(), pairs)


def _check_arrow(table: pa.Table, pairs: list[tuple[int, SubId]]) -> None:
    assert table.column_names == ["event", "subscription"]
    assert str(table.schema.field("event").type) == "int64"
    columns = [table.column(name).to_pylist() for name in table.column_names]
    assert sorted(zip(*columns, strict=True)) == sorted(pairs)


def check_arrow_events_are_events(factory: MatcherFactory) -> None:
    """An Arrow table of events has the answers of its rows."""
    import pyarrow as pa

    matcher = fill_matcher(factory)
    rows = [{**event, "spot": None, "east": None, "year": None} for event in EVENTS]
    table = pa.Table.from_pylist(
        [{key: row.get(key) for key in ("make", "price", "tags", "year", "brand", "marks")} for row in rows]
    )
    for batch in (table, table.combine_chunks().to_batches()[0], EventBatch.of(table)):
        assert collect_batch(matcher, batch) == collect_answers(matcher, rows)


def check_an_empty_batch_is_fine(factory: MatcherFactory) -> None:
    """Without events, or without subscriptions, there are no matches."""
    for matcher, events in ((fill_matcher(factory), []), (factory(), EVENTS)):
        matches = matcher.match_many(events)
        assert (len(matches), matches.by_event(), matches.to_arrow().num_rows) == (0, [[] for _ in events], 0)


def check_each_id_comes_once(factory: MatcherFactory) -> None:
    """A subscription that an event satisfies in several ways is returned once."""
    matcher = factory()
    matcher.add_many(choose_vocabulary(factory).often.items())
    event = {"a": [1, 2, 1], "b": 5, "t": ["x", "y", "xy", "x"]}
    assert sorted(matcher.match(event)) == ["often", "tags"]
    assert sorted(matcher.match_many([event, event])) == [(0, "often"), (0, "tags"), (1, "often"), (1, "tags")]


def check_unknown_attributes_are_ignored(factory: MatcherFactory) -> None:
    """Attributes that no filter names are ignored, whatever they hold."""
    matcher = fill_matcher(factory)
    strange = {"other": object(), "nan": float("nan"), "deep": {"er": [None, {}]}, "price.note": 5, "": 1}
    noisy = [{**event, **strange} for event in EVENTS]
    assert collect_answers(matcher, noisy) == collect_answers(matcher)
    assert collect_batch(matcher, noisy) == collect_answers(matcher)


def check_bad_events_are_refused(factory: MatcherFactory) -> None:
    """What breaks the schema raises `BadEvent` that names the attribute; so does anything that is not an event."""
    matcher = fill_matcher(factory, schema=DECLARED)
    problem = expect_error(BadEvent, lambda: matcher.match(BAD))
    assert "price" in str(problem)
    assert getattr(problem, "attribute", None) == "price"
    odds: tuple[EventValue, ...] = (None, 5, "text", [EVENTS[0]], b"")
    for odd in odds:
        expect_error(BadEvent, lambda odd=odd: matcher.match(odd))  # type: ignore[misc]
    expect_error(BadEvent, lambda: matcher.match_many([EVENTS[0], BAD]))
    expect_error(BadEvent, lambda: matcher.match_many(EVENTS[0]))
    assert collect_answers(matcher) == collect_answers(fill_matcher(factory))
    expect_error(BadEvent, lambda: factory(schema=DECLARED).match(BAD))  # although no filter names the price


def check_undeclared_values_make_no_event_bad(factory: MatcherFactory) -> None:
    """Without a declaration, a value that a filter cannot read does not satisfy it; other filters match as before."""
    matcher = fill_matcher(factory)
    without = {key: value for key, value in BAD.items() if key != "price"}
    assert collect_answers(matcher, [BAD]) == collect_answers(matcher, [without])
    assert matcher.match_many([BAD, *EVENTS], on_error="collect").dead_letters == ()


def check_bad_events_are_collected(factory: MatcherFactory) -> None:
    """With `on_error="collect"` bad events become dead letters with a reason, and the others match as before."""
    matcher = fill_matcher(factory, schema=DECLARED)
    matches = matcher.match_many([BAD, *EVENTS, BAD, "no event"], on_error="collect")
    assert [letter.index for letter in matches.dead_letters] == [0, len(EVENTS) + 1, len(EVENTS) + 2]
    assert "price" in matches.dead_letters[0].reason
    assert [set(ids) for ids in matches.by_event()] == [set(), *collect_answers(matcher), set(), set()]


def check_unlike_values_do_not_compare(factory: MatcherFactory) -> None:
    """Attributes of different kinds in an event do not satisfy a comparison; text of a number counts as a number."""
    matcher = factory()
    matcher.add("bargain", "price < `list_price`")
    events: list[dict[str, EventValue]] = [
        {"price": 1, "list_price": 2},
        {"price": 1, "list_price": "two"},
        {"price": 2, "list_price": 1},
        {"price": 1, "list_price": "2"},
    ]
    wanted: list[list[str]] = [["bargain"], [], [], ["bargain"]]
    assert [matcher.match(event) for event in events] == wanted
    assert matcher.match_many(events).by_event() == wanted


def check_inputs_are_not_aliased(factory: MatcherFactory) -> None:
    """The matcher keeps no reference to its inputs: changing one later changes no answer, and calls change none."""
    subscriptions = [[id, text] for id, text in choose_vocabulary(factory).searches.items()]
    matcher = factory()
    matcher.add_many(subscriptions)
    wanted = collect_answers(matcher)
    for pair in subscriptions:
        pair[1] = "false"
    subscriptions.clear()
    assert collect_answers(matcher) == wanted
    events = deepcopy(EVENTS)
    matches = matcher.match_many(events)
    assert events == EVENTS
    lists = matches.by_event()
    for event in events:
        event.clear()
    events.clear()
    lists[0].clear()
    assert [set(ids) for ids in matches.by_event()] == wanted
    matcher.match(EVENTS[0]).clear()
    assert collect_answers(matcher) == wanted


def check_a_tree_given_as_json_is_not_aliased(factory: MatcherFactory) -> None:
    """A filter passed as a decoded JSON object is parsed at once, and no reference to it is kept."""
    import json

    from tidings.lang import parse, render

    tree = json.loads(render(parse(choose_vocabulary(factory).searches["set"]), notation="json"))
    matcher = factory()
    matcher.add("set", tree, notation="json")
    wanted = ["set" in ids for ids in collect_answers(fill_matcher(factory))]
    _clear_all(tree)
    assert ["set" in ids for ids in collect_answers(matcher)] == wanted


def _clear_all(tree: object) -> None:
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        _clear_all(part)
    if isinstance(tree, dict | list):
        tree.clear()


def check_now_is_an_argument(factory: MatcherFactory) -> None:
    """Ages are relative to the matcher's `now`, or to that of the call."""
    now = datetime(2024, 5, 1, tzinfo=UTC)
    matcher = factory(now=now)
    matcher.add("new", "age(posted) < 7 days")
    event = {"posted": now - timedelta(days=6)}
    assert matcher.match(event) == ["new"]
    later = now + timedelta(days=1)
    assert matcher.match(event, now=later) == []
    assert matcher.match_many([event], now=later).by_event() == [[]]
    assert matcher.match(event, now=later - timedelta(seconds=1)) == ["new"]


def check_why_agrees_with_the_answer(factory: MatcherFactory) -> None:
    """`why` and `why_not` agree with `match`, and can be printed."""
    matcher = fill_matcher(factory)
    for event in EVENTS:
        ids = set(matcher.match(event))
        for id in matcher:
            assert matcher.why(event, id).matched == matcher.why_not(event, id).matched == (id in ids)
            assert str(matcher.why(event, id))
    assert str(matcher.explain())
    assert isinstance(matcher.explain().to_dict(), dict)
