"""What holds of every tree, unit and ontology."""

import json
import math
import pickle
from contextlib import suppress
from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise

import pint
from hypothesis import given
from hypothesis import strategies as st

from tidings.concepts import Currencies, Derived, Ontology, Tree, Units
from tidings.concepts.ontology_declaration import OF_ATTRIBUTES, OF_TREES, SECTIONS
from tidings.concepts.spelling import fold
from tidings.concepts.taxonomies.formats import READERS
from tidings.errors import TidingsError

NOW = datetime(2024, 6, 1, tzinfo=UTC)
PLAIN = pint.UnitRegistry()
LENGTHS = ("m", "km", "inch", "foot", "mile", "furlong", "light_year", "nautical_mile")
TEMPERATURES = ("kelvin", "degC", "degF", "degR")
SPEEDS = ("m/s", "km/h", "mile/hour", "knot")
AMOUNTS = st.one_of(st.integers(-(10**12), 10**12), st.floats(-1e12, 1e12))


@st.composite
def graphs(draw):
    """Concepts with parents among those before them, so without circles, in any order."""
    names = draw(st.lists(st.text("abcdeé", min_size=1, max_size=4), min_size=1, max_size=25, unique=True))
    links = {
        name: draw(st.sets(st.sampled_from(names[:at]), max_size=4)) if at else set() for at, name in enumerate(names)
    }
    order = draw(st.permutations(names))
    return {name: draw(st.permutations(sorted(links[name]))) for name in order}


def list_reachable(links, name):
    """All concepts at or above one, walked naively."""
    names, stack = set(), [name]
    while stack:
        names.add(at := stack.pop())
        stack.extend(links[at])
    return names


@given(graphs())
def test_is_a_is_reachability(links):
    tree = Tree(links)
    for value in links:
        above = list_reachable(links, value)
        assert {concept for concept in links if tree.is_a(value, concept)} == above


@given(graphs())
def test_ranges_are_disjoint_ascending_and_hold_what_lies_below(links):
    tree = Tree(links)
    assert sorted(tree.code(name) for name in tree) == list(range(len(links)))
    for concept in links:
        ranges = tree.ranges(concept)
        assert all(low <= high for low, high in ranges)
        assert all(high + 1 < low for (_, high), (low, _) in pairwise(ranges))
        covered = {tree.names[number] for low, high in ranges for number in range(low, high + 1)}
        assert covered == {name for name in links if concept in list_reachable(links, name)}


@given(st.integers(1, 30), st.randoms(use_true_random=False))
def test_subtree_of_a_plain_tree_is_one_range(size, random):
    tree = Tree({str(n): [str(random.randrange(n))] if n else [] for n in range(size)})
    assert all(len(tree.ranges(name)) == 1 for name in tree)


@given(graphs(), st.randoms(use_true_random=False))
def test_numbers_follow_from_the_concepts_alone(links, random):
    order = list(links)
    random.shuffle(order)
    assert Tree({name: links[name] for name in order}).names == Tree(links).names


@given(graphs(), st.data())
def test_synonyms_fold_to_one_name(links, data):
    words = st.text(min_size=1, max_size=6)
    synonyms = data.draw(st.dictionaries(st.sampled_from(sorted(links)), st.lists(words, max_size=3)))
    tree = Tree(links, synonyms)
    for name in links:
        assert tree.canonical(name) == name
    for spelling in tree.spellings():
        carriers = [name for name in links if name == spelling] or [n for n, w in synonyms.items() if spelling in w]
        assert sorted(tree.candidates(spelling)) == sorted(set(carriers))
        assert spelling.swapcase() not in tree or fold(spelling.swapcase()) in {fold(w) for w in tree.spellings()}


@given(graphs(), st.data())
def test_ontologies_round_trip_and_pickle(links, data):
    words = st.dictionaries(st.sampled_from(sorted(links)), st.lists(st.text("xyz", min_size=1), max_size=2))
    own = {name: [w for w in spellings if w not in links] for name, spellings in data.draw(words).items()}
    table = {
        "trees": {"t": {"parents": {name: list(above) for name, above in links.items()}, "synonyms": own}},
        "attributes": {"a": "concept t", "b": {"kind": "number", "synonyms": ["c"]}},
        "derived": {"d": "b * 2"},
    }
    ontology = Ontology.from_dict(table)
    assert Ontology.from_dict(json.loads(json.dumps(ontology.to_dict(), sort_keys=True))) == ontology
    assert pickle.loads(pickle.dumps(ontology)) == ontology
    assert hash(pickle.loads(pickle.dumps(ontology))) == hash(ontology)


