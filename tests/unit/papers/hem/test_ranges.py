"""Range matchers against the law: filters of intervals, in and out, after every step."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

import tidings as td
from tidings.errors import Unsupported
from tidings.matcher.registry import ALGORITHMS
from tidings.model import FALSE, TRUE, Exists, Is, Range, Test, all_of, any_of, one_of
from tidings.papers.hem.hem import Hem
from tidings.papers.hem.htree import HTree
from tidings.papers.hem.range_matcher import RangeMatcher
from tidings.papers.hem.range_table import RangeTable
from tidings.papers.hem.rein import Rein
from tidings.papers.hem.tama import Tama

KINDS = [kind for kind in ("hem", "rein", "tama", "htree") if kind in ALGORITHMS]
CORES = {"hem": Hem, "rein": Rein, "tama": Tama, "htree": HTree}
NAMES = ["a", "b", "c"]
START = datetime(2026, 1, 1, tzinfo=UTC)

# Few and close numbers, so that ends meet values; and far ones, so that domains grow.
NUMBERS = st.one_of(
    st.integers(-3, 6),
    st.sampled_from([0.1, 0.25, 0.5, 0.75, -0.0, 1.0 - 2**-53, 1.0 + 2**-52, 5e-324, -5e-324, 100.0, 4096.0]),
    st.sampled_from([1e308, -1e308, 1.7976931348623157e308, 10**15, -(10**15), 2**53]),
)
TIMES = st.integers(0, 8).map(lambda hours: START + timedelta(hours=hours))


@st.composite
def conditions(draw, name="", values=NUMBERS):
    """Draw one test of an attribute, as a tree."""
    name = name or draw(st.sampled_from(NAMES))
    form = draw(st.sampled_from(["range", "range", "range", "below", "above", "is", "in", "exists"]))
    low, high = sorted([draw(values), draw(values)])
    open_low, open_high = draw(st.booleans()), draw(st.booleans())
    match form:
        case "range":
            return Test(name, Range(low, high, open_low, open_high))
        case "below":
            return Test(name, Range(None, high, False, open_high))
        case "above":
            return Test(name, Range(low, None, open_low, False))
        case "is":
            return Test(name, Is(low))
        case "in":
            return Test(name, one_of([low, high, draw(values)]))
    return Test(name, Exists())


TESTS = st.one_of(conditions(), conditions(), conditions(name="t", values=TIMES))
CONJUNCTIONS = st.lists(TESTS, max_size=4).map(all_of)
FILTERS = st.one_of(
    CONJUNCTIONS, CONJUNCTIONS, st.lists(CONJUNCTIONS, max_size=3).map(any_of), st.just(FALSE), st.just(TRUE)
)


def between(start, end, low_open, high_open):
    """Return the range between two values; a single one is closed, since an empty range is no value."""
    return Range(min(start, end), max(start, end), low_open and start != end, high_open and start != end)


VALUES = st.one_of(
    NUMBERS,
    NUMBERS,
    NUMBERS,
    st.none(),
    st.lists(NUMBERS, max_size=3),
    st.sampled_from([2**53 + 1, -(2**60) - 1, 10**15 + 1]),
    st.tuples(NUMBERS, NUMBERS, st.booleans(), st.booleans()).map(lambda drawn: between(*drawn)),
)
EVENTS = st.fixed_dictionaries({}, optional={"a": VALUES, "b": VALUES, "c": VALUES, "t": TIMES, "z": NUMBERS})


def pair(kind):
    return td.Matcher(kind=kind), td.Matcher(kind="brute")


def answer(matcher, event):
    matches = matcher.match(event)
    assert len(matches) == len(set(matches))
    return set(matches)


@pytest.mark.parametrize("kind", KINDS)
@examples(60)
@given(filters=st.lists(FILTERS, max_size=12), events=st.lists(EVENTS, min_size=1, max_size=8))
def test_a_range_matcher_says_what_the_law_says(kind, filters, events):
    mine, law = pair(kind)
    for matcher in (mine, law):
        matcher.add_many(enumerate(filters))
    for event in events:
        assert answer(mine, event) == answer(law, event)


STEPS = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 9), FILTERS),
    st.tuples(st.just("many"), st.integers(0, 9), st.lists(FILTERS, max_size=10)),
    st.tuples(st.just("remove"), st.integers(0, 9), st.none()),
)


def take(matcher, step):
    """Do one step: add or replace one or many, or remove."""
    word, id, filters = step
    match word:
        case "add":
            matcher.add(id, filters)
        case "many":
            matcher.add_many(((id + more, tree) for more, tree in enumerate(filters)))
        case "remove" if id in matcher:
            matcher.remove(id)


@pytest.mark.parametrize("kind", KINDS)
@examples(40)
@given(steps=st.lists(STEPS, max_size=12), events=st.lists(EVENTS, min_size=1, max_size=4))
def test_adding_replacing_and_removing_leaves_no_trace(kind, steps, events):
    mine, law = pair(kind)
    for step in steps:
        for matcher in (mine, law):
            take(matcher, step)
        for event in events:
            assert answer(mine, event) == answer(law, event)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text",
    [
        "make = 'ford'",
        "not a = 1",
        "none(a) = 1",
        "spot near (13.4, 52.5) 30 km",
        "a < b",
        "a is null",
        "a = 9007199254740993",
        "a in (1, 9007199254740993)",
    ],
)
def test_what_is_no_interval_is_refused_by_name(kind, text):
    matcher = td.Matcher(kind=kind)
    with pytest.raises(Unsupported, match=f"`{kind}`") as caught:
        matcher.add("x", text)
    assert "td.Matcher()" in str(caught.value)
    assert len(matcher) == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", ["text", True, 2.5, [], ["x", 1], [{"size": 1}], {"size": 1}, {}, None, 2**62 + 1])
def test_what_exists_need_not_be_a_number(kind, value):
    mine, law = pair(kind)
    for matcher in (mine, law):
        matcher.add_many({"some": "parts exists", "both": "parts exists and a > 1", "any": "true"}.items())
    for event in ({"parts": value}, {"parts": value, "a": 2}, {"parts": value, "a": [0, 2]}):
        assert answer(mine, event) == answer(law, event)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [[0, 1], Range(0, 1), 0, 1, [1, 2]])
def test_tests_that_no_single_value_passes_are_passed_by_several(kind, value):
    mine, law = pair(kind)
    for matcher in (mine, law):  # no row of the first asks for `a`
        matcher.add_many({"both": "a = 0 and a = 1", "or": "b > 3 or (a < 1 and a > 1 and c exists)"}.items())
    for event in ({"a": value}, {"a": value, "b": 2, "c": "text"}, {"a": value, "b": 4}):
        assert answer(mine, event) == answer(law, event)


@pytest.mark.parametrize("kind", KINDS)
def test_an_array_of_records_exists(kind):
    schema = td.Schema({"parts": "several record", "parts.size": "several number"})
    matcher = td.Matcher(kind=kind, schema=schema)
    matcher.add("some", "parts exists")
    assert [matcher.match({"parts": parts}) for parts in ([{"size": 1}], [{"other": 1}], [])] == [
        ["some"],
        ["some"],
        [],
    ]


def hem_table(n=2_000, m=5, delta=0.3, seed=0):
    """Return a table of HEM's generator, on a grid so coarse that values fall on ends and on borders of cells."""
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 4096 - round(4096 * delta), (m, n), endpoint=True)
    ends = rng.integers(0, 4, (m, n)).astype(np.uint8)
    return RangeTable.from_ends(low / 4096, (low + round(4096 * delta)) / 4096, ends)


