"""A small world of attribute trees and value trees, with several parents, and what is drawn from it."""

from datetime import UTC, datetime
from itertools import chain

from hypothesis import strategies as st

import tidings as td
from tidings.concepts import Declared, Tree
from tidings.model import And, Exists, Is, IsA, Kind, Or, Range, Test, all_of, any_of, one_of

BIG = 2**53
NOW = datetime(2024, 5, 1, tzinfo=UTC)

PRODUCTS = Tree(
    {
        "device": [],
        "computer": ["device"],
        "phone": ["device"],
        "laptop": ["computer"],
        "tablet": ["computer", "phone"],
        "phablet": ["tablet", "phone"],
        "toy": [],
    },
    {"laptop": ["notebook"]},
)
COLOURS = Tree({"colour": [], "red": ["colour"], "scarlet": ["red"], "blue": ["colour"]})

ONTOLOGY = td.Ontology(
    trees={"product": PRODUCTS, "hue": COLOURS},
    attribute_trees={
        "contacts": Tree({"contact": [], "email": ["contact"], "call": ["contact"], "mobile": ["call"]}),
        "places": Tree({"place": [], "work": [], "office": ["place", "work"], "desk": ["office"]}),
        "sizes": Tree({"size": [], "width": ["size"], "depth": ["size"], "inner": ["width"]}),
        "signals": Tree({"signal": [], "level": ["signal"], "flag": ["signal"]}),
        "single": Tree({"lonely": []}),
    },
    attributes={
        "place": Declared(Kind.CONCEPT, "product"),
        "size": Declared(Kind.NUMBER),
        "item": Declared(Kind.CONCEPT, "product"),
        "contact": Declared(Kind.TEXT),
    },
)
"""`thing` is undeclared: its `is a` finds the tree by the concept; `level` and `flag` differ in kind."""

NAMES = {
    "text": ["contact", "email", "call", "mobile", "lonely"],
    "concept": ["place", "work", "office", "desk", "item"],
    "any concept": ["thing"],
    "number": ["size", "width", "depth", "inner", "level", "price"],
    "time": ["when"],
    "bool": ["flag"],
}
WORDS = ["x", "y", "z", "red"]
CONCEPTS = [*PRODUCTS.names, "notebook"]
NUMBERS = [0, 1, 2, 3, 5, 2.5, -1.0, 1e308, -1e308, 5e-324, BIG, BIG + 1, BIG + 2, -BIG - 1, 2**63 - 1, 2**63 - 2]
TIMES = [datetime(year, 1, day, tzinfo=UTC) for year in (1, 1970, 2024, 9999) for day in (1, 2)]


@st.composite
def ranges(draw, ends):
    low, high = sorted(draw(st.lists(st.sampled_from(ends), min_size=2, max_size=2)))
    sides = draw(st.sampled_from(["both", "low", "high"]))
    flags = draw(st.tuples(st.booleans(), st.booleans()))
    return Range(low if sides != "high" else None, high if sides != "low" else None, *flags)


@st.composite
def tests(draw):
    sort = draw(st.sampled_from([*NAMES, "exists"]))
    if sort == "exists":
        return Test(draw(st.sampled_from([*chain(*NAMES.values()), "signal", "unread"])), Exists())
    name = draw(st.sampled_from(NAMES[sort]))
    match sort:
        case "text":
            condition = one_of(draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3)))
        case "concept":
            word = st.sampled_from(CONCEPTS)
            condition = draw(st.one_of(word.map(IsA), word.map(IsA), word.map(Is)))
        case "any concept":
            condition = IsA(draw(st.sampled_from([*CONCEPTS, *COLOURS.names])))
        case "number":
            some = st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=3).map(one_of)
            condition = draw(st.one_of(ranges(NUMBERS), ranges(NUMBERS), some))
        case "time":
            condition = draw(st.one_of(ranges(TIMES), st.sampled_from(TIMES).map(Is)))
        case "bool":
            condition = Is(draw(st.booleans()))
    return Test(name, condition)


def filters():
    rows = st.lists(tests(), min_size=1, max_size=4).map(all_of)
    several = st.lists(rows, min_size=2, max_size=3).map(any_of)
    joined = st.tuples(tests(), several).map(And)
    return st.one_of(rows, rows, rows, several, joined, st.just(And(())), st.just(Or(())))


def event_ranges(ends):
    return st.tuples(st.sampled_from(ends), st.sampled_from(ends), st.booleans(), st.booleans()).map(_event_range)


def _event_range(drawn):
    low, high = sorted(drawn[:2])
    return td.Range(low, high) if low == high else td.Range(low, high, *drawn[2:])


@st.composite
def events(draw):
    event = {}
    for sort, names in NAMES.items():
        match sort:
            case "text":
                value = st.sampled_from(WORDS)
            case "concept" | "any concept":
                value = st.sampled_from([*CONCEPTS, *COLOURS.names, "unheard of"])
            case "number":
                value = st.one_of(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS), event_ranges(NUMBERS))
            case "time":
                value = st.one_of(st.sampled_from(TIMES), event_ranges(TIMES))
            case "bool":
                value = st.booleans()
        for name in names:
            if draw(st.booleans()):
                event[name] = draw(st.one_of(value, value, value, st.lists(value, max_size=3), st.none()))
    return event


def build_matcher(kind):
    return td.Matcher(kind, ontology=ONTOLOGY, now=NOW)


@st.composite
def steps(draw):
    """Draw what is done to a matcher: filters added or replaced, alone or together, and removed."""
    ids = st.integers(0, 5)
    many = st.dictionaries(ids, filters(), min_size=1, max_size=6)
    return draw(st.lists(st.one_of(many, many, ids), min_size=1, max_size=6))


def check_steps(kind, done, seen):
    """After each step the matcher and brute force give the same answers, one by one and together."""
    ours, law = build_matcher(kind), build_matcher("brute")
    for step in done:
        for each in (ours, law):
            if isinstance(step, dict):
                each.add_many(step.items())
            elif step in each:
                each.remove(step)
        wanted = [sorted(law.match(event)) for event in seen]
        assert [sorted(ours.match(event)) for event in seen] == wanted
        assert [sorted(ids) for ids in ours.match_many(seen).by_event()] == wanted
    ours.remove_many(list(ours))
    assert ours.match_many(seen).by_event() == [[] for _ in seen]
    return ours


def list_answers(kind, texts, event):
    """The answers to one event of filters in text, by brute force and by a matcher: they must agree."""
    ids = []
    for each in ("brute", kind):
        made = build_matcher(each)
        made.add_many(texts.items())
        ids.append(sorted(made.match(event)))
    assert ids[0] == ids[1]
    return ids[1]
