"""Filters with a large normal form that some of their literals find: which they are, and what they answer."""

import pickle
import re
from random import Random

import pytest
from tests.unit.engine.invariants import check_state

import tidings as td
from tidings.concepts import Ontology
from tidings.engine.compile.draft import FilterDraft
from tidings.engine.compile.row_table import RowTable
from tidings.engine.tuning import EngineTuning, use_tuning
from tidings.kernels.match.vector_words import EVENTS
from tidings.matcher.content import MatcherContent

MAKES = ["ford", "opel", "fiat", "seat"]


def large(random, parts=6):
    """Return an `or` of so many conjunctions that it stays a tree."""
    pairs = [
        f"(n{random.randrange(4)} < {random.randrange(10)} and not (m{random.randrange(4)} = {random.randrange(5)}))"
        for _ in range(parts)
    ]
    return " or ".join(pairs)


def draw_filters(random, count=60):
    filters = {}
    for id in range(count):
        more = random.choice(["", " and price < 5", " and not (color = 'red')", " and all(n1) > 2"])
        key = random.choice([f"make = '{random.choice(MAKES)}'", "make in ('ford', 'fiat')", "make contains 'o'"])
        filters[id] = f"{key}{more} and ({large(random)})"
    filters[count] = "make = 'ford'"
    filters[count + 1] = large(random, 20)
    return {id: td.parse(text) for id, text in filters.items()}


def draw_event(random):
    def some(values):
        return [random.choice(values) for _ in range(random.randint(0, 3))] if random.random() < 0.3 else values[0]

    event = {"make": some(random.sample(MAKES, 4)), "price": random.randrange(10), "color": some(["red", "blue"])}
    event |= {f"{name}{at}": some(random.sample(range(10), 4)) for name in "nm" for at in range(4)}
    return {name: value for name, value in event.items() if random.random() < 0.8}


def matcher_of(filters):
    matcher = td.Matcher()
    matcher.add_many(filters.items())
    return matcher


def assert_as_the_law_says(matcher, filters, events):
    check_state(matcher.backend.state)
    truth = [{id for id, tree in filters.items() if td.evaluate(tree, event)} for event in events]
    matches = matcher.match_many(events)
    assert [set(ids) for ids in matches.by_event()] == truth
    assert len(matches) == sum(map(len, truth))
    assert [set(matcher.match(event)) for event in events[:20]] == truth[:20]
    assert any(truth)


def count_asked(matcher):
    return sum(
        len(p.segment.candidate_trees.forest)
        for p in matcher.backend.state.parts
        if p.segment.candidate_trees is not None
    )


def draft_texts(*texts):
    draft = FilterDraft(Ontology())
    for slot, text in enumerate(texts):
        draft.add(slot, td.parse(text))
    return draft


@pytest.mark.parametrize(
    ("key", "literals"),
    [("make = 'ford'", 1), ("make in ('ford', 'opel') and price < 3 and not (a = 1)", 3), ("t contains 'x'", 1)],
)
def test_literals_beside_the_or_become_a_row_and_the_whole_a_tree(key, literals):
    draft = draft_texts(f"{key} and ({large(Random(1))})")
    assert (len(draft.candidate_trees), len(draft.trees), list(draft.row_size)) == (1, 0, [literals])
    assert not draft.leaves
    assert not draft.item_row


@pytest.mark.parametrize("key", ["price < 3", "not (make = 'ford')", "all(make) = 'ford'", "ok = true", "make exists"])
def test_literals_that_are_no_key_do_not(key):
    draft = draft_texts(f"{key} and ({large(Random(1))})")
    assert (len(draft.candidate_trees), len(draft.trees), len(draft.row_size)) == (0, 1, 0)


@pytest.mark.parametrize("item", ["p near (1, 2) 3 km", "a < b", "r has (x = 1)"])
def test_a_tree_with_items_is_left_to_blocks(item):
    draft = draft_texts(f"make = 'ford' and ({large(Random(1))} or {item})")
    assert (len(draft.candidate_trees), len(draft.trees)) == (0, 1)