def scan_rows(table, vector):
    """Return the rows that hold the vector, by looking at all of them."""
    value = vector[:, None]
    above = (table.lows < value) | ((table.lows == value) & (table.ends & 1 == 0))
    below = (table.highs > value) | ((table.highs == value) & (table.ends & 2 == 0))
    return np.flatnonzero((above & below).all(axis=0) & table.alive).tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("delta", [0.02, 0.3, 0.5, 0.9])
def test_a_core_finds_what_a_scan_finds_before_and_after_deleting_half(kind, delta):
    table, core = hem_table(delta=delta), CORES[kind]()
    core.insert(table, np.arange(2_000, dtype=np.int32))
    rng = np.random.default_rng(1)
    vectors = rng.integers(0, 4096, (40, 5), endpoint=True) / 4096
    for vector in vectors:
        assert sorted(core.match(table, vector).tolist()) == scan_rows(table, vector)
    gone = rng.permutation(2_000)[:1_000].astype(np.int32)
    for begin in range(0, 1_000, 50):
        core.delete(table, gone[begin : begin + 50])
        table.alive[gone[begin : begin + 50]] = False
        table.count -= 50
    for vector in vectors:
        assert sorted(core.match(table, vector).tolist()) == scan_rows(table, vector)
    for row in gone[:500]:  # one by one, into lists that are there
        table.alive[row] = True
        table.count += 1
        core.insert(table, np.array([row], np.int32))
    for vector in vectors:
        assert sorted(core.match(table, vector).tolist()) == scan_rows(table, vector)


