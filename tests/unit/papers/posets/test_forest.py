"""The covering forest and the poset against brute force; routes, deadlines, and corrections of the text."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

import tidings as td
from tidings.algebra import AttributeReader, Setting, collect_requirements
from tidings.concepts import Ontology, Vocabulary
from tidings.lang import parse
from tidings.matcher.brute import Brute
from tidings.model import FALSE, TRUE, Is, Not, Quantifier, Range, Test, all_of, any_of, one_of
from tidings.papers.posets.forest import Forest, SkipMode
from tidings.papers.posets.poset import Poset

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KINDS = [Forest, Poset]
NUMBERS = st.integers(0, 6)


@st.composite
def literals(draw):
    """Draw a test of few numbers, so that filters cover each other often."""
    low, high = sorted((draw(NUMBERS), draw(NUMBERS)))
    span = Range(low, high, draw(st.booleans()), draw(st.booleans()))
    condition = draw(st.sampled_from([span, span, Range(low, None), Range(None, high), Is(low), one_of([low, high])]))
    quantifier = draw(st.sampled_from([Quantifier.ANY] * 6 + list(Quantifier)))
    test = Test(draw(st.sampled_from("abc")), condition, quantifier)
    return draw(st.sampled_from([test, test, test, test, Not(test)]))


CONJUNCTIONS = st.lists(literals(), max_size=3).map(all_of)
FILTERS = st.one_of(
    CONJUNCTIONS, CONJUNCTIONS, st.lists(CONJUNCTIONS, max_size=2).map(any_of), st.just(TRUE), st.just(FALSE)
)
VALUE = st.one_of(
    NUMBERS,
    NUMBERS,
    st.lists(NUMBERS, max_size=3),
    st.tuples(NUMBERS, NUMBERS).map(lambda ends: td.Range(*sorted(ends))),
)
EVENTS = st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys("abc", VALUE)), min_size=1, max_size=4)
STEPS = st.lists(st.tuples(st.integers(0, 9), st.one_of(FILTERS, FILTERS, FILTERS, st.none())), min_size=1, max_size=14)
SETTING = Setting(Ontology(), NOW)


def readings_of(filters, events):
    """Return the events as these filters see them."""
    reader = AttributeReader(collect_requirements(filters, Vocabulary(ontology=SETTING.ontology)), SETTING.ontology)
    return [reader.read(event, NOW) for event in events]


def fill_matcher(kind, texts, **options):
    """Return a matcher with these filters, and how it reads an event."""
    trees = {id: parse(text) for id, text in texts.items()}
    made = kind(SETTING.ontology, **options)
    made.add_many((id, made.compile_filter(tree)) for id, tree in trees.items())
    check(made)
    return made, lambda event: readings_of(trees.values(), [event])[0]


def check(made):
    """Hold the order to what it promises; a forest has one parent at most, and counts the interfaces below."""
    seen, waiting = set(), list(made.roots)
    assert not any(root.parents for root in made.roots)
    while waiting:
        node = waiting.pop()
        if node in seen:
            assert isinstance(made, Poset)  # in a forest, every node is reached once
            continue
        seen.add(node)
        assert node.subscribers
        for child in node.children:
            assert node in child.parents
            assert made.coverage.covers(node, child)
            waiting.append(child)
        assert all(node in set(parent.children) for parent in node.parents)
        if not isinstance(made, Poset):
            assert len(node.parents) <= 1
            below = sum((child.interfaces_below for child in node.children), node.interfaces.copy())
            assert below == node.interfaces_below
    assert seen == set(made.nodes.values())


class Ticking:
    """A clock that goes one on whenever it is looked at: once for each node."""

    def __init__(self):
        self.now = -1

    def __call__(self):
        self.now += 1
        return self.now


@pytest.mark.parametrize("kind", KINDS)
@examples(60)
@given(steps=STEPS, events=EVENTS, interfaces=st.lists(st.integers(0, 3), min_size=10, max_size=10))
def test_answers_agree_with_brute_force_whatever_comes_and_goes(kind, steps, events, interfaces):
    made, brute = kind(SETTING.ontology, interfaces=dict(enumerate(interfaces))), Brute()
    readings = readings_of([tree for _, tree in steps if tree is not None], events)
    present_ids = set()
    for id, tree in steps:
        if tree is not None:
            made.add_many([(id, made.compile_filter(tree))])
            brute.add_many([(id, tree)])
            present_ids.add(id)
        elif id in present_ids:
            made.remove(id)
            brute.remove(id)
            present_ids.discard(id)
        check(made)
        for reading in readings:
            wanted = brute.match(reading, SETTING)
            ids = made.match(reading, SETTING)
            assert sorted(ids) == sorted(wanted)
            for skip in SkipMode:
                routed = made.route(reading, SETTING, skip=skip)
                assert set(routed.ids) == {interfaces[id] for id in wanted}
                assert not routed.approximate
    for id in present_ids:
        made.remove(id)
    assert made.explain()["nodes"] == made.explain()["roots"] == len(made.interface_counts) == 0


@pytest.mark.parametrize("kind", KINDS)
@examples(60)
@given(filters=st.lists(FILTERS, max_size=12), events=EVENTS, deadline=st.integers(0, 14))
def test_a_deadline_gives_false_positives_and_never_a_miss(kind, filters, events, deadline):
    made, brute = kind(SETTING.ontology), Brute()
    made.add_many(enumerate(filters))
    brute.add_many(enumerate(filters))
    for reading in readings_of(filters, events):
        wanted = set(brute.match(reading, SETTING))
        whole = made.match_until(reading, SETTING, deadline=1e9, clock=Ticking())
        assert set(whole.ids) == wanted
        assert not whole.approximate
        for walk in (made.match_until, made.route):
            answer = walk(reading, SETTING, deadline=deadline, clock=Ticking())
            assert set(answer.ids) >= wanted
            assert len(answer.ids) == len(set(answer.ids))
            assert answer.tests <= deadline
            assert answer.approximate or set(answer.ids) == wanted


NESTED = {
    "wide": "a in [0 .. 100]",
    "left": "a in [0 .. 50]",
    "right": "a in [50 .. 100]",
    "inner": "a in [10 .. 20]",
    "both": "a in [10 .. 20] and b = 1",
    "apart": "c = 1",
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_node_that_does_not_match_hides_its_subtree(kind):
    made, read = fill_matcher(kind, NESTED)
    assert made.explain()["roots"] == 2
    answer = made.match_until(read({"a": 200, "b": 1, "c": 1}), SETTING, deadline=1.0)
    assert (answer.ids, answer.tests) == (["apart"], 2)  # two roots, and nothing below them
    assert made.match_until(read({"a": 60}), SETTING, deadline=1.0).tests == 3


@pytest.mark.parametrize("kind", KINDS)
def test_equal_filters_share_a_node_however_they_are_written(kind):
    made, read = fill_matcher(kind, {1: "a >= 2 and b = 1", 2: "b = 1 and a >= 2", 3: "a >= 2 and b = 1 and a >= 1"})
    assert made.explain()["nodes"] == 1
    made.remove(1)
    assert sorted(made.match(read({"a": 2, "b": 1}), SETTING)) == [2, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_children_of_a_removed_node_move_up(kind):
    made, read = fill_matcher(kind, NESTED)
    made.remove("wide")
    check(made)
    made.remove("left")
    check(made)
    assert sorted(made.match(read({"a": 15, "b": 1}), SETTING)) == ["both", "inner"]


def test_a_poset_has_a_node_under_all_its_covers_and_tests_it_once_all_matched():
    texts = {"a": "a >= 1", "b": "b >= 1", "ab": "a >= 2 and b >= 2"}
    forest, read = fill_matcher(Forest, texts)
    poset, _ = fill_matcher(Poset, texts)
    event = read({"a": 5, "b": 0})
    assert forest.match(event, SETTING) == poset.match(event, SETTING) == ["a"]
    assert forest.match_until(event, SETTING, deadline=1.0).tests == 3
    assert poset.match_until(event, SETTING, deadline=1.0).tests == 2


def test_a_subtree_is_left_out_only_when_all_interfaces_below_are_found():
    """The text leaves a node out when its own interfaces are in the result; `deep` would be missed."""
    texts = {"first": "b = 1", "upper": "a in [0 .. 9]", "deep": "a in [1 .. 5]"}
    interfaces = {"first": "east", "upper": "east", "deep": "west", "other": "north"}
    made, read = fill_matcher(Forest, {**texts, "other": "a = 77"}, interfaces=interfaces)
    event = read({"a": 3, "b": 1})
    for skip in SkipMode:
        assert set(made.route(event, SETTING, skip=skip).ids) == {"east", "west"}
    printed, _ = fill_matcher(AsPrinted, {**texts, "other": "a = 77"}, interfaces=interfaces)
    assert set(printed.route(event, SETTING).ids) == {"east"}


class AsPrinted(Forest):
    """Leaves a node out when its own interfaces are in the result, whatever is below it."""

    def _adds_nothing(self, node, forward):
        return node.interfaces.keys() <= forward


def test_nodes_and_subtrees_that_add_nothing_are_not_tested():
    texts = {"first": "b = 1", "upper": "a in [0 .. 9]", "deep": "a in [1 .. 5]", "other": "a = 77"}
    interfaces = {"first": "east", "upper": "east", "deep": "east", "other": "north"}
    made, read = fill_matcher(Forest, texts, interfaces=interfaces)
    event = read({"b": 1, "a": 3})
    tests = [
        made.route(event, SETTING, skip=skip).tests for skip in (SkipMode.NOTHING, SkipMode.TESTS, SkipMode.SUBTREES)
    ]
    assert tests[0] > tests[1] >= tests[2]


@pytest.mark.parametrize("kind", KINDS)
def test_a_route_stops_when_all_interfaces_are_found(kind):
    made, read = fill_matcher(kind, {at: f"a >= {at}" for at in range(20)}, interfaces=dict.fromkeys(range(20), "one"))
    assert made.route(read({"a": 50}), SETTING, skip=SkipMode.NOTHING).tests == 1


@pytest.mark.parametrize("kind", KINDS)
def test_what_failed_before_the_deadline_is_not_among_what_is_left(kind):
    """ "The remaining nodes" are not those below a node that has failed."""
    texts = {"wide": "a in [0 .. 100]", "inner": "a in [10 .. 20]", "b": "b = 1"}
    made, read = fill_matcher(kind, texts)
    answer = made.match_until(read({"a": 200, "b": 1}), SETTING, deadline=1, clock=Ticking())
    assert answer.approximate
    assert "inner" not in answer.ids


@pytest.mark.parametrize("kind", KINDS)
def test_few_covers_are_asked_where_filters_have_little_in_common(kind):
    made, _ = fill_matcher(kind, {at: f"make = 'm{at % 50}' and year = {at}" for at in range(500)})
    assert made.explain()["covers asked"] == 0