def test_equal_literals_are_one_leaf_of_all_trees():
    whole = large(Random(1))
    table = RowTable.from_draft(
        draft_texts(*(f"make = 'm{at}' and ({whole})" for at in range(5)), *[whole + " or a = 1"] * 3)
    )
    distinct = len(set(re.findall(r"[nm]\d [<=] \d", whole)))
    assert len(table.candidate_trees.leaves.head) == distinct + 5
    assert len(table.trees.leaves.head) == distinct + 1


def test_a_filter_below_the_limit_is_rows():
    draft = draft_texts("make = 'ford' and (a = 1 or b = 2)")
    assert (len(draft.candidate_trees), len(draft.trees), len(draft.row_size)) == (0, 0, 2)


@pytest.mark.parametrize("pair", [0, 40, 10**9], ids=["one by one", "as it comes", "in blocks"])
@pytest.mark.parametrize("seed", range(3))
def test_each_is_as_the_law_says(pair, seed):
    random = Random(seed)
    filters, events = draw_filters(random), [draw_event(random) for _ in range(90)]
    with use_tuning(EngineTuning(pair_cost=pair)):
        matcher = matcher_of(filters)
    assert count_asked(matcher) == 60
    assert_as_the_law_says(matcher, filters, events)


@pytest.fixture(params=[0, 10**9], ids=["one by one", "in blocks"])
def _set_pair_cost(request):
    with use_tuning(EngineTuning(pair_cost=request.param)):
        yield


@pytest.mark.usefixtures("_set_pair_cost")
def test_and_after_removals_merges_pickles_and_snapshots(tmp_path):
    random = Random(5)
    filters, events = draw_filters(random, 80), [draw_event(random) for _ in range(60)]
    matcher = matcher_of(dict(list(filters.items())[:40]))
    matcher.add_many(list(filters.items())[40:])
    matcher.remove_many(range(0, 80, 3))
    living = {id: tree for id, tree in filters.items() if id % 3 or id >= 80}
    assert_as_the_law_says(matcher, living, events)
    matcher.compact()
    assert count_asked(matcher) == len(living) - 2
    assert_as_the_law_says(matcher, living, events)
    assert_as_the_law_says(pickle.loads(pickle.dumps(matcher)), living, events)
    matcher.save(tmp_path / "kept")
    opened = td.Matcher.open(tmp_path / "kept", verify=True)
    assert_as_the_law_says(opened, living, events)
    assert {id: opened[id] for id in opened} == living
    opened.remove(1)
    opened.compact()
    del living[1]
    assert count_asked(opened) == len(living) - 2
    assert_as_the_law_says(opened, living, events)


def test_batches_of_several_blocks_are_as_the_law_says():
    random = Random(7)
    filters, events = draw_filters(random, 30), [draw_event(random) for _ in range(40)]
    matcher = matcher_of(filters)
    truth = [{id for id, tree in filters.items() if td.evaluate(tree, event)} for event in events]
    times = 2 * EVENTS // len(events) + 1
    assert [set(ids) for ids in matcher.match_many(events * times).by_event()] == truth * times


def test_filters_that_were_trees_under_another_limit_are_kept_by_a_merge():
    random = Random(3)
    filters, events = draw_filters(random, 30), [draw_event(random) for _ in range(40)]
    matcher = matcher_of(filters)
    matcher.remove(0)
    with use_tuning(EngineTuning(row_limit=64)):
        other = td.Matcher()
        other.backend.restore(matcher.backend.state.parts)
        other.backend.compact()
    matcher = td.Matcher(content=MatcherContent("engine", None, matcher.admission, other.backend))
    assert count_asked(matcher) == 0
    del filters[0]
    assert_as_the_law_says(matcher, filters, events)


def test_explain_says_how_many():
    matcher = matcher_of(draw_filters(Random(1)))
    matcher.compact()
    plan = matcher.explain()
    [segment] = plan.to_dict()["segments"]
    assert segment["found trees"]["trees"] == 60
    assert "60 filters are found by some of their literals and decided by their whole tree" in str(plan)
    matcher.remove(0)
    assert matcher.explain().to_dict()["segments"][0]["found trees"]["trees"] == 59


def test_explain_speaks_of_segments_without_rows():
    matcher = matcher_of({id: large(Random(id), 20) for id in range(20)})
    matcher.compact()
    assert matcher.explain().slow == ("20 filters are kept as trees (their normal form is too large)",)
