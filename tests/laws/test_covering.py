"""`covers` and `overlaps` against everything that can happen to one attribute.

Conditions come from a handful of end points, so that boundaries meet. Tried is: absent, null, and every set of
up to four values that differ in what the conditions see, event ranges among them and, where nothing is declared, a
value that cannot be read. Where conditions are ordered, the answers must be exactly what is found; elsewhere, and
where conditions read one attribute as several kinds, `covers` must not be true and `overlaps` not false wrongly.
"""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address, ip_network
from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from tidings.algebra import Reading, Setting, bind, covers, evaluate, holds, overlaps, simplify
from tidings.algebra.law.typed_attribute import Mismatch, TypedAttribute, resolve_test
from tidings.concepts import Ontology, Tree, Vocabulary
from tidings.model import (
    Age,
    And,
    Compare,
    Comparison,
    Exists,
    Has,
    In,
    InNetworks,
    IsA,
    IsNull,
    Near,
    Not,
    Or,
    Point,
    Quantifier,
    Quantity,
    Range,
    Schema,
    Test,
    TextOp,
    TextTest,
    Within,
    all_of,
    any_of,
    build_area,
    one_of,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOWHERE = Setting(Ontology(), NOW)

# --- conditions and the values that tell them apart -----------------------------------------------------

flags = st.booleans()


def spans(ends):
    """Ranges with these ends, open and closed, also without one end, also empty."""
    pairs = [(None, end) for end in ends] + [(end, None) for end in ends]
    pairs += [(low, high) for low in ends for high in ends if low <= high]
    return st.builds(lambda pair, *opened: Range(*pair, *opened), st.sampled_from(pairs), flags, flags)


def sets_of(values):
    return st.lists(st.sampled_from(values), min_size=1, max_size=3).map(one_of)


def ranges_between(ends):
    """Event ranges with these ends, open and closed, also without an end."""
    pairs = [*combinations(ends, 2), *((None, end) for end in ends), *((end, None) for end in ends)]
    return [Range(*pair, *opened) for pair in pairs for opened in product((False, True), repeat=2)]


numbers = spans([0, 1, 2]) | sets_of([0, 1, 2, 1.0, 0.5])
NUMBERS = [-1, 0, 0.25, 0.5, 0.75, 1, 1.5, 2, 3]
NUMBERS_AND_RANGES = NUMBERS + ranges_between(NUMBERS)

texts = spans(["", "a", "ab", "b"]) | sets_of(["", "a", "ab", "a\0"])
texts |= st.sampled_from(["", "a", "ab", "b"]).map(lambda prefix: TextTest(TextOp.STARTS_WITH, prefix))
texts |= st.sampled_from(["a", "ab*", "*", ""]).map(lambda pattern: TextTest(TextOp.LIKE, pattern))
TEXTS = ["", "\0", "A", "a", "a\0", "a\0\0", "aa", "ab", "ab\0", "abc", "ac", "b", "b\0", "ba", "c", "z"]

truths = sets_of([True, False])

blocks = ["10.0.0.0/30", "10.0.0.0/31", "10.0.0.3/32", "0.0.0.0/0", "::/0", "::1/128", "::ffff:0:0/96", "::/80"]
addresses = st.lists(st.sampled_from(blocks).map(ip_network), min_size=1, max_size=2).map(
    lambda blocks: InNetworks(tuple(blocks))
)
ADDRESSES = [ip_address(a) for a in ("9.9.9.9", "10.0.0.0", "10.0.0.2", "10.0.0.3", "10.0.0.4", "::1", "::2", "1::")]

moments = [NOW + timedelta(seconds=s) for s in (-60, -1, -0.1, 0)]
times = spans(moments) | spans([0, 1, 60, 0.1]).map(Age)
ticks = [-61_000_000, -60_000_000, -2_000_000, -1_000_001, -1_000_000, -999_999, -100_001, -100_000, -99_999, -1, 0, 1]
TIMES = [NOW + timedelta(microseconds=tick) for tick in ticks]
TIMES_AND_RANGES = TIMES + ranges_between(TIMES)

PATTERNS = ["", "a", "b", "ab", "ba", "B", "aB", "ß", "ss", "s"]
LIKES = ["a?", "?b", "*a*b*", "?", "??", "*\\*", "a*b", "b*"]
wordings = st.builds(TextTest, st.sampled_from(TextOp), st.sampled_from(PATTERNS), flags)
wordings |= st.builds(TextTest, st.just(TextOp.LIKE), st.sampled_from(LIKES), flags)
wordings |= st.builds(TextTest, st.just(TextOp.MATCHES), st.sampled_from(["^a", "b$", "a.b"]), flags)
wordings |= sets_of(["", "ab", "B"]) | spans(["a", "b"])
WORDS = ["".join(word) for size in range(4) for word in product("abB", repeat=size)]
WORDS += ["ß", "ss", "sß", "S", "aß", "*", "a*", "abab"]


def build_square(west, south, size):
    ring = [(west, south), (west + size, south), (west + size, south + size), (west, south + size), (west, south)]
    return Within(build_area([[ring]]))


CORNERS = [
    (0, 0, 2),
    (0, 0, 1),
    (0.5, 0.5, 0.5),
    (1, 1, 1),
    (5, 5, 1),
    (179, 0, 2),
    (-181, 0, 2),
    (180, 0, 0.5),
    (-180, 0, 0.5),
]
CORNERS += [(179.25, 0.25, 0.25), (-180.75, 0.25, 0.25), (538.5, 0, 1.5), (-540, 0, 1.5)]
CENTERS = [(0, 0), (1, 1), (180, 1), (-179.75, 0.25)]
CIRCLES = [Near(Point(lon, lat), metres) for lon, lat in CENTERS for metres in (0, 50_000, 100_000, 400_000, 21e6)]
SPOTS = [*(build_square(*corner) for corner in CORNERS), *CIRCLES]
spots = st.sampled_from(SPOTS) | sets_of([Point(0, 0), Point(180, 1)])
longitudes = (0, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 179, 179.25, 179.5, 179.75, 180, -180, -179.75, -179)
PLACES = [Point(lon, lat) for lon in longitudes for lat in (0, 0.25, 0.75, 1, 1.5, 2, 5.5)]


SIDES = [
    (),
    *combinations([0, 1, 2, Range(0, 1), Range(0, 2, low_open=True, high_open=True), "x", True, Mismatch(None)], 1),
    (0, "x"),
    (0, 2),
    (1, 2),
    (0, Range(1, 2)),
]


def literals(conditions, name="a"):
    """Tests and negated tests of one attribute."""
    plain = st.builds(Test, st.just(name), conditions, st.sampled_from(Quantifier))
    presence = st.sampled_from([Test(name, Exists()), Test(name, IsNull())])
    strategy = st.one_of(plain, plain, plain, presence)
    return strategy | strategy.map(Not)


def conjunctions(leaves):
    return st.lists(leaves, min_size=1, max_size=3).map(all_of)


def pairs(conditions):
    """Two conjunctions of literals of one attribute."""
    return st.tuples(conjunctions(literals(conditions)), conjunctions(literals(conditions)))


def trees(leaves, max_leaves):
    return st.recursive(
        leaves,
        lambda inner: (
            inner.map(Not) | st.lists(inner, max_size=3).map(all_of) | st.lists(inner, max_size=3).map(any_of)
        ),
        max_leaves=max_leaves,
    )


# --- worlds ---------------------------------------------------------------------------------------------


def list_leaves(tree):
    match tree:
        case And(parts) | Or(parts):
            return {test for part in parts for test in list_leaves(part)}
        case Not(part):
            return list_leaves(part)
        case Test(name, condition):
            return {Test(name, condition)}


def keep_distinct(values, trees, setting, read):
    """Keep one of the values that all tests see alike."""
    tests = {test for tree in trees for test in list_leaves(tree)}
    seen = {}
    for value in values:
        seen.setdefault(tuple(holds(test, read((value,)), setting) for test in tests), value)
    return list(seen.values())


KINDS = ("", "number", "text", "bool", "time", "place", "ip")
UNREAD = Mismatch("a value that the conditions cannot read")


def build_reading(**attributes):
    """Values as they are read, whatever they are asked for as: each suite asks for one kind."""
    return Reading({TypedAttribute(name, kind): values for name, values in attributes.items() for kind in KINDS})


def build_reading_of_a(values):
    return build_reading(a=values)


def list_worlds(values, trees, *, most=4, setting=NOWHERE, read=build_reading_of_a):
    """Everything that can happen to the attribute `a`."""
    yield Reading()
    yield Reading(nulls=frozenset("a"))
    values_left = keep_distinct(values, trees, setting, read)
    for size in range(1, most + 1):
        yield from map(read, combinations(values_left, size))


def list_truths(pair, seen, setting=NOWHERE):
    return [tuple(holds(tree, world, setting) for tree in pair) for world in seen]


def check_exact(pair, truths, **around):
    assert covers(*pair, **around) is all(wide for wide, narrow in truths if narrow)
    assert overlaps(*pair, **around) is any(wide and narrow for wide, narrow in truths)


def check_sound(pair, truths, **around):
    if covers(*pair, **around):
        assert all(wide for wide, narrow in truths if narrow)
    if not overlaps(*pair, **around):
        assert not any(wide and narrow for wide, narrow in truths)


# --- exact ------------------------------------------------------------------------------------------------


@given(pairs(numbers))
@examples(200)
def test_numbers_are_decided_exactly_where_several_values_and_ranges_may_come(pair):
    check_exact(pair, list_truths(pair, list_worlds([*NUMBERS_AND_RANGES, UNREAD], pair)))
    declared = Schema({"a": "several number"})
    check_exact(pair, list_truths(pair, list_worlds(NUMBERS_AND_RANGES, pair)), schema=declared)


@given(pairs(numbers))
def test_numbers_are_decided_exactly_where_one_value_comes(pair):
    check_exact(pair, list_truths(pair, list_worlds(NUMBERS, pair, most=1)), schema=Schema({"a": "number"}))
    check_exact(pair, list_truths(pair, list_worlds([*NUMBERS, UNREAD], pair, most=1)), schema=Schema({"a": "any"}))


def unite_amounts(condition, unit):
    """The same condition with amounts: thousands of MB are as many GB."""
    scale = 1 if unit == "GB" else 1000
    if isinstance(condition, Range):
        low, high = (None if end is None else Quantity(end * scale, unit) for end in (condition.low, condition.high))
        return Range(low, high, condition.low_open, condition.high_open)
    values = condition.values if isinstance(condition, In) else (condition.value,)
    return one_of([Quantity(value * scale, unit) for value in values])


amounts = st.builds(unite_amounts, numbers, st.sampled_from(["GB", "MB"]))


@given(pairs(amounts))
def test_amounts_are_decided_exactly_in_whatever_unit_they_are_written(pair):
    values = [f"{number} GB" for number in NUMBERS] + ["5 km", 1, "x"]
    values += [Range(Quantity(0, "GB"), Quantity(1, "GB")), Range(Quantity(0, "MB"), Quantity(2000, "MB"), True, True)]
    events = [{}, {"a": None}, *({"a": list(some)} for size in (1, 2, 3) for some in combinations(values, size))]
    truths = [tuple(evaluate(tree, event) for tree in pair) for event in events]
    check_sound(pair, truths)
    if not any(isinstance(part, Not) or part.quantifier is not Quantifier.ANY for part in list_parts(pair)):
        check_exact(pair, truths)


def list_parts(pair):
    return [part for tree in pair for part in (tree.parts if isinstance(tree, And) else (tree,))]


@given(pairs(texts))
def test_ordered_text_is_decided_exactly(pair):
    check_exact(pair, list_truths(pair, list_worlds([*TEXTS, UNREAD], pair)))
    check_exact(pair, list_truths(pair, list_worlds(TEXTS, pair, most=1)), schema=Schema({"a": "text"}))
    check_exact(pair, list_truths(pair, list_worlds(TEXTS, pair)), schema=Schema({"a": "several string"}))


@given(pairs(truths))
def test_truth_is_decided_exactly(pair):
    check_exact(pair, list_truths(pair, list_worlds([True, False, UNREAD], pair)))
    check_exact(pair, list_truths(pair, list_worlds([True, False], pair)), schema=Schema({"a": "several bool"}))


@given(pairs(addresses))
def test_addresses_are_decided_exactly(pair):
    check_exact(pair, list_truths(pair, list_worlds([*ADDRESSES, UNREAD], pair)))
    check_exact(pair, list_truths(pair, list_worlds(ADDRESSES, pair)), schema=Schema({"a": "several ip"}))
    # A column of strings may hold text that is no address.
    check_exact(
        pair, list_truths(pair, list_worlds([*ADDRESSES, UNREAD], pair)), schema=Schema({"a": "several string"})
    )


@given(pairs(times))
def test_times_and_ages_are_decided_exactly_when_it_is_known_what_time_it_is(pair):
    check_exact(pair, list_truths(pair, list_worlds([*TIMES_AND_RANGES, UNREAD], pair)), now=NOW)
    check_exact(pair, list_truths(pair, list_worlds(TIMES, pair, most=1)), now=NOW, schema=Schema({"a": "time"}))


small = trees(literals(numbers), 4)


@given(st.tuples(small, small))
@examples(150)
def test_any_small_filter_of_one_attribute_is_decided_exactly(pair):
    check_exact(pair, list_truths(pair, list_worlds([*NUMBERS_AND_RANGES, UNREAD], pair)))


GOODS = Tree(
    {"goods": [], "computer": ["goods"], "laptop": ["computer"], "phone": ["goods", "computer"], "tablet": ["phone"]},
    {"laptop": ["notebook"], "phone": ["mobile"]},
)
SHOP = Ontology(trees={"goods": GOODS})
CONCEPT = Schema({"a": "several concept goods"})
concepts = st.sampled_from(GOODS.names).map(IsA) | sets_of(["laptop", "phone", "tablet"])


@given(pairs(concepts))
def test_declared_concepts_are_decided_exactly(pair):
    setting = Setting(SHOP, NOW)
    bound = [bind(tree, Vocabulary(CONCEPT, SHOP)) for tree in pair]
    truths = list_truths(bound, list_worlds([*GOODS.names, "stranger"], bound, setting=setting), setting)
    check_exact(pair, truths, schema=CONCEPT, ontology=SHOP)


inner = conjunctions(literals(numbers, "x"))
has = st.builds(Test, st.just("a"), inner.map(Has), st.sampled_from(Quantifier))
has_pairs = st.tuples(*[conjunctions(has | has.map(Not))] * 2)
ELEMENTS = [
    build_reading(x=values) for size in (1, 2) for values in combinations([-1, 0, 0.5, 1, 2, Range(0, 2)], size)
]
ELEMENTS += [Reading(), Reading(nulls=frozenset("x"))]


def build_elements_of_a(elements):
    return Reading(elements={"a": elements})


@given(has_pairs)
def test_filters_on_elements_never_lie_and_an_array_is_several_by_nature(pair):
    check_sound(pair, list_truths(pair, list_worlds([*ELEMENTS, UNREAD], pair, most=3, read=build_elements_of_a)))
    truths = list_truths(pair, list_worlds(ELEMENTS, pair, most=3, read=build_elements_of_a))
    check_sound(pair, truths, schema=Schema({"a": "record", "a.x": "several number"}))


# --- never wrong: every pair of conditions that have no order ---------------------------------------------------


def check_every_pair(conditions, values, kind, *, exactly=False, **around):
    """Of one value each: neither `covers` nor `overlaps` may lie about any two of the conditions."""
    around["schema"] = Schema({"a": kind})
    seen = [build_reading(a=(value,)) for value in values]
    tests = [Test("a", condition) for condition in conditions]
    accepted = [{at for at, world in enumerate(seen) if holds(test, world, NOWHERE)} for test in tests]
    for (wide, outer), (narrow, inner) in product(zip(tests, accepted, strict=True), repeat=2):
        covering, meeting = covers(wide, narrow, **around), overlaps(wide, narrow, **around)
        assert covering is (outer >= inner) or (not covering and not exactly), (wide, narrow)
        assert meeting is bool(outer & inner) or (meeting and not exactly), (wide, narrow)


def list_spans(ends):
    pairs = [*combinations([*ends, None], 2), *((None, end) for end in ends), *((end, end) for end in ends)]
    return dict.fromkeys(Range(*pair, *opened) for pair in pairs for opened in product((False, True), repeat=2))


def test_of_any_two_times_and_ages_is_told_what_is():
    ages = [Age(span) for span in list_spans([0, 0.1, 1, 60])]
    check_every_pair([*list_spans(moments), *ages], TIMES, "time", exactly=True, now=NOW)


def test_no_two_areas_or_circles_are_told_wrongly():
    check_every_pair(SPOTS, PLACES, "place")


def test_no_two_text_tests_are_told_wrongly():
    plain = [TextTest(op, pattern, ic) for op in TextOp for pattern in PATTERNS for ic in (False, True)]
    liked = [TextTest(TextOp.LIKE, pattern, ic) for pattern in LIKES for ic in (False, True)]
    check_every_pair([*plain[::2], *plain[1::4], *liked], WORDS, "text")


def test_no_two_comparisons_are_told_wrongly():
    names = [("a", "b"), ("b", "a")]
    tests = [Test(left, Compare(op, right), q) for left, right in names for op in Comparison for q in Quantifier]
    tests += [Not(test) for test in tests]
    seen = [build_reading(a=left, b=right) for left in SIDES for right in SIDES]
    accepted = [{at for at, world in enumerate(seen) if holds(test, world, NOWHERE)} for test in tests]
    for (wide, outer), (narrow, inner) in product(zip(tests, accepted, strict=True), repeat=2):
        assert outer >= inner or not covers(wide, narrow), (wide, narrow)
        assert not outer & inner or overlaps(wide, narrow), (wide, narrow)


# --- never wrong: conjunctions ------------------------------------------------------------------------------------


@given(pairs(wordings))
@examples(300)
def test_text_tests_never_lie(pair):
    check_sound(pair, list_truths(pair, list_worlds([*WORDS, UNREAD], pair, most=3)))


@given(pairs(spots))
@examples(300)
def test_places_never_lie(pair):
    check_sound(pair, list_truths(pair, list_worlds([*PLACES, UNREAD], pair, most=3)))


# Half a microsecond is an age that no event has.
@given(pairs(times | spans([0, 0.0000005]).map(Age)), st.sampled_from([-60, -1, 0, 30]))
def test_ages_never_lie_whatever_time_it_is(pair, seconds):
    setting = Setting(Ontology(), NOW + timedelta(seconds=seconds))
    check_sound(
        pair, list_truths(pair, list_worlds([*TIMES_AND_RANGES, UNREAD], pair, most=3, setting=setting), setting)
    )


@given(pairs(concepts | texts))
def test_concepts_of_plain_text_never_lie(pair):
    setting = Setting(SHOP, NOW)
    spellings = [*GOODS.names, "notebook", "Laptop", "MOBILE", "stranger", *TEXTS]
    bound = [bind(tree, Vocabulary(ontology=SHOP)) for tree in pair]
    truths = list_truths(bound, list_worlds([*spellings, UNREAD], bound, most=3, setting=setting), setting)
    check_sound(pair, truths, ontology=SHOP)


# --- never wrong: one attribute as several kinds ------------------------------------------------------------------

SEVERAL_KINDS = numbers | texts | truths | addresses | spots | amounts | times
RAW = [0, 1, "1", "0.5", "x", "", "a", True, "true", "false", "10.0.0.2", ADDRESSES[0], Point(0, 0), (0, 0),
       (1, 1), "1 GB", "500 MB", "2 km", NOW, "2026-01-01", {"b": 1}, Range(0, 1), Range(NOW, None), float("inf"),
       2**70]  # fmt: skip
mixed_events = st.fixed_dictionaries({"a": st.lists(st.sampled_from([*RAW, None]), max_size=3)})
mixed_trees = trees(literals(SEVERAL_KINDS), 5)


@given(mixed_trees, mixed_trees, st.lists(mixed_events, min_size=1, max_size=20))
@examples(300)
def test_filters_of_several_kinds_never_lie_and_never_raise(left, right, events):
    truths = [tuple(evaluate(tree, event, now=NOW) for tree in (left, right)) for event in events]
    check_sound((left, right), truths, now=NOW)
    simple = simplify(left, now=NOW)
    assert [evaluate(simple, event, now=NOW) for event in events] == [wide for wide, _ in truths]
    assert simplify(simple, now=NOW) == simple


@given(SEVERAL_KINDS, SEVERAL_KINDS, st.sampled_from(Quantifier), st.sampled_from(Quantifier))
def test_tests_of_different_kinds_or_units_overlap_and_do_not_cover_each_other(
    condition, other_condition, first, second
):
    left, right = Test("a", condition, first), Test("a", other_condition, second)
    satisfiable = [overlaps(tree, tree) for tree in (left, right)]
    kinds = [bind(tree, Vocabulary()) for tree in (left, right)]
    if resolve_test(kinds[0]) != resolve_test(kinds[1]) and all(satisfiable):
        assert overlaps(left, right)
        assert not covers(left, right) or covers(left, Test("a", Exists()))


def build_comparisons(left, right):
    return literals(st.builds(Compare, st.sampled_from(Comparison), st.just(right)), left)


comparisons = conjunctions(build_comparisons("a", "b") | build_comparisons("b", "a"))


@given(st.tuples(comparisons, comparisons))
@examples(300)
def test_comparisons_of_two_attributes_never_lie(pair):
    seen = [build_reading(a=left, b=right) for left in SIDES for right in SIDES]
    check_sound(pair, list_truths(pair, seen))
    single = [build_reading(a=left, b=right) for left in [(), (0,), (1,)] for right in [(), (0,), (1,)]]
    check_sound(pair, list_truths(pair, single), schema=Schema({"a": "number", "b": "number"}))
