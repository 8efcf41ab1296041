"""Checks of adding, replacing and removing subscriptions."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from tidings.errors import BadSubscriptions, FilterError, KindConflict, TidingsError, UnknownSubscription, Unsupported
from tidings.lang import parse
from tidings.testing.checks.base import (
    DECLARED,
    EVENTS,
    add_supported,
    choose_vocabulary,
    collect_answers,
    expect_error,
    fill_matcher,
    find_scope,
    run_on_cases,
)
from tidings.testing.hypothesis_import import evenly
from tidings.testing.strategies import cases, mixed_cases

if TYPE_CHECKING:
    from tidings.matcher import Matcher
    from tidings.matcher.algorithm import SubId
    from tidings.testing.checks.base import MatcherFactory
    from tidings.testing.strategies import Case


def check_order_of_adding_does_not_matter(factory: MatcherFactory) -> None:
    """The same subscriptions give the same answers, in whichever order and by whichever call they were added."""
    searches, wanted = choose_vocabulary(factory).searches, collect_answers(fill_matcher(factory))
    assert collect_answers(fill_matcher(factory, dict(reversed(searches.items())))) == wanted
    one_by_one = factory()
    for id, text in sorted(searches.items()):
        one_by_one.add(id, text)
    assert collect_answers(one_by_one) == wanted


def check_text_and_tree_mean_the_same(factory: MatcherFactory) -> None:
    """A subscription may be text or a parsed filter, alone or in an Arrow table with its notation."""
    import pyarrow as pa

    parsed = factory()
    parsed.add_many((id, parse(text)) for id, text in choose_vocabulary(factory).searches.items())
    assert collect_answers(parsed) == collect_answers(fill_matcher(factory))
    table = pa.table({"id": ["t", "u"], "filter": ["price < 9000", "price_to=8999"], "notation": ["text", "url"]})
    for source in (table, table.to_batches()[0]):
        from_arrow = factory()
        from_arrow.add_many(source)
        assert collect_answers(from_arrow)[:2] == [{"t", "u"}, set()]


def check_removed_means_gone(factory: MatcherFactory) -> None:
    """A removed subscription is in no answer; removing it again raises `UnknownSubscription`, a `KeyError`."""
    matcher = fill_matcher(factory)
    before = collect_answers(matcher)
    matcher.remove("ford")
    assert collect_answers(matcher) == [ids - {"ford"} for ids in before]
    assert "ford" not in matcher
    searches = choose_vocabulary(factory).searches
    assert len(matcher) == len(searches) - 1
    problem = expect_error(UnknownSubscription, lambda: matcher.remove("ford"))
    assert isinstance(problem, KeyError)
    expect_error(UnknownSubscription, lambda: matcher.remove("never there"))
    matcher.add("ford", searches["ford"])
    assert collect_answers(matcher) == before


def check_replaced_means_replaced(factory: MatcherFactory) -> None:
    """Adding a filter under an existing id replaces the old filter completely."""
    matcher = fill_matcher(factory)
    size = len(matcher)
    matcher.add("everything", choose_vocabulary(factory).kia)
    assert len(matcher) == size
    assert ["everything" in ids for ids in collect_answers(matcher)] == [False, False, False, True, False]
    matcher.add_many([("everything", "false"), ("everything", "year exists")])
    assert len(matcher) == size
    assert ["everything" in ids for ids in collect_answers(matcher)] == [True, True, True, False, False]


def check_add_many_is_all_or_nothing(factory: MatcherFactory) -> None:
    """With bad filters among good ones nothing is added, and the error lists every bad one by id."""
    matcher = fill_matcher(factory, schema=DECLARED)
    before, ids = collect_answers(matcher), set(matcher)
    bad = [("bad", "price <"), ("worse", "make ="), ("clash", "price = 'x'")]
    mixed = [("fine", "price < 1"), bad[0], ("cheap", "true"), *bad[1:]]
    problem = expect_error(BadSubscriptions, lambda: matcher.add_many(mixed))
    assert isinstance(problem, BadSubscriptions)
    assert [id for id, _ in problem.errors] == [id for id, _ in bad]
    assert all(isinstance(error, TidingsError) for _, error in problem.errors)
    assert all(id in str(problem) for id, _ in bad)
    assert (collect_answers(matcher), set(matcher)) == (before, ids)


def check_add_many_collects(factory: MatcherFactory) -> None:
    """With `on_error="collect"` good filters are added and bad ones returned."""
    matcher = factory()
    errors = matcher.add_many([("fine", "price < 9000"), ("bad", "price <"), ("good", "true")], on_error="collect")
    assert [(id, type(error)) for id, error in errors] == [("bad", FilterError)]
    assert set(matcher) == {"fine", "good"}
    assert collect_answers(matcher) == [{"fine", "good"}, {"good"}, {"good"}, {"fine", "good"}, {"good"}]
    assert matcher.add_many([("more", "false")], on_error="collect") == []


def check_a_refused_filter_changes_nothing(factory: MatcherFactory) -> None:
    """An `add` that fails changes neither the subscription of that id nor any other."""
    matcher = fill_matcher(factory, schema=DECLARED)
    before = collect_answers(matcher)
    expect_error(FilterError, lambda: matcher.add("cheap", "price <"))
    expect_error(FilterError, lambda: matcher.add("new", "price < 'unclosed"))
    vocabulary = choose_vocabulary(factory)
    assert vocabulary.clashing in str(expect_error(FilterError, lambda: matcher.add("cheap", vocabulary.clash)))
    problem = expect_error(KindConflict, lambda: matcher.add("cheap", parse(vocabulary.clash)))
    assert "cheap" in str(problem)
    assert vocabulary.clashing in str(problem)
    assert collect_answers(matcher) == before
    assert set(matcher) == set(vocabulary.searches)


def check_what_cannot_be_expressed_is_refused_by_name(factory: MatcherFactory) -> None:
    """A filter that a matcher does not support is refused with the reason, and leaves no trace in it."""
    matcher = fill_matcher(factory)
    before = collect_answers(matcher)
    wild = [("wild", "name matches /a+b/ and not (size < `cost`)"), ("cheap", "all(name) like '*x?' or price < 9000")]
    problems = matcher.add_many(wild, on_error="collect")
    for id, problem in problems:
        assert isinstance(problem, Unsupported), problem
        assert problem.kind == matcher.kind
        assert "td.Matcher()" in str(problem)
        assert problem.part in str(problem)
        if id == "wild":
            assert "wild" not in matcher
    if len(problems) == len(wild):  # no filter names `size` and `name`, so their values must not matter
        strange = [{**event, "size": "x", "cost": 5, "name": 7} for event in EVENTS]
        assert collect_answers(matcher, strange) == before


def check_subscriptions_do_not_touch_each_other(factory: MatcherFactory) -> None:
    """Adding and removing subscriptions changes neither the matches of others nor which events are bad."""
    strategy = evenly((mixed_cases(find_scope(factory)), cases(bad=True)))
    run_on_cases(strategy, lambda case: _check_isolation(factory, case), examples=60)


def _check_isolation(factory: MatcherFactory, case: Case) -> None:
    """Compare the matches of the first half of the filters alone with those next to the second half."""
    half = (len(case.filters) + 1) // 2
    numbered = dict(enumerate(case.filters))
    some, others = ({id: tree for id, tree in numbered.items() if (id < half) is first} for first in (True, False))
    for early in (False, True):
        matcher = factory(**case.world.keywords)
        if early:
            add_supported(matcher, others)
        own = set(add_supported(matcher, some))
        if not early:
            alone = _match_own(matcher, case, own)
            add_supported(matcher, others)
        assert _match_own(matcher, case, own) == alone
        matcher.remove_many([id for id in matcher if id not in own])
        assert _match_own(matcher, case, own) == alone


def _match_own(matcher: Matcher, case: Case, own: set[int]) -> list[set[int] | None]:
    """Return, for each event, which of these subscriptions match it; None for a bad event."""
    matches = matcher.match_many(list(case.events), on_error="collect")
    bad = {letter.index for letter in matches.dead_letters}
    return [None if number in bad else own & set(ids) for number, ids in enumerate(matches.by_event())]


def check_ids_are_text_or_integers_not_both(factory: MatcherFactory) -> None:
    """Ids are all `str` or all `int`; others are refused, which changes nothing."""
    by_text, by_number = factory(), factory()
    by_text.add("1", "true")
    by_number.add_many([(1, "true"), (2, "false"), (-(2**40), "true")])
    for matcher, wrong in ((by_text, 1), (by_number, "1"), (by_text, None), (by_text, True), (by_number, 1.5)):
        size = len(matcher)
        expect_error(TidingsError, lambda matcher=matcher, wrong=wrong: matcher.add(wrong, "true"))  # type: ignore[misc]
        assert len(matcher) == size
        assert wrong not in matcher
    assert set(by_number.match({})) == {1, -(2**40)}
    assert by_text.match({}) == ["1"]
    assert (
        sorted(by_number.match_many([{}, {}]).to_arrow().column("subscription").to_pylist()) == [-(2**40)] * 2 + [1] * 2
    )


def check_size_membership_and_ids(factory: MatcherFactory) -> None:
    """`len`, `in` and iteration agree with what was added, and change nothing."""
    matcher = factory()
    assert (len(matcher), list(matcher), "s" in matcher, matcher.match({})) == (0, [], False, [])
    matcher, searches = fill_matcher(factory), choose_vocabulary(factory).searches
    assert (len(matcher), set(matcher)) == (len(searches), set(searches))
    assert all(id in matcher for id in searches)
    odds: tuple[object, ...] = (None, 5, "other", ["cheap"], {})
    for odd in odds:
        assert odd not in matcher
    for id in matcher:  # iteration is over a copy: removing meanwhile is fine
        matcher.remove(id)
    assert (len(matcher), collect_answers(matcher)) == (0, [set() for _ in EVENTS])


def check_saved_and_opened_is_the_same(factory: MatcherFactory) -> None:
    """A snapshot opens with the same ids and answers; changing the opened matcher leaves the snapshot unchanged."""
    with tempfile.TemporaryDirectory() as folder:
        for name, matcher in (("full", fill_matcher(factory)), ("empty", factory())):
            path = Path(folder) / name
            matcher.save(path)
            wanted = collect_answers(matcher)
            matcher.add("late", "true")
            _check_copy(type(matcher).open(path), wanted, choose_vocabulary(factory).ford)
            assert (path / "manifest.json").is_file()
            matcher.save(path)
            assert "late" in type(matcher).open(str(path))


def check_pickled_is_the_same(factory: MatcherFactory) -> None:
    """An unpickled matcher has the same ids and answers, and is independent of the original."""
    matcher = fill_matcher(factory)
    wanted = collect_answers(matcher)
    _check_copy(pickle.loads(pickle.dumps(matcher)), wanted, choose_vocabulary(factory).ford)  # noqa: S301 - our own pickle
    assert collect_answers(matcher) == wanted


def _check_copy(copy: Matcher, wanted: list[set[SubId]], ford: str) -> None:
    assert collect_answers(copy) == wanted
    copy.add("another", "true")
    copy.remove("another")
    copy.add("another", ford)
    assert collect_answers(copy) == [
        ids | ({"another"} if event.get("make") == "ford" else set()) for ids, event in zip(wanted, EVENTS, strict=True)
    ]


def check_churn_leaves_no_trace(factory: MatcherFactory) -> None:
    """After many additions, replacements and removals the answers are those of a new matcher."""
    rng = Random(5)
    matcher = factory()
    texts_by_id: dict[str, str] = {}
    texts = list(choose_vocabulary(factory).searches.values())
    for step in range(300):
        id = f"s{rng.randrange(20)}"
        if id in texts_by_id and rng.random() < 0.5:
            matcher.remove(id)
            del texts_by_id[id]
        else:
            texts_by_id[id] = rng.choice(texts)
            matcher.add(id, texts_by_id[id])
        if step % 50 == 49:
            assert set(matcher) == set(texts_by_id)
            assert collect_answers(matcher) == collect_answers(fill_matcher(factory, texts_by_id))