@pytest.mark.parametrize("kind", KINDS)
def test_a_core_that_was_emptied_is_filled_again_one_by_one(kind):
    table, core = hem_table(delta=0.5), CORES[kind]()
    rows = np.arange(2_000, dtype=np.int32)
    crowd, later = rows[:1_700], rows[1_700:]
    table.lows[:, crowd] = 0.01 + table.lows[:, crowd] / 500  # so the others will need lists that have no room yet
    table.highs[:, crowd] = table.lows[:, crowd] + 0.001
    table.lows[:, 0], table.highs[:, 0] = 0, 1
    table.alive[later], table.count = False, len(crowd)
    core.insert(table, crowd)
    core.delete(table, crowd[1:])
    table.alive[crowd[1:]], table.count = False, 1
    for row in later:
        table.alive[row], table.count = True, table.count + 1
        core.insert(table, np.array([row], np.int32))
    for vector in np.random.default_rng(6).integers(0, 4096, (20, 5), endpoint=True) / 4096:
        assert sorted(core.match(table, vector).tolist()) == scan_rows(table, vector)


BORDERS = [cell / parts for parts in (4, 32, 80, 3000, 4096) for cell in (1, 3, parts - 1)]


@pytest.mark.parametrize("kind", KINDS)
def test_no_row_is_lost_at_the_border_of_a_cell(kind):
    mine, law = pair(kind)
    beside = [float(np.nextafter(border, side)) for border in BORDERS for side in (0, 1)]
    values = [-0.5, 0.0, 1.0, 1.5, *BORDERS, *beside]
    filters = [Test("a", Range(low, high)) for low, high in pairwise(values) if low < high]
    filters += [Test("a", Is(value)) for value in values]
    filters += [Test("a", Range(0.0, 1.0, True, True)), Test("a", Range(None, 0.5)), Test("a", Range(0.5, None))]
    for matcher in (mine, law):
        matcher.add_many(enumerate(filters))
    for value in values:
        assert answer(mine, {"a": value}) == answer(law, {"a": value})


@pytest.mark.parametrize("kind", KINDS)
def test_a_domain_of_one_value_and_one_that_grows(kind):
    mine, law = pair(kind)
    for number in range(70):
        low = 5 if number < 8 else 5 - number**4
        tree = Test("a", Range(low, 5 + number if number > 8 else 5))
        for matcher in (mine, law):
            matcher.add(number, tree)
        for value in (5, 4, 6, -(60**4), 74, 10**9):
            assert answer(mine, {"a": value}) == answer(law, {"a": value})


@pytest.mark.parametrize("kind", KINDS)
def test_many_attributes_come_one_after_another(kind):
    mine, law = pair(kind)
    for number in range(12):
        tree = all_of([Test(f"x{at}", Range(at, at + number)) for at in range(number % 5, number + 1)])
        for matcher in (mine, law):
            matcher.add(number, tree)
        for value in (0, 3, 6):
            event = {f"x{at}": value + at % 3 for at in range(0, 12, 1 + value)}
            assert answer(mine, event) == answer(law, event)


def test_tama_as_printed_loses_nothing_and_adds_what_ends_in_the_cell_of_the_value():
    table = hem_table(n=3_000, delta=0.5)
    # Events between the ends: as printed a value at the far side of an end's finest cell counts as inside.
    vectors = np.random.default_rng(2).random((60, 5))
    printed, exact = Tama(levels=6, exact=False), Tama(levels=6)
    for core in (printed, exact):
        core.insert(table, np.arange(3_000, dtype=np.int32))
    more = 0
    for vector in vectors:
        rows = scan_rows(table, vector)
        assert sorted(exact.match(table, vector).tolist()) == rows
        assert set(rows) <= set(printed.match(table, vector).tolist())
        more += len(printed.match(table, vector)) - len(rows)
    assert more > 0


def test_htree_keeps_within_its_memory_and_stays_right():
    table = hem_table(delta=0.5)
    small, large = HTree(most_bytes=80_000), HTree()
    for core in (small, large):
        core.insert(table, np.arange(2_000, dtype=np.int32))
    assert small.explain(table)["entries"] < 12_000 < large.explain(table)["entries"]
    for vector in np.random.default_rng(3).random((20, 5)):
        assert sorted(small.match(table, vector).tolist()) == scan_rows(table, vector)
    small.delete(table, np.arange(0, 2_000, 2, dtype=np.int32))
    table.alive[::2] = False
    for vector in np.random.default_rng(3).random((20, 5)):
        assert sorted(small.match(table, vector).tolist()) == scan_rows(table, vector)


def test_htree_indexes_the_attributes_that_tell_rows_apart():
    boxes = RangeMatcher("htree", HTree(indexed=1))
    filters = [(at, boxes.compile_filter(td.parse(f"wide >= 0 and narrow in [{at} .. {at + 1}]"))) for at in range(50)]
    boxes.add_many(filters)
    assert boxes.explain()["indexed"] == ["narrow as number"]


@pytest.mark.parametrize("make", [lambda: Tama(levels=0), lambda: Tama(levels=40), lambda: HTree(cells=9)])
def test_parameters_beyond_the_index_are_refused(make):
    with pytest.raises(ValueError, match=r"at most|times"):
        make()
