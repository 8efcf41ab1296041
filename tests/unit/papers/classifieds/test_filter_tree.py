"""The filter tree of the classifieds paper: Algorithm 1 with its corrections, and what the tree keeps."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

import tidings as td
from tidings.algebra.law.typed_attribute import TypedAttribute
from tidings.errors import Unsupported
from tidings.model import Test
from tidings.papers.common.name_order import MIN_PATHS, NameOrder
from tidings.testing.strategies import cases

KIND = "filter-tree"


def tree_of(matcher):
    return matcher.backend.algorithm.tree


def list_visited(matcher, event):
    setting = matcher.make_setting()
    return tree_of(matcher).descend(matcher.get_view().reader.read(event, setting.now), setting)


def nodes(matcher):
    return sum(1 for _ in tree_of(matcher).iterate_nodes())


def make_matcher(kind, min_paths):
    """Return an empty matcher that looks at the order of names from so many paths on."""
    matcher = td.Matcher(kind)
    matcher.backend.algorithm.name_order = NameOrder(min_paths)
    return matcher


def fill_matcher(filters, kind=KIND, min_paths=MIN_PATHS):
    matcher = make_matcher(kind, min_paths) if kind != "brute" else td.Matcher(kind)
    matcher.add_many(filters.items())
    return matcher


# --- the paper's own examples -------------------------------------------------------------------


FIGURE_2 = {
    "A1": "n1 = 'A' and n2 = 'D'",
    "A2": "n1 = 'A' and n2 = 'E'",
    "A3": "n1 = 'A' and n3 = 'F'",
    "A4": "n1 = 'B' and n3 = 'F'",
    "A5": "n1 = 'A'",
    "A6": "n1 = 'C'",
}


def test_figure_2_is_merged_and_descended_as_printed():
    matcher = fill_matcher(FIGURE_2)
    assert nodes(matcher) == 1 + 3 + 4  # the root; A, B, C; D, E, F under A and F under B
    assert sorted(matcher.match({"n1": "A", "n2": "D", "n3": "F"})) == ["A1", "A3", "A5"]


def test_figure_3_takes_a_set_and_a_range():
    matcher = fill_matcher(
        {
            "F1": "mark = 'FORD' and model in ('FOCUS', 'MONDEO') and year = 2016",
            "F2": "year in [2014 .. 2016]",
            "F3": "mark = 'FORD' and model = 'MONDEO'",
        }
    )
    first = {"region": "Moscow", "mark": "FORD", "model": "MONDEO", "year": 2016}
    second = {"region": "Saint-Petersburg", "mark": "BMW", "model": "3ER", "year": 2015}
    assert sorted(matcher.match(first)) == ["F1", "F2", "F3"]
    assert matcher.match(second) == ["F2"]


# --- corrections --------------------------------------------------------------------------------


def descend_as_printed(tree, node, terms, counted, limit):
    """Algorithm 1 as printed: `while terms` never advances."""
    counted.append(node)
    while terms:
        if len(counted) > limit:
            raise OverflowError
        (name, value), tail = terms[0], terms[1:]
        descend_as_printed(tree, node, tail, counted, limit)
        for child in tree.list_children(node, name):
            if child.step.key == value:
                descend_as_printed(tree, child, tail, counted, limit)


def test_algorithm_1_as_printed_never_ends():
    tree = tree_of(fill_matcher(FIGURE_2))
    name = TypedAttribute("n1", "text")
    assert list(tree.list_children(tree.root, name))
    with pytest.raises(OverflowError):
        descend_as_printed(tree, tree.root, [(name, "A")], [], 10_000)


@pytest.mark.parametrize("count", [1, 3, 6])
def test_each_node_is_visited_once_in_the_worst_case(count):
    all_names = [f"n{at}" for at in range(count)]
    some = [chosen for size in range(1, count + 1) for chosen in combinations(all_names, size)]
    matcher = fill_matcher({at: " and ".join(f"{name} = 1" for name in chosen) for at, chosen in enumerate(some)})
    reached = list_visited(matcher, dict.fromkeys(all_names, 1))
    assert len(reached) == len(set(reached)) == 2**count  # the paper's count is 2 + 4 + ... + 2 ** count
    assert len(matcher.match(dict.fromkeys(all_names, 1))) == len(some)


def test_two_tests_of_one_name_are_satisfied_by_two_values():
    matcher = fill_matcher(
        {1: "a >= 2 and a <= 3", 2: "a = 1 and a = 10", 3: "a in [2 .. 3]", 4: "b = 1 and a = 1 and a > 9"}
    )
    assert sorted(matcher.match({"a": [1, 10], "b": 1})) == [1, 2, 4]
    assert matcher.match({"a": 1, "b": 1}) == []
    assert sorted(matcher.match({"a": 2})) == [1, 3]


def test_an_event_range_meets_fixed_values_sets_and_ranges():
    matcher = fill_matcher({1: "a = 5", 2: "a in (1, 4)", 3: "a < 3", 4: "a > 5 and b = 1", 5: "a = 9"})
    assert sorted(matcher.match({"a": td.Range(3, 5, low_open=True), "b": 1})) == [1, 2]
    assert sorted(matcher.match({"a": [td.Range(5, 6), 9], "b": 1})) == [1, 4, 5]


def test_a_set_is_one_node_however_many_values_it_has():
    matcher = fill_matcher({1: "a in (1, 2, 3, 4) and b in (1, 2, 3, 4)", 2: "b in (4, 3, 2, 1) and a in (2, 1, 4, 3)"})
    assert nodes(matcher) == 3
    assert sorted(matcher.match({"a": [1, 2], "b": 4})) == [1, 2]
    assert len(list_visited(matcher, {"a": [1, 2, 3], "b": [1, 2, 3]})) == 3


def test_what_is_null_or_an_array_of_records_has_its_term():
    matcher = fill_matcher({1: "a is null and b = 1", 2: "r has (x = 1) and b = 1", 3: "r exists", 4: "a exists"})
    assert matcher.match({"a": None, "b": 1}) == [1]
    assert sorted(matcher.match({"r": [{"x": 1}], "b": 1})) == [2, 3]
    assert matcher.match({"a": [], "b": 1}) == []


@pytest.mark.parametrize("many", [3, 100])
def test_ranges_are_exact_at_their_ends(many):
    big = 2**53
    filters = {at: f"a in ({at} .. {at + 1}]" for at in range(many)}
    filters |= {-1: f"a > {big} and b = 1", -2: f"a >= {big} and b = 1"}
    matcher, brute = fill_matcher(filters), fill_matcher(filters, "brute")
    for value in (0, 1, 1.5, 2, -1, big, big + 1, big - 1, float(big), [0, 2], td.Range(0, 1)):
        event = {"a": value, "b": 1}
        assert set(matcher.match(event)) == set(brute.match(event))


# --- what it cannot say -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["not a = 1", "b = 2 and not (a = 1)", "not (a < 1 or b < 1)", "b = 1 or not a exists"]
)
def test_negated_tests_are_refused_by_name(text):
    matcher = fill_matcher({"kept": "a = 1"})
    with pytest.raises(Unsupported, match=r"td\.Matcher") as caught:
        matcher.add("it", text)
    assert caught.value.kind == KIND
    assert caught.value.part in str(caught.value)
    assert list(matcher) == ["kept"]


def test_unequal_asks_for_the_attribute_and_is_no_negation():
    matcher = fill_matcher({1: "a != 1", 2: "none(a) in (1, 2)", 3: "all(a) > 2"})
    assert [sorted(matcher.match(event)) for event in ({"a": 3}, {"a": [1, 3]}, {})] == [[1, 2, 3], [], []]


def test_a_normal_form_that_explodes_is_refused():
    wide = " and ".join(f"(a{at} = 1 or b{at} = 1)" for at in range(11))
    with pytest.raises(Unsupported, match="normal form"):
        td.Matcher(KIND).add("wide", wide)


# --- coming and going ---------------------------------------------------------------------------


def test_removing_takes_the_empty_nodes_with_it():
    matcher = fill_matcher(FIGURE_2)
    for id, left in (("A1", 7), ("A2", 6), ("A4", 4), ("A3", 3), ("A5", 2), ("A6", 1)):
        matcher.remove(id)
        assert nodes(matcher) == left
    root, order = tree_of(matcher).root, matcher.backend.algorithm.name_order
    assert (root.children, order.counts, order.ranks) == ({}, {}, {})


def test_names_are_ordered_by_frequency_when_the_paths_have_doubled():
    matcher = td.Matcher(KIND)
    matcher.add_many((f"r{at}", f"rare = {at}") for at in range(MIN_PATHS))
    for at in range(2 * MIN_PATHS):
        matcher.add(f"o{at}", f"rare = 1 and often = {at % 3}")
    matcher.add_many((f"m{at}", f"often = {at}") for at in range(4 * MIN_PATHS))
    assert matcher.explain().to_dict()["names in order"] == ["often as number", "rare as number"]
    assert len(matcher.match({"rare": 1, "often": 0})) == 1 + len(range(0, 2 * MIN_PATHS, 3)) + 1
    for id in list(matcher):
        matcher.remove(id)
    assert nodes(matcher) == 1


@examples(60)
@given(cases(bad=False, filters=6, events=5))
def test_it_agrees_with_brute_on_what_it_takes(case):
    matcher, brute = td.Matcher(KIND, **case.world.keywords), td.Matcher("brute", **case.world.keywords)
    brute.add_many(enumerate(case.filters))
    refused = {id for id, _ in matcher.add_many(enumerate(case.filters), on_error="collect")}
    for event in case.events:
        try:
            wanted = set(brute.match(event)) - refused
        except td.BadEvent:
            continue
        matches = matcher.match(event)
        assert (len(matches), set(matches)) == (len(wanted), wanted)


VALUES = st.integers(0, 3)
TESTS = st.one_of(
    st.builds("{} = {}".format, st.sampled_from("abc"), VALUES),
    st.builds("{} in ({}, 3)".format, st.sampled_from("abc"), st.integers(0, 2)),
    st.builds("{} in [{} .. 3)".format, st.sampled_from("abc"), st.integers(0, 2)),
    st.builds("{} != {}".format, st.sampled_from("abc"), VALUES),
)
FILTERS = st.one_of(
    st.lists(TESTS, min_size=1, max_size=4).map(" and ".join),
    st.lists(st.lists(TESTS, min_size=1, max_size=2).map(" and ".join), min_size=2, max_size=3).map(" or ".join),
)
EVENTS = st.fixed_dictionaries({}, optional=dict.fromkeys("abc", st.one_of(VALUES, st.lists(VALUES, max_size=2))))


STEPS = st.lists(st.tuples(st.integers(0, 5), st.none() | FILTERS), max_size=25)


@pytest.mark.parametrize("kind", [KIND, "candidates-tree"])
@examples(60)
@given(steps=STEPS, events=st.lists(EVENTS, max_size=4))
def test_coming_and_going_leaves_no_trace(kind, steps, events):
    matcher, kept = make_matcher(kind, min_paths=2), {}
    for id, text in steps:
        if text is not None:
            kept[id] = text
            matcher.add(id, text)
        elif kept.pop(id, None) is not None:
            matcher.remove(id)
    brute, fresh = fill_matcher(kept, "brute"), fill_matcher(kept, kind, min_paths=2)
    for event in events:
        assert sorted(matcher.match(event)) == sorted(brute.match(event)) == sorted(fresh.match(event))
    first, second = matcher.backend.algorithm, fresh.backend.algorithm
    assert first.path_rows.owners.row_count == second.path_rows.owners.row_count
    assert first.name_order.counts == second.name_order.counts
    assert all(node.rows or node.children for node in tree_of(matcher).iterate_nodes() if node.step)


def test_a_step_is_the_test_of_its_path():
    [step] = list_visited(fill_matcher({1: "a = 1"}), {"a": 1})[-1].list_steps()
    assert isinstance(step.test, Test)
