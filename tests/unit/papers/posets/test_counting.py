"""The counting matcher against brute force: every kind of predicate, in and out, with and without elimination."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

import tidings as td
from tidings.algebra import AttributeReader, Setting, collect_requirements
from tidings.concepts import Ontology, Vocabulary
from tidings.lang import parse
from tidings.matcher.brute import Brute
from tidings.model import FALSE, TRUE, And, Exists, Is, Not, Or, Quantifier, Range, Test, all_of, any_of, one_of
from tidings.papers.posets.counting import Counting
from tidings.papers.posets.predicates import MAX_LOOKED_UP, to_rows

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HUGE = 2**53
NUMBERS = st.one_of(
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from(
        [0.5, 1.0, -0.0, 5e-324, HUGE - 1, HUGE, HUGE + 1, HUGE + 2, -HUGE - 1, 2**63 - 1, -(2**63), 1e300]
    ),
)
TIMES = st.integers(-2, 5).map(lambda hours: NOW + timedelta(hours=hours))
FAR = st.sampled_from([datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)])
WORDS = st.sampled_from(["a", "b", "ab", "ba", ""])
VALUES = {"n": NUMBERS, "m": NUMBERS, "t": st.one_of(TIMES, TIMES, FAR), "w": WORDS, "v": WORDS}


@st.composite
def ranges(draw, values):
    """Draw a range with at least one end, sometimes one of no points."""
    low, high = sorted((draw(values), draw(values)))
    ends = draw(st.sampled_from([(low, high), (low, high), (low, None), (None, high)]))
    return Range(*ends, low_open=draw(st.booleans()), high_open=draw(st.booleans()))


@st.composite
def literals(draw):
    """Draw a test, sometimes quantified, sometimes negated; mostly ranges of numbers."""
    name = draw(st.sampled_from("nnnmmtwv"))
    values = VALUES[name]
    match draw(st.sampled_from(["range", "range", "range", "is", "in", "exists"])):
        case "range":
            condition = draw(ranges(values))
        case "is":
            condition = Is(draw(values))
        case "in":
            condition = one_of([draw(values), draw(values)])
        case _:
            return Test(name, Exists())
    quantifier = draw(st.sampled_from([Quantifier.ANY] * 8 + list(Quantifier)))
    test = Test(name, condition, quantifier)
    return Not(test) if draw(st.integers(0, 7)) == 7 else test


CONJUNCTIONS = st.lists(literals(), min_size=1, max_size=3).map(all_of)
FILTERS = st.one_of(CONJUNCTIONS, CONJUNCTIONS, st.lists(CONJUNCTIONS, max_size=3).map(any_of), st.just(TRUE))


@st.composite
def event_values(draw, values):
    """Draw what an event has for one attribute: one value, several, ranges, nothing."""
    low, high = sorted((draw(values), draw(values)))
    if isinstance(low, str):  # events have no ranges of text
        return draw(st.sampled_from([low, low, [low, high], [], None]))
    span = td.Range(*draw(st.sampled_from([(low, high), (None, high), (low, None)])))
    if low < high:
        span = td.Range(low, high, draw(st.booleans()), draw(st.booleans()))
    return draw(st.sampled_from([low, low, low, [low, high], [span, high], span, [], None]))


EVENTS = st.fixed_dictionaries(
    {name: event_values(VALUES[name]) for name in "nm"}, optional={name: event_values(VALUES[name]) for name in "twv"}
)
STEPS = st.lists(st.tuples(st.integers(0, 5), st.one_of(FILTERS, FILTERS, st.none())), min_size=1, max_size=8)


def readings_of(filters, events):
    """Return the events as filters see them, and the setting."""
    ontology = Ontology()
    reader = AttributeReader(collect_requirements(filters, Vocabulary(ontology=ontology)), ontology)
    return [reader.read(event, NOW) for event in events], Setting(ontology, NOW)


def find_ids(algorithm, filters, events):
    """Return the ids that each event finds; each comes once, and one event at a time gives the same."""
    readings, setting = readings_of(filters, events)
    many = algorithm.match_many(readings, setting)
    assert [sorted(algorithm.match(reading, setting)) for reading in readings] == [sorted(ids) for ids in many]
    assert all(len(set(ids)) == len(ids) for ids in many)
    return [set(ids) for ids in many]


@pytest.mark.parametrize("access", [True, False])
@pytest.mark.parametrize("waiting", [0, 1024])
@examples(100)
@given(steps=STEPS, events=st.lists(EVENTS, min_size=1, max_size=8))
def test_counting_agrees_with_brute_force_whatever_comes_and_goes(access, waiting, steps, events):
    counting, brute = Counting(access=access, max_waiting=waiting), Brute()
    filters = [tree for _, tree in steps if tree is not None]
    present_ids = set()
    for id, tree in steps:
        if tree is not None:
            for algorithm in (counting, brute):
                algorithm.add_many([(id, algorithm.compile_filter(tree))])
            present_ids.add(id)
        elif id in present_ids:
            counting.remove(id)
            brute.remove(id)
            present_ids.discard(id)
        assert find_ids(counting, filters, events) == find_ids(brute, filters, events)
        check(counting.range_index)
    for id in present_ids:
        counting.remove(id)
    assert find_ids(counting, filters, events) == [set()] * len(events)
    left = counting.explain()
    assert (left["rows"], left["distinct predicates"], left["ranges"]["waiting"]) == (0, 0, 0)
    tables = (counting.attributes, counting.deferred, counting.predicates.tables)
    assert [len(table) for table in tables] == [0, 0, 0]


def check(index):
    """Hold the interval index to what it promises: slots, the waiting list and the tree agree."""
    assert all(index.places[slot] == at for at, slot in enumerate(index.waiting))
    indexed = sorted(row for row, where in zip(index.rows, index.places, strict=True) if row >= 0 and where == -1)
    assert len(indexed) == index.summarize()["in the tree"]
    for kept in (index.tree.low_rows, index.tree.high_rows):
        assert sorted(kept[kept >= 0]) == indexed


def ids_of(texts, event, *, access=True):
    """Return the numbers of the filters that an event satisfies."""
    trees = [parse(text) for text in texts]
    counting = Counting(access=access)
    counting.add_many((at, counting.compile_filter(tree)) for at, tree in enumerate(trees))
    readings, setting = readings_of(trees, [event])
    return sorted(counting.match(readings[0], setting))


def test_several_values_count_a_predicate_once():
    texts = ["a >= 1 and b = 1", "a in [1 .. 3] and a in [2 .. 9]", "a in (1, 2) and b = 9"]
    for access in (True, False):
        assert ids_of(texts, {"a": [1, 2, 3], "b": [0, 5]}, access=access) == [1]


def test_a_range_of_an_event_meets_equalities_and_ranges():
    texts = ["a = 2", "a = 3", "a in (5 .. 9)", "a < 1", "a <= 1", "a in (7, 2)"]
    for access in (True, False):
        assert ids_of(texts, {"a": td.Range(1, 5, True, True)}, access=access) == [0, 1, 5]
        assert ids_of(texts, {"a": td.Range(1, 5)}, access=access) == [0, 1, 4, 5]


def test_whole_numbers_beyond_float64_stay_exact():
    texts = [f"a >= {HUGE}", f"a > {HUGE}", f"a = {HUGE + 1}", f"a <= {HUGE}", f"a < {HUGE + 2}", f"a > {HUGE + 1}"]
    assert ids_of(texts, {"a": HUGE + 1}) == [0, 1, 2, 4]
    assert ids_of(texts, {"a": float(HUGE)}) == [0, 3, 4]


def test_equal_predicates_are_stored_once():
    counting = Counting()
    trees = [parse("make = 'ford' and note contains 'x'"), parse("note contains 'x' and make = 'ford' and year = 1")]
    counting.add_many((at, counting.compile_filter(tree)) for at, tree in enumerate(trees))
    assert counting.explain()["distinct predicates"] == 3


def test_what_cannot_be_looked_up_is_asked_once_and_only_where_the_rest_held(monkeypatch):
    from tidings.papers.posets import counting as module

    asked = []
    law = module.holds
    monkeypatch.setattr(module, "holds", lambda *args: asked.append(args[0]) or law(*args))
    texts = ["make = 'ford' and note contains 'x'", "year = 1 and note contains 'x'", "make = 'opel' and note like 'y'"]
    assert ids_of(texts, {"make": "ford", "year": 1, "note": "ax"}) == [0, 1]
    assert len(asked) == 1


def test_nothing_is_asked_of_an_attribute_that_the_event_lacks(monkeypatch):
    from tidings.papers.posets import predicates

    asked = []
    law = predicates.holds
    monkeypatch.setattr(predicates, "holds", lambda *args: asked.append(args[0]) or law(*args))
    assert ids_of(["note contains 'x'", "other contains 'x'", "not (note contains 'y')"], {"other": "x"}) == [1, 2]
    assert len(asked) == 2


def test_a_filter_too_large_for_a_normal_form_is_one_predicate():
    large = And(tuple(Or((Test(f"a{at}", Is(1)), Test(f"b{at}", Is(1)))) for at in range(12)))
    (row,) = to_rows(large)
    assert row.evaluated == (large,)
    counting = Counting()
    counting.add_many([("large", counting.compile_filter(large))])
    event = {f"{'ab'[at % 2]}{at}": 1 for at in range(12)}
    assert find_ids(counting, [large], [event, {"a1": 1}]) == [{"large"}, set()]


def test_a_row_of_very_many_predicates_counts_some_and_asks_the_rest():
    wide = And(tuple(Test(f"a{at}", Range(at, None)) for at in range(MAX_LOOKED_UP + 60)))
    for access in (True, False):
        counting = Counting(access=access)
        counting.add_many([("wide", counting.compile_filter(wide))])
        event = {f"a{at}": at for at in range(MAX_LOOKED_UP + 60)}
        assert find_ids(counting, [wide], [event, {**event, "a259": 0}, {**event, "a3": 0}]) == [{"wide"}, set(), set()]


def test_true_false_and_empty_ranges():
    nothing = Test("a", Range(2, 2, low_open=True))
    assert to_rows(FALSE) == to_rows(nothing) == ()
    counting = Counting()
    trees = [TRUE, FALSE, nothing, Not(nothing), Or((nothing, Test("a", Is(2))))]
    counting.add_many((at, counting.compile_filter(tree)) for at, tree in enumerate(trees))
    assert find_ids(counting, trees, [{"a": 2}, {}]) == [{0, 3, 4}, {0, 3}]


def test_counters_are_cleared_before_they_overflow():
    counting = Counting(access=False)
    trees = [all_of([Test(f"a{at}", Range(0, None)) for at in range(size)]) for size in (1, 200)]
    counting.add_many((at, counting.compile_filter(tree)) for at, tree in enumerate(trees))
    event = {f"a{at}": 1 for at in range(200)}
    readings, setting = readings_of(trees, [event, {"a0": 5}, {**event, "a7": -1}])
    wanted = [{0, 1}, {0}, {0}]
    for _ in range(200):  # 600 events in steps of 201: the sixteen bits go around
        assert [set(ids) for ids in counting.match_many(readings, setting)] == wanted


def test_a_million_is_not_needed_to_build_the_tree():
    counting, brute = Counting(), Brute()
    trees = [Test("a", Range(at % 97, at % 97 + at % 13)) for at in range(3000)]
    for algorithm in (counting, brute):
        algorithm.add_many((at, algorithm.compile_filter(tree)) for at, tree in enumerate(trees))
    events = [{"a": 50}, {"a": [3, 60.5]}, {"a": td.Range(10, 12)}, {"a": [td.Range(1, 2), td.Range(2, 90), 4]}]
    assert find_ids(counting, trees, events) == find_ids(brute, trees, events)
    assert counting.explain()["ranges"] == {"in the tree": 3000, "waiting": 0}
    for at in range(0, 3000, 3):
        counting.remove(at)
        brute.remove(at)
    assert find_ids(counting, trees, events) == find_ids(brute, trees, events)
    check(counting.range_index)


@pytest.mark.parametrize("ends", range(1, 40))
def test_the_tree_of_one_attribute_does_not_reach_into_the_next(ends):
    counting, brute = Counting(max_waiting=0), Brute()
    names = "abc"
    trees = [Test(name, Range(at, at + 1 + at % 3)) for name in names for at in range(ends)]
    for algorithm in (counting, brute):
        algorithm.add_many((at, algorithm.compile_filter(tree)) for at, tree in enumerate(trees))
    events = [dict.fromkeys(names, at / 2) for at in range(-1, 2 * ends + 9)]
    assert find_ids(counting, trees, events) == find_ids(brute, trees, events)


def dense_filter(random):
    """Return a conjunction over few numbers, so that ends and values meet all the time."""
    tests = []
    for name in random.sample("abc", random.randint(1, 3)):
        low, high = sorted(random.choices(range(7), k=2))
        ends = random.choice([(low, high), (low, high), (low, None), (None, high)])
        span = Range(*ends, low_open=random.random() < 0.5, high_open=random.random() < 0.5)
        tests.append(Test(name, random.choice([span, span, span, Is(low), one_of([low, high])])))
    return all_of(tests)


def dense_value(random):
    """Return one number, several, or ranges."""
    low, high = sorted(random.sample([at / 2 for at in range(14)], 2))
    span = td.Range(low, high, random.random() < 0.5, random.random() < 0.5)
    return random.choice([low, high, int(high), [low, high], span, [span, low, high], [td.Range(high, None), low]])


@pytest.mark.parametrize("access", [True, False])
@pytest.mark.parametrize("waiting", [0, 1024])
@pytest.mark.parametrize("seed", range(3))
def test_many_filters_of_few_numbers_agree_with_brute_force(access, waiting, seed):
    random = Random(seed)
    trees = [dense_filter(random) for _ in range(300)]
    events = [{name: dense_value(random) for name in "abc" if random.random() < 0.8} for _ in range(60)]
    counting, brute = Counting(access=access, max_waiting=waiting), Brute()
    for algorithm in (counting, brute):
        algorithm.add_many((at, algorithm.compile_filter(tree)) for at, tree in enumerate(trees))
    assert find_ids(counting, trees, events) == find_ids(brute, trees, events)
    for at in random.sample(range(300), 150):
        counting.remove(at)
        brute.remove(at)
    assert find_ids(counting, trees, events) == find_ids(brute, trees, events)
    check(counting.range_index)
