"""Trees: who lies below whom, by any spelling."""

import pickle

import pytest

from tidings.concepts import Tree
from tidings.errors import AmbiguousConcept, OntologyError, UnknownConcept

SHOP = Tree(
    {"product": [], "computer": ["product"], "laptop PC": ["computer"], "desktop PC": ["computer"]},
    {"desktop PC": ["台式机", "Tower"], "laptop PC": ["notebook"]},
)
DIAMOND = Tree({"thing": [], "tool": ["thing"], "weapon": ["thing"], "knife": ["tool", "weapon"]})


def test_everything_lies_below_itself_and_what_is_above():
    assert SHOP.is_a("laptop PC", "laptop PC")
    assert SHOP.is_a("laptop PC", "product")
    assert not SHOP.is_a("product", "laptop PC")
    assert not SHOP.is_a("laptop PC", "desktop PC")


def test_subtree_is_one_range_of_depth_first_numbers():
    assert SHOP.names == ("product", "computer", "desktop PC", "laptop PC")
    assert [SHOP.code(name) for name in SHOP] == [0, 1, 2, 3]
    assert SHOP.ranges("computer") == ((1, 3),)
    assert SHOP.ranges("desktop PC") == ((2, 2),)


def test_several_parents_give_a_union_of_ranges():
    assert DIAMOND.is_a("knife", "tool")
    assert DIAMOND.is_a("knife", "weapon")
    assert DIAMOND.ranges("tool") == ((1, 2),)
    assert DIAMOND.ranges("weapon") == ((2, 3),)
    assert DIAMOND.ranges("thing") == ((0, 3),)


def test_numbers_do_not_depend_on_the_order_of_the_file():
    reordered = Tree(dict(reversed([(name, DIAMOND.parents(name)) for name in DIAMOND])))
    assert reordered.names == DIAMOND.names
    assert reordered == DIAMOND


def test_root_goes_by_the_first_parent():
    assert SHOP.root("notebook") == "product"
    both = Tree({"a": [], "b": [], "c": ["b", "a"]})
    assert both.root("c") == "b"
    assert both.roots == ("a", "b")


def test_synonyms_fold_exactly_first_and_then_by_case():
    assert SHOP.canonical("台式机") == "desktop PC"
    assert SHOP.canonical("TOWER") == "desktop PC"
    assert SHOP.canonical("Laptop pc") == "laptop PC"
    assert SHOP.canonical("phone") is None
    cases = Tree({"Turkey": [], "turkey": []})
    assert cases.canonical("turkey") == "turkey"
    assert cases.canonical("Turkey") == "Turkey"


def test_name_goes_before_the_synonym_of_another():
    tree = Tree({"bank": [], "shore": []}, {"shore": ["bank", "Strand"]})
    assert tree.canonical("bank") == "bank"
    assert tree.canonical("BANK") == "bank"
    assert tree.synonyms("shore") == ("Strand",)


def test_spelling_of_several_concepts_is_refused_and_names_up_to_five():
    many = Tree({f"bank {n}": [] for n in range(8)}, {f"bank {n}": ["bank"] for n in range(8)})
    with pytest.raises(AmbiguousConcept, match=r"`bank` may mean 8 concepts: `bank 0`.*`bank 4` and 3 more") as error:
        many.canonical("bank")
    assert "bank 5" not in str(error.value)
    for ask in (many.code, many.ranges, many.require, lambda name: many.is_a("bank 1", name)):
        with pytest.raises(AmbiguousConcept):
            ask("bank")
    assert "bank" in many
    assert len(many.candidates("BANK")) == 8
    assert many.shared_spellings() == ("bank",)


def test_accents_typed_as_characters_of_their_own_are_the_accented_letter():
    assert Tree({"Crème brûlée": []}).canonical("cre\u0300me bru\u0302le\u0301e") == "Crème brûlée"


def test_unknown_value_is_only_itself():
    assert SHOP.is_a("abacus", "abacus")
    assert not SHOP.is_a("abacus", "computer")
    assert SHOP.code("abacus") is None


def test_required_name_is_suggested():
    with pytest.raises(UnknownConcept, match="unknown concept `labtop PC`; did you mean `laptop PC`"):
        SHOP.require("labtop PC")


def test_circle_is_refused_and_named():
    with pytest.raises(OntologyError, match="in a circle: `a` under `b` under `c` under `a`"):
        Tree({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]})
    with pytest.raises(OntologyError, match="`a` under `a`"):
        Tree({"a": ["a"]})


def test_parent_that_is_no_concept_is_refused():
    with pytest.raises(OntologyError, match="`laptop` lies under `computr`, which is defined nowhere"):
        Tree({"computer": [], "laptop": ["computr"]})


def test_further_synonyms_make_a_new_tree():
    more = SHOP.with_synonyms({"NOTEBOOK": ["Klapprechner"]})
    assert more.canonical("klapprechner") == "laptop PC"
    assert more.canonical("notebook") == "laptop PC"
    assert "Klapprechner" not in SHOP
    with pytest.raises(OntologyError, match="`computer` is given as a synonym of `laptop PC`"):
        SHOP.with_synonyms({"laptop PC": ["computer"]})


def test_tree_answers_about_its_links():
    assert DIAMOND.parents("knife") == ("tool", "weapon")
    assert DIAMOND.children("thing") == ("tool", "weapon")
    assert DIAMOND.below("weapon") == ("knife", "weapon")
    assert len(DIAMOND) == 4
    assert list(DIAMOND) == list(DIAMOND.names)


def test_tree_pickles_and_compares_by_content():
    assert pickle.loads(pickle.dumps(SHOP)) == SHOP
    assert hash(pickle.loads(pickle.dumps(SHOP))) == hash(SHOP)
    assert SHOP != DIAMOND
    assert SHOP != "product"


def test_long_chain_does_not_exhaust_the_stack():
    chain = Tree({"0": [], **{str(n): [str(n - 1)] for n in range(1, 20_000)}})
    assert chain.is_a("19999", "0")
    assert not chain.is_a("0", "19999")