@given(AMOUNTS, st.sampled_from([LENGTHS, TEMPERATURES, SPEEDS]), st.data())
def test_conversions_agree_with_pint(amount, family, data):
    unit, to = data.draw(st.sampled_from(family)), data.draw(st.sampled_from(family))
    expected = PLAIN.Quantity(float(amount), unit).to(to).magnitude
    assert math.isclose(Units().convert(amount, unit, to=to), expected, rel_tol=1e-9, abs_tol=1e-6)


@given(AMOUNTS, AMOUNTS, st.sampled_from(LENGTHS), st.sampled_from(LENGTHS))
def test_conversions_keep_the_order(a, b, unit, to):
    units = Units()
    assert (a <= b) <= (units.convert(a, unit, to=to) <= units.convert(b, unit, to=to))


@given(st.integers(-(2**40), 2**40), st.integers(1, 10**6))
def test_currencies_convert_exactly(amount, cents):
    units = Units(currencies=Currencies("USD", {"EUR": cents / 100}))
    amount_in_dollars = units.convert(amount, "EUR", to="USD")
    assert amount_in_dollars == float(amount * Fraction(str(cents / 100)))


@given(st.text(max_size=30))
def test_no_text_is_read_as_anything_but_an_amount_or_nothing(text):
    amount = Units(currencies=Currencies("USD", {})).read(text)
    assert amount is None or (math.isfinite(amount[0]) and amount[1])


# --- nothing a user can write raises anything but our error ------------------------------------

WORDS = ["now", "a", "b.c", "`x y`", "+", "-", "*", "/", "(", ")", ",", "year", "round", "min", "'t'", "1", "2.5", "é"]
LINES = ["a", "b", "a > b", "1\ta", "1\ta > b", " > ", "  c", "\tb", "a,b", "b,a", ",a", "a,", "< en: a", "en: a, b"]
LINES += ["fr: b", "< en:", " = ", "x = y", "# c", "", '{"parents": {"a": "b"}}', "00000100 03 n 01 a 0 000 | x"]
FACTORS = ["m", "km", "^2", "**3", "/", "*", "·", " per ", "kg", "USD", "$", "°C", "²", "-", "1", "dB", "%", "^0.5"]
KEYS = [*SECTIONS, *OF_TREES, *OF_ATTRIBUTES, "base", "rates", "a", "b"]


def join_parts(parts, joint, most=20):
    return st.one_of(st.lists(st.sampled_from(parts), max_size=most).map(joint.join), st.text(max_size=40))


@given(join_parts(WORDS, " "), st.sampled_from([None, 0, 1.5, "x", NOW, True, [1]]))
def test_any_expression_is_evaluated_or_refused(text, value):
    with suppress(TidingsError):
        Derived.parse("x", text).value(lambda _: value, NOW)


@given(join_parts(FACTORS, "", 6))
def test_any_unit_is_known_or_refused(text):
    units = Units(currencies=Currencies("USD", {}))
    with suppress(TidingsError):
        assert units.base(units.base(text)) == units.base(text)


@given(join_parts(LINES, "\n"), st.sampled_from(sorted({*READERS} - {"skos"})), st.booleans())
def test_any_text_is_a_tree_or_refused(text, format, lenient):
    with suppress(TidingsError):
        assert len(Tree.read(text, format=format, lenient=lenient)) > 0


@given(
    st.dictionaries(
        st.sampled_from(SECTIONS),
        st.recursive(
            st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text("ab", max_size=2)),
            lambda deeper: st.one_of(
                st.lists(deeper, max_size=3), st.dictionaries(st.sampled_from(KEYS), deeper, max_size=4)
            ),
            max_leaves=20,
        ),
    )
)
def test_any_table_is_an_ontology_or_refused(table):
    with suppress(TidingsError):
        ontology = Ontology.from_dict(table)
        assert Ontology.from_dict(ontology.to_dict()) == ontology
