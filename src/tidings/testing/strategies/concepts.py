"""Concept trees, ontologies, regions and schemas."""

from __future__ import annotations

from tidings.concepts import Ontology, Regions
from tidings.model import Attribute, Kind, Schema
from tidings.model.schema import DECLARABLE
from tidings.testing.hypothesis_import import st
from tidings.testing.strategies.areas import areas
from tidings.testing.strategies.values import attributes

GOODS = ("goods", "computer", "laptop", "tablet", "netbook", "phone", "büro", "spare part")
"""Names of the concepts of one tree."""

PLACES = ("earth", "europe", "france", "paris", "the alps")
"""Names of the concepts of another."""

SYNONYMS = {
    "laptop": ("notebook", "Klapprechner", "ノートパソコン"),
    "computer": ("EDV",),
    "europe": ("Old World",),
    "goods": ("merchandise",),
}
"""Other spellings, in any language; their case does not matter."""

REGIONS = ("downtown", "far east", "`odd`", "région-1")
"""Names of regions."""


@st.composite
def parents(draw: st.DrawFn, names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return concepts with their parents: several roots, several parents, no cycle."""
    chosen = names[: draw(st.integers(2, len(names)))]
    parents_by_name: dict[str, tuple[str, ...]] = {chosen[0]: ()}
    for number, name in enumerate(chosen[1:], start=1):
        above = draw(st.lists(st.sampled_from(chosen[:number]), max_size=2, unique=True))
        parents_by_name[name] = tuple(above)
    return parents_by_name


def trees() -> st.SearchStrategy[dict[str, dict[str, tuple[str, ...]]]]:
    """Return one or two trees by name; no concept is in both."""
    goods, places = parents(GOODS), parents(PLACES)
    return st.one_of(st.fixed_dictionaries({"goods": goods}), st.fixed_dictionaries({"goods": goods, "places": places}))


FORESTS: tuple[dict[str, dict[str, tuple[str, ...]]], ...] = (
    {"goods": {"goods": (), "computer": ("goods",), "laptop": ("computer",)}},
    {"goods": {"goods": (), "computer": ("goods",), "tablet": ("goods",), "netbook": ("computer", "tablet")}},
    {"goods": {"goods": (), "laptop": ()}, "places": {"earth": (), "europe": ("earth",), "paris": ("europe",)}},
)
"""A chain, a concept with two parents, and two trees of which one has two roots."""


def tree_table(trees: dict[str, dict[str, tuple[str, ...]]]) -> dict[str, dict[str, dict[str, list[str]]]]:
    """Return trees in the form of an ontology's file, with the synonyms of what they hold."""
    return {
        name: {
            "parents": {concept: list(above) for concept, above in tree.items()},
            "synonyms": {concept: list(SYNONYMS[concept]) for concept in tree if concept in SYNONYMS},
        }
        for name, tree in trees.items()
    }


CURRENCIES = {"base": "USD", "rates": {"EUR": 1.25, "JPY": 0.0078125}}
"""Exchange rates of the currencies that attributes of worlds have."""


@st.composite
def ontologies(draw: st.DrawFn) -> Ontology:
    """Return ontologies with trees, attributes of every declaration, units, currencies and a derived attribute."""
    table = {
        "trees": tree_table(draw(trees())),
        "attribute_trees": {"contacts": {"parents": {"contact": [], "email": ["contact"], "phone": ["contact"]}}},
        "attributes": {
            "kind": {"kind": "concept goods", "synonyms": ["art"]},
            "price": {"kind": "number", "unit": "USD", "unit_from": "currency", "synonyms": ["preis"]},
        },
        "units": {"quid": "EUR"},
        "currencies": CURRENCIES,
        "derived": {"age_years": "year(now) - built"},
    }
    sections = draw(st.sets(st.sampled_from(("attribute_trees", "units", "derived")), max_size=3))
    sections |= {"trees", "attributes", "currencies"}
    return Ontology.from_dict({section: content for section, content in table.items() if section in sections})


@st.composite
def regions(draw: st.DrawFn) -> Regions:
    """Return named regions."""
    return Regions({name: draw(areas()) for name in draw(st.lists(st.sampled_from(REGIONS), unique=True, min_size=1))})


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    """Return schemas, closed and open, with every kind, one value and several."""
    plain = st.builds(Attribute, st.one_of(st.none(), st.sampled_from(DECLARABLE)), several=st.booleans())
    concept = st.builds(Attribute, st.just(Kind.CONCEPT), several=st.booleans(), tree=st.just("goods"))
    declared = draw(st.dictionaries(attributes(), st.one_of(plain, concept), max_size=5))
    return Schema(declared, closed=draw(st.booleans()))
