"""Checks of answers: one event or many, good or bad, against the law."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tidings.algebra import evaluate
from tidings.bench.workloads import NOW, car_ads, saved_searches
from tidings.errors import BadEvent, Unsupported
from tidings.model import TRUE, Event, EventBatch
from tidings.testing.checks.base import DECLARED, EVENTS, answers, filled, for_all, reach, refused, taken, words
from tidings.testing.strategies import cases, mixed_cases

if TYPE_CHECKING:
    from tidings.matcher import Matcher
    from tidings.model import Filter
    from tidings.testing.checks.base import Factory
    from tidings.testing.strategies import Case, World

BAD = {"make": "ford", "brand": 7, "price": "expensive"}
"""An event whose price no search can read: bad where the price is declared, and not otherwise."""


def check_agrees_with_evaluate(factory: Factory) -> None:
    """On drawn worlds, filters and events, every matcher gives what `evaluate` says, scalar and batch."""
    for_all(cases(bad=True), lambda case: _check_case(factory, case), examples=150)


def _check_case(factory: Factory, case: Case) -> None:
    matcher = factory(**case.world.keywords)
    filters = taken(matcher, dict(enumerate(case.filters)))
    wanted = [_by_law(filters, event, case.world) for event in case.events]
    found = matcher.match_many(list(case.events), on_error="collect")
    assert [set(ids) for ids in found.by_event()] == [ids or set() for ids in wanted]
    assert {letter.index for letter in found.dead_letters} == {at for at, ids in enumerate(wanted) if ids is None}
    assert all(letter.reason for letter in found.dead_letters)
    for event, ids in zip(case.events, wanted, strict=True):
        _check_one(matcher, event, ids)


def _check_one(matcher: Matcher, event: dict[str, Any], wanted: set[int] | None) -> None:
    if wanted is None:
        refused(BadEvent, lambda: matcher.match(event))
    else:
        found = matcher.match(event)
        assert set(found) == wanted
        assert len(found) == len(wanted)


def _by_law(filters: dict[int, Filter], event: dict[str, Any], world: World) -> set[int] | None:
    """The ids that `evaluate` accepts, each asked alone; nothing for an event that is bad whoever asks."""
    try:
        evaluate(TRUE, event, **world.keywords)
    except BadEvent:
        return None
    return {at for at, tree in filters.items() if evaluate(tree, event, **world.keywords)}


def check_agrees_with_evaluate_on_mixed_kinds(factory: Factory) -> None:
    """The same where filters ask one attribute for different kinds, and events carry anything; no event is bad."""
    for_all(mixed_cases(reach(factory)), lambda case: _check_case(factory, case), examples=100)


def check_kinds_live_side_by_side(factory: Factory) -> None:
    """Filters that ask one attribute for different kinds each hear of the values that they can read."""
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
    expected: list[tuple[Any, set[str]]] = [
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
    assert [set(ids) for ids in matcher.match_many(events).by_event()] == [ids & set(matcher) for _, ids in expected]


def check_agrees_with_evaluate_on_car_ads(factory: Factory) -> None:
    """The same on a workload as people have it."""
    matcher = factory(now=NOW)
    problems = matcher.add_many(saved_searches(60, seed=3), on_error="collect")
    assert all(isinstance(problem, Unsupported) for _, problem in problems)
    ads = car_ads(40, seed=3)
    wanted = [{id for id in matcher if evaluate(matcher[id], ad, now=NOW)} for ad in ads]
    assert any(wanted) or problems
    assert [set(ids) for ids in matcher.match_many(ads).by_event()] == wanted


def check_batch_equals_scalar(factory: Factory) -> None:
    """`match_many` gives what `match` gives, in each of its forms, for each way to hand events in."""
    matcher = filled(factory)
    wanted = answers(matcher)
    events: list[Any] = list(EVENTS)
    wrapped = [Event(id=at, values=event, payload=b"opaque") for at, event in enumerate(EVENTS)]
    for batch in (events, tuple(events), iter(events), EventBatch(events), wrapped):
        found = matcher.match_many(batch)
        lists = found.by_event()
        assert [set(ids) for ids in lists] == wanted
        assert len(lists) == len(events)
        pairs = [(at, id) for at, ids in enumerate(lists) for id in ids]
        assert sorted(found) == sorted(pairs)
        assert len(found) == len(pairs)
        assert list(zip(found.event_index.tolist(), found.ids, strict=True)) == list(found)
        assert found.event_index.dtype == "int64"
        _check_arrow(found.to_arrow(), pairs)


def _check_arrow(table: Any, pairs: list[tuple[int, Any]]) -> None:
    assert table.column_names == ["event", "subscription"]
    assert str(table.schema.field("event").type) == "int64"
    columns = [table.column(name).to_pylist() for name in table.column_names]
    assert sorted(zip(*columns, strict=True)) == sorted(pairs)


def check_arrow_events_are_events(factory: Factory) -> None:
    """An Arrow table of events gives what its rows give."""
    import pyarrow as pa

    matcher = filled(factory)
    rows = [{**event, "spot": None, "east": None, "year": None} for event in EVENTS]
    table = pa.Table.from_pylist(
        [{key: row.get(key) for key in ("make", "price", "tags", "year", "brand", "marks")} for row in rows]
    )
    for batch in (table, table.combine_chunks().to_batches()[0], EventBatch.of(table)):
        assert [set(ids) for ids in matcher.match_many(batch).by_event()] == answers(matcher, rows)


def check_an_empty_batch_is_fine(factory: Factory) -> None:
    """No events, or no subscriptions, give no pairs."""
    assert (len(filled(factory).match_many([])), filled(factory).match_many([]).by_event()) == (0, [])
    found = factory().match_many(EVENTS)
    assert (len(found), found.by_event(), found.to_arrow().num_rows) == (0, [[] for _ in EVENTS], 0)


def check_each_id_comes_once(factory: Factory) -> None:
    """A subscription that an event satisfies in several ways hears of it once."""
    matcher = factory()
    matcher.add_many(words(factory).often.items())
    event = {"a": [1, 2, 1], "b": 5, "t": ["x", "y", "xy", "x"]}
    assert sorted(matcher.match(event)) == ["often", "tags"]
    assert sorted(matcher.match_many([event, event])) == [(0, "often"), (0, "tags"), (1, "often"), (1, "tags")]


def check_unknown_attributes_are_ignored(factory: Factory) -> None:
    """What nobody asked for is not looked at, whatever it holds."""
    matcher = filled(factory)
    strange = {"other": object(), "nan": float("nan"), "deep": {"er": [None, {}]}, "price.note": 5, "": 1}
    noisy = [{**event, **strange} for event in EVENTS]
    assert answers(matcher, noisy) == answers(matcher)
    assert [set(ids) for ids in matcher.match_many(noisy).by_event()] == answers(matcher)


def check_bad_events_are_refused(factory: Factory) -> None:
    """An event that breaks the schema raises `BadEvent` that names the attribute; what is no event raises it too."""
    matcher = filled(factory, schema=DECLARED)
    problem = refused(BadEvent, lambda: matcher.match(BAD))
    assert "price" in str(problem)
    assert getattr(problem, "attribute", None) == "price"
    odds: tuple[Any, ...] = (None, 5, "text", [EVENTS[0]], b"")
    for odd in odds:
        refused(BadEvent, lambda odd=odd: matcher.match(odd))  # type: ignore[misc]
    refused(BadEvent, lambda: matcher.match_many([EVENTS[0], BAD]))
    refused(BadEvent, lambda: matcher.match_many(EVENTS[0]))
    assert answers(matcher) == answers(filled(factory))
    refused(BadEvent, lambda: factory(schema=DECLARED).match(BAD))  # though nobody asks for the price


def check_undeclared_values_make_no_event_bad(factory: Factory) -> None:
    """Where nothing is declared, what a filter cannot read does not satisfy it, and the others hear as ever."""
    matcher = filled(factory)
    without = {key: value for key, value in BAD.items() if key != "price"}
    assert answers(matcher, [BAD]) == answers(matcher, [without])
    assert matcher.match_many([BAD, *EVENTS], on_error="collect").dead_letters == ()


def check_bad_events_are_collected(factory: Factory) -> None:
    """With `on_error="collect"` bad events are dead letters with a reason, and the others match as ever."""
    matcher = filled(factory, schema=DECLARED)
    found = matcher.match_many([BAD, *EVENTS, BAD, "no event"], on_error="collect")
    assert [letter.index for letter in found.dead_letters] == [0, len(EVENTS) + 1, len(EVENTS) + 2]
    assert "price" in found.dead_letters[0].reason
    assert [set(ids) for ids in found.by_event()] == [set(), *answers(matcher), set(), set()]


def check_unlike_values_do_not_compare(factory: Factory) -> None:
    """Two attributes that are unlike in one event do not satisfy a comparison; text that is a number is like one."""
    matcher = factory()
    matcher.add("bargain", "price < `list_price`")
    events: list[dict[str, Any]] = [
        {"price": 1, "list_price": 2},
        {"price": 1, "list_price": "two"},
        {"price": 2, "list_price": 1},
        {"price": 1, "list_price": "2"},
    ]
    wanted: list[list[str]] = [["bargain"], [], [], ["bargain"]]
    assert [matcher.match(event) for event in events] == wanted
    assert matcher.match_many(events).by_event() == wanted


def check_inputs_are_not_aliased(factory: Factory) -> None:
    """Changing an event, a list or a table after the call changes nothing; the call changes none of them."""
    given = [[id, text] for id, text in words(factory).searches.items()]
    matcher = factory()
    matcher.add_many(given)
    wanted = answers(matcher)
    for pair in given:
        pair[1] = "false"
    given.clear()
    assert answers(matcher) == wanted
    events = deepcopy(EVENTS)
    found = matcher.match_many(events)
    assert events == EVENTS
    lists = found.by_event()
    for event in events:
        event.clear()
    events.clear()
    lists[0].clear()
    assert [set(ids) for ids in found.by_event()] == wanted
    matcher.match(EVENTS[0]).clear()
    assert answers(matcher) == wanted


def check_a_tree_given_as_json_is_not_aliased(factory: Factory) -> None:
    """A filter given as a decoded JSON object is read once, and not kept."""
    import json

    from tidings.lang import parse, render

    tree = json.loads(render(parse(words(factory).searches["set"]), notation="json"))
    matcher = factory()
    matcher.add("set", tree, notation="json")
    wanted = ["set" in found for found in answers(filled(factory))]
    _spoil(tree)
    assert ["set" in found for found in answers(matcher)] == wanted


def _spoil(tree: Any) -> None:
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        _spoil(part)
    if isinstance(tree, dict | list):
        tree.clear()


def check_now_is_an_argument(factory: Factory) -> None:
    """Ages are reckoned against the matcher's `now`, or the call's."""
    now = datetime(2024, 5, 1, tzinfo=UTC)
    matcher = factory(now=now)
    matcher.add("new", "age(posted) < 7 days")
    event = {"posted": now - timedelta(days=6)}
    assert matcher.match(event) == ["new"]
    later = now + timedelta(days=1)
    assert matcher.match(event, now=later) == []
    assert matcher.match_many([event], now=later).by_event() == [[]]
    assert matcher.match(event, now=later - timedelta(seconds=1)) == ["new"]


def check_why_agrees_with_the_answer(factory: Factory) -> None:
    """`why` and `why_not` tell what happened, and print."""
    matcher = filled(factory)
    for event in EVENTS:
        found = set(matcher.match(event))
        for id in matcher:
            assert matcher.why(event, id).matched == matcher.why_not(event, id).matched == (id in found)
            assert str(matcher.why(event, id))
    assert str(matcher.explain())
    assert isinstance(matcher.explain().to_dict(), dict)
