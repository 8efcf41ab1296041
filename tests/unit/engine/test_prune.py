"""What only the dead asked for goes with them: lists follow the living, however much has changed."""

from collections import Counter

import pytest
from tests.differential.engine_worlds import Drawer, EngineWorld, set_to
from tests.unit.engine.invariants import check_segment

import tidings as td
from tidings.engine.compile.code_spaces import LinearSpace
from tidings.engine.tuning import EngineTuning, use_tuning


def lists(matcher):
    """How long the lists are that the rows of a matcher point into; it is compact, so there is one segment."""
    [part] = matcher.backend.state.parts
    segment, total = part.segment, Counter()
    total.update({column: len(space) for column, space in zip(segment.columns, segment.spaces, strict=True)})
    total["unions"] = len(segment.index.rows.union_start)
    total["intervals"] = len(segment.index.rows.union_low)
    total["items"] = len(segment.exact_checks.items)
    total.update({name: len(automaton.tests) for name, automaton in segment.automata.items()})
    total["rows"] = len(segment.index.rows.start)
    return total


@pytest.mark.parametrize("way", ["compiled", "any plan", "trees"])
@pytest.mark.parametrize("seed", range(6))
def test_after_a_merge_the_lists_are_those_of_the_living_alone(way, seed):
    world = Drawer(900 + seed).world(60, 40)
    living = EngineWorld(
        {id: tree for at, (id, tree) in enumerate(world.filters.items()) if at % 3 == 0}, world.events, world.keywords
    )
    with set_to(way):
        matcher, fresh = world.build_matcher(), world.build_matcher()
        matcher.add_many(world.filters.items())
        matcher.remove_many(set(world.filters) - set(living.filters))
        fresh.add_many(living.filters.items())
        for built in (matcher, fresh):
            built.compact()
            built.settle()
    assert [set(match) for match in matcher.match_many(world.events).by_event()] == living.evaluate_by_law()
    for part in matcher.backend.state.parts:
        check_segment(part.segment)
    assert lists(matcher) <= lists(fresh)  # a draft also lists the ends that `a < 5` does not have


def test_dense_integers_stay_without_a_list_or_get_one_when_few_are_left():
    with use_tuning(EngineTuning(listed_ends=8)):
        matcher = td.Matcher()
    matcher.add_many((number, f"a < {number}") for number in range(100))
    matcher.remove_many(range(40))
    matcher.compact()
    [space] = matcher.backend.state.parts[0].segment.spaces
    assert space == LinearSpace(40, 60)
    assert sorted(matcher.match({"a": 90})) == list(range(91, 100))
    matcher.remove_many(range(50, 100))
    matcher.compact()
    assert matcher.match({"a": 48}) == [49]
    matcher.remove_many(range(43, 50))
    matcher.compact()
    [space] = matcher.backend.state.parts[0].segment.spaces
    assert not isinstance(space, LinearSpace)
    assert sorted(matcher.match({"a": 40.5})) == [41, 42]


def draw_churn(round):
    """Filters of every kind that keeps a list, with values that never come again."""
    for number in range(1000 * round, 1000 * round + 60):
        yield 5 * number, f"a{round} = {number} and b = 't{number}'"
        yield 5 * number + 1, f"t contains 'x{number}' and b in ('u{number}', 'v{number}')"
        yield 5 * number + 2, f"spot near ({number % 170}, 47.4) {number} m"
        yield 5 * number + 3, f"(a = {number} or b = 'w{number}') and (c = {number} or t like 'y*{number}')"
        yield 5 * number + 4, f"a < {number}.5 or b starts with 'p{number}'"


def count_entries(matcher):
    total = 0
    for part in matcher.backend.state.parts:
        segment = part.segment
        total += sum(map(len, segment.spaces)) + len(segment.columns) + len(segment.index.rows.union_low)
        total += len(segment.exact_checks.items) + sum(len(automaton.tests) for automaton in segment.automata.values())
        total += len(segment)
    return total


def test_under_constant_change_nothing_grows_but_with_the_living():
    matcher = td.Matcher()
    matcher.add_many(draw_churn(0))
    matcher.compact()
    first, sizes = count_entries(matcher), []
    for round in range(1, 13):
        gone = list(matcher)
        matcher.add_many(draw_churn(round))
        matcher.remove_many(gone)
        matcher.settle()
        sizes.append(count_entries(matcher))
        assert len(matcher) == 300
    assert max(sizes) <= 3 * first, (first, sizes)  # at most 30 % of a segment are dead, and a few segments wait
    matcher.compact()
    assert count_entries(matcher) <= first + 20
