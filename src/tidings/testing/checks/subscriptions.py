"""Checks of adding, replacing and removing subscriptions."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from tidings.errors import (
    BadSubscriptions,
    FilterError,
    KindConflict,
    TidingsError,
    UnknownSubscription,
    Unsupported,
)
from tidings.lang import parse
from tidings.testing.checks.base import DECLARED, EVENTS, answers, filled, for_all, reach, refused, taken, words
from tidings.testing.hypothesis_import import evenly
from tidings.testing.strategies import cases, mixed_cases

if TYPE_CHECKING:
    from tidings.matcher import Matcher
    from tidings.testing.checks.base import Factory
    from tidings.testing.strategies import Case


def check_order_of_adding_does_not_matter(factory: Factory) -> None:
    """The same subscriptions give the same answers, whichever way and in whichever order they came."""
    searches, wanted = words(factory).searches, answers(filled(factory))
    assert answers(filled(factory, dict(reversed(searches.items())))) == wanted
    one_by_one = factory()
    for id, text in sorted(searches.items()):
        one_by_one.add(id, text)
    assert answers(one_by_one) == wanted


def check_text_and_tree_mean_the_same(factory: Factory) -> None:
    """A subscription may be text or a parsed filter, alone or in an Arrow table with its notation."""
    import pyarrow as pa

    parsed = factory()
    parsed.add_many((id, parse(text)) for id, text in words(factory).searches.items())
    assert answers(parsed) == answers(filled(factory))
    table = pa.table({"id": ["t", "u"], "filter": ["price < 9000", "price_to=8999"], "notation": ["text", "url"]})
    for source in (table, table.to_batches()[0]):
        from_arrow = factory()
        from_arrow.add_many(source)
        assert answers(from_arrow)[:2] == [{"t", "u"}, set()]


def check_removed_means_gone(factory: Factory) -> None:
    """A removed subscription is in no answer; removing it again is a `KeyError` of ours."""
    matcher = filled(factory)
    before = answers(matcher)
    matcher.remove("ford")
    assert answers(matcher) == [found - {"ford"} for found in before]
    assert "ford" not in matcher
    searches = words(factory).searches
    assert len(matcher) == len(searches) - 1
    problem = refused(UnknownSubscription, lambda: matcher.remove("ford"))
    assert isinstance(problem, KeyError)
    refused(UnknownSubscription, lambda: matcher.remove("never there"))
    matcher.add("ford", searches["ford"])
    assert answers(matcher) == before


def check_replaced_means_replaced(factory: Factory) -> None:
    """A known id takes the new filter, and nothing of the old one stays."""
    matcher = filled(factory)
    size = len(matcher)
    matcher.add("everything", words(factory).kia)
    assert len(matcher) == size
    assert ["everything" in found for found in answers(matcher)] == [False, False, False, True, False]
    matcher.add_many([("everything", "false"), ("everything", "year exists")])
    assert len(matcher) == size
    assert ["everything" in found for found in answers(matcher)] == [True, True, True, False, False]


def check_add_many_is_all_or_nothing(factory: Factory) -> None:
    """With bad filters among good ones nothing is added, and the error lists every bad one by id."""
    matcher = filled(factory, schema=DECLARED)
    before, ids = answers(matcher), set(matcher)
    mixed = [
        ("fine", "price < 1"),
        ("bad", "price <"),
        ("cheap", "true"),
        ("worse", "make ="),
        ("clash", "price = 'x'"),
    ]
    problem = refused(BadSubscriptions, lambda: matcher.add_many(mixed))
    assert isinstance(problem, BadSubscriptions)
    assert [id for id, _ in problem.errors] == ["bad", "worse", "clash"]
    assert all(isinstance(error, TidingsError) for _, error in problem.errors)
    assert all(f"{id}" in str(problem) for id in ("bad", "worse", "clash"))
    assert (answers(matcher), set(matcher)) == (before, ids)


def check_add_many_collects(factory: Factory) -> None:
    """With `on_error="collect"` the good ones are added and the bad ones returned."""
    matcher = factory()
    errors = matcher.add_many([("fine", "price < 9000"), ("bad", "price <"), ("good", "true")], on_error="collect")
    assert [(id, type(error)) for id, error in errors] == [("bad", FilterError)]
    assert set(matcher) == {"fine", "good"}
    assert answers(matcher) == [{"fine", "good"}, {"good"}, {"good"}, {"fine", "good"}, {"good"}]
    assert matcher.add_many([("more", "false")], on_error="collect") == []


def check_a_refused_filter_changes_nothing(factory: Factory) -> None:
    """A refused `add` leaves the subscription of that id, and all others, as they were."""
    matcher = filled(factory, schema=DECLARED)
    before = answers(matcher)
    refused(FilterError, lambda: matcher.add("cheap", "price <"))
    refused(FilterError, lambda: matcher.add("new", "price < 'unclosed"))
    said = words(factory)
    assert said.clashing in str(refused(FilterError, lambda: matcher.add("cheap", said.clash)))
    problem = refused(KindConflict, lambda: matcher.add("cheap", parse(said.clash)))
    assert "cheap" in str(problem)
    assert said.clashing in str(problem)
    assert answers(matcher) == before
    assert set(matcher) == set(said.searches)


def check_what_cannot_be_expressed_is_refused_by_name(factory: Factory) -> None:
    """A matcher that lacks something says so in the error, and neither it nor its events remember the filter."""
    matcher = filled(factory)
    before = answers(matcher)
    wild = [("wild", "name matches /a+b/ and not (size < `cost`)"), ("cheap", "all(name) like '*x?' or price < 9000")]
    problems = matcher.add_many(wild, on_error="collect")
    for id, problem in problems:
        assert isinstance(problem, Unsupported), problem
        assert problem.kind == matcher.kind
        assert "td.Matcher()" in str(problem)
        assert problem.part in str(problem)
        if id == "wild":
            assert "wild" not in matcher
    if len(problems) == len(wild):  # nothing asks for `size` and `name`, so what they hold is nobody's business
        strange = [{**event, "size": "x", "cost": 5, "name": 7} for event in EVENTS]
        assert answers(matcher, strange) == before


def check_subscriptions_do_not_touch_each_other(factory: Factory) -> None:
    """Whoever comes or goes beside them, the others hear of the same events, and the same events are bad."""
    drawn = evenly((mixed_cases(reach(factory)), cases(bad=True)))
    for_all(drawn, lambda case: _check_apart(factory, case), examples=60)


def _check_apart(factory: Factory, case: Case) -> None:
    """Hold the first half of the filters against themselves beside the second half, which comes before or after."""
    half = (len(case.filters) + 1) // 2
    numbered = dict(enumerate(case.filters))
    some, others = ({id: tree for id, tree in numbered.items() if (id < half) is first} for first in (True, False))
    for early in (False, True):
        matcher = factory(**case.world.keywords)
        if early:
            taken(matcher, others)
        mine = set(taken(matcher, some))
        if not early:
            alone = _heard(matcher, case, mine)
            taken(matcher, others)
        assert _heard(matcher, case, mine) == alone
        matcher.remove_many([id for id in matcher if id not in mine])
        assert _heard(matcher, case, mine) == alone


def _heard(matcher: Matcher, case: Case, mine: set[int]) -> list[set[Any] | None]:
    """Return, for each event, who of these subscriptions hears of it; nothing for a bad one."""
    found = matcher.match_many(list(case.events), on_error="collect")
    bad = {letter.index for letter in found.dead_letters}
    return [None if at in bad else mine & set(ids) for at, ids in enumerate(found.by_event())]


def check_ids_are_text_or_integers_not_both(factory: Factory) -> None:
    """Ids are `str` or `int`; mixing them, or anything else, is refused and changes nothing."""
    by_text, by_number = factory(), factory()
    by_text.add("1", "true")
    by_number.add_many([(1, "true"), (2, "false"), (-(2**40), "true")])
    for matcher, wrong in ((by_text, 1), (by_number, "1"), (by_text, None), (by_text, True), (by_number, 1.5)):
        size = len(matcher)
        refused(TidingsError, lambda matcher=matcher, wrong=wrong: matcher.add(wrong, "true"))  # type: ignore[misc]
        assert len(matcher) == size
        assert wrong not in matcher
    assert set(by_number.match({})) == {1, -(2**40)}
    assert by_text.match({}) == ["1"]
    assert (
        sorted(by_number.match_many([{}, {}]).to_arrow().column("subscription").to_pylist()) == [-(2**40)] * 2 + [1] * 2
    )


def check_size_membership_and_ids(factory: Factory) -> None:
    """`len`, `in` and iteration tell what is there, without disturbing it."""
    matcher = factory()
    assert (len(matcher), list(matcher), "s" in matcher, matcher.match({})) == (0, [], False, [])
    matcher, searches = filled(factory), words(factory).searches
    assert (len(matcher), set(matcher)) == (len(searches), set(searches))
    assert all(id in matcher for id in searches)
    odds: tuple[object, ...] = (None, 5, "other", ["cheap"], {})
    for odd in odds:
        assert odd not in matcher
    for id in matcher:  # a list of its own: removing while iterating is fine
        matcher.remove(id)
    assert (len(matcher), answers(matcher)) == (0, [set() for _ in EVENTS])


def check_saved_and_opened_is_the_same(factory: Factory) -> None:
    """A snapshot opens with the same ids and answers, can be changed, and the saved one stays as it was."""
    with tempfile.TemporaryDirectory() as folder:
        for name, matcher in (("full", filled(factory)), ("empty", factory())):
            path = Path(folder) / name
            matcher.save(path)
            wanted = answers(matcher)
            matcher.add("late", "true")
            _check_copy(type(matcher).open(path), wanted, words(factory).ford)
            assert (path / "manifest.json").is_file()
            matcher.save(path)
            assert "late" in type(matcher).open(str(path))


def check_pickled_is_the_same(factory: Factory) -> None:
    """A pickled matcher comes back with the same ids and answers, and goes its own way."""
    matcher = filled(factory)
    wanted = answers(matcher)
    _check_copy(pickle.loads(pickle.dumps(matcher)), wanted, words(factory).ford)  # noqa: S301 - our own pickle
    assert answers(matcher) == wanted


def _check_copy(copy: Matcher, wanted: list[set[Any]], ford: str) -> None:
    assert answers(copy) == wanted
    copy.add("another", "true")
    copy.remove("another")
    copy.add("another", ford)
    assert answers(copy) == [
        found | ({"another"} if event.get("make") == "ford" else set())
        for found, event in zip(wanted, EVENTS, strict=True)
    ]


def check_churn_leaves_no_trace(factory: Factory) -> None:
    """After many additions, replacements and removals the answers are those of a matcher freshly filled."""
    rng = Random(5)
    matcher = factory()
    kept: dict[str, str] = {}
    texts = list(words(factory).searches.values())
    for step in range(300):
        id = f"s{rng.randrange(20)}"
        if id in kept and rng.random() < 0.5:
            matcher.remove(id)
            del kept[id]
        else:
            kept[id] = rng.choice(texts)
            matcher.add(id, kept[id])
        if step % 50 == 49:
            assert set(matcher) == set(kept)
            assert answers(matcher) == answers(filled(factory, kept))
