"""Ontologies: files, the paper's example, and mistakes told together."""

import json
import pickle
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import tidings as td
from tidings.concepts import AttributeUnit, Ontology, Tree, ontology_description
from tidings.errors import AmbiguousConcept, OntologyError, UnknownConcept
from tidings.model import Kind

EXAMPLE = Path(__file__).parents[3] / "examples" / "ontology.toml"
NOW = datetime(2024, 6, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def shop():
    return Ontology.load(EXAMPLE)


def mistakes(table):
    with pytest.raises(OntologyError) as error:
        Ontology.from_dict(table)
    return "\n".join(error.value.mistakes)


# --- the computer shop of the concept-tree paper, section 3.1 ----------------------------------


def test_root_and_domain_are_as_in_the_paper(shop):
    assert shop.root("computer") == "product"
    assert shop.root("laptop PC") == "product"
    assert shop.domain("target") == "product"
    assert shop.domain("contact information") == "text"
    assert shop.root("email") == "contact information"
    assert shop.root("MoneyValue") == "MoneyValue"


def test_desktop_is_a_computer_in_any_language(shop):
    assert shop.is_a("Desktop PC", "Computer")
    assert shop.is_a("台式机", "computer", tree="product")
    assert not shop.is_a("computer", "desktop PC")
    assert shop.ranges("computer") == ((3, 5),)
    assert shop.code("desktop") == 4


def test_filter_on_the_upper_attribute_hears_of_the_lower(shop):
    assert shop.sources("contact information") == (
        "contact information",
        "cellphone number",
        "seller.cellPhoneNumber",
        "email",
        "seller.email",
    )
    assert shop.sources("seller.email") == ("email", "seller.email")
    assert shop.sources("price") == ("price.value", "price")
    assert shop.sources("colour") == ("colour",)


def test_units_of_the_event_fold_to_the_attributes_own(shop):
    unit = shop.unit("price")
    assert unit == AttributeUnit("USD", "price.currency")
    assert shop.convert(450, "units:$", to=unit.unit) == 450
    assert shop.convert(40, "units:G", to="GB") == 40
    assert shop.convert(350, "EUR", to="USD") == 378


def test_experience_is_derived_in_seconds(shop):
    derived = shop.derived["experience"]
    assert shop.kind("experience") is Kind.NUMBER
    assert shop.unit("experience") == AttributeUnit("second")
    seconds = derived.value({"graduated": datetime(2019, 5, 31, tzinfo=UTC)}.get, NOW)
    assert seconds > shop.convert(5, "years", to="second")


# --- the form -----------------------------------------------------------------------------------


def test_file_round_trips_as_a_table_in_any_order_of_keys(shop):
    table = json.loads(json.dumps(shop.to_dict(), sort_keys=True))
    again = Ontology.from_dict(table)
    assert again == shop
    assert hash(again) == hash(shop)
    assert again.ranges("computer") == shop.ranges("computer")


def test_ontology_pickles(shop):
    again = pickle.loads(pickle.dumps(shop))
    assert again == shop
    assert hash(again) == hash(shop)
    assert again.derived["experience"].value({"graduated": NOW}.get, NOW) == 0


def test_hash_is_the_same_in_every_process(shop):
    program = f"from tidings.concepts import Ontology; print(hash(Ontology.load({str(EXAMPLE)!r})))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) == hash(shop)


def test_empty_ontology_knows_nothing_and_says_so():
    empty = Ontology()
    assert empty == Ontology()
    assert empty.canonical("computer") is None
    assert empty.is_a("x", "x")
    assert not empty.is_a("x", "y")
    assert empty.attribute("a") == "a"
    assert empty.sources("a") == ("a",)
    assert empty.domain("a") == "text"
    assert empty.kind("a") is None
    assert empty.unit("a") is None
    assert empty.to_dict() == {}
    assert empty.convert(1, "km", to="m") == 1000
    with pytest.raises(UnknownConcept, match="no ontology with concept trees is given"):
        empty.require("computer")


def test_trees_come_from_files_beside_the_ontology(tmp_path):
    (tmp_path / "goods.csv").write_text("goods,phone\n", encoding="utf-8")
    (tmp_path / "shop.json").write_text(
        json.dumps({"trees": {"goods": {"file": "goods.csv", "synonyms": {"phone": ["mobile"]}}}}), encoding="utf-8"
    )
    assert Ontology.load(tmp_path / "shop.json").is_a("Mobile", "goods")


def test_tree_file_alone_is_an_ontology(tmp_path):
    (tmp_path / "goods.v2.csv").write_text("goods,phone\n", encoding="utf-8")
    (tmp_path / "t.json").write_text('{"parents": {"phone": "goods"}}', encoding="utf-8")
    assert list(Ontology.load(tmp_path / "goods.v2.csv").trees) == ["goods"]
    assert Ontology.load(tmp_path / "t.json").is_a("phone", "goods")


def test_parts_can_be_given_as_they_are():
    tree = Tree({"computer": [], "laptop": ["computer"]})
    assert Ontology(trees={"product": tree}).trees["product"] is tree


def test_dotted_attributes_need_no_quotes():
    plain = Ontology.from_dict({"attributes": {"price": {"unit": "USD", "value": {"kind": "number"}}}, **USD})
    assert plain.kind("price.value") is Kind.NUMBER
    assert plain.unit("price") == AttributeUnit("USD")


USD = {"currencies": {"base": "USD"}}


def test_attributes_of_one_tree_share_kind_and_unit():
    ontology = Ontology.from_dict(
        {
            "attribute_trees": {"weight": {"outline": "weight\n  net weight\n  gross weight"}},
            "attributes": {"weight": {"unit": "kg", "unit_from": "weight.unit"}, "gross weight": {"unit": "g"}},
        }
    )
    assert ontology.kind("net weight") is Kind.NUMBER
    assert ontology.unit("net weight") == AttributeUnit("kg")
    assert ontology.unit("gross weight") == AttributeUnit("g")
    concepts = Ontology.from_dict(
        {
            "trees": {"topic": {"outline": "sport\n  football"}},
            "attribute_trees": {"about": {"outline": "about\n  tag"}},
            "attributes": {"about": "concept topic"},
        }
    )
    assert concepts.domain("tag") == "topic"


def test_derived_attributes_come_after_those_they_read():
    ontology = Ontology.from_dict(
        {
            "derived": {"c": "b + a", "b": "a * 2", "d": "x"},
            "attributes": {"a": {"kind": "number", "synonyms": ["x"]}},
        }
    )
    assert list(ontology.derived) == ["b", "c", "d"]
    assert ontology.derived["d"].inputs == ("a",)


def test_derived_seconds_come_in_the_unit_that_is_declared():
    ontology = Ontology.from_dict(
        {"derived": {"experience": "now - graduated"}, "attributes": {"experience": {"unit": "day"}}}
    )
    assert ontology.unit("experience") == AttributeUnit("day")
    assert ontology.derived["experience"].value({"graduated": datetime(2024, 5, 30, tzinfo=UTC)}.get, NOW) == 2
    assert ontology.input_kind("graduated") is Kind.TIME
    assert ontology.kind("graduated") is None  # what a derivation needs declares nothing
    assert "graduated" not in ontology.declared_names


def test_kind_that_a_derived_attribute_needs_is_known_below_too():
    ontology = Ontology.from_dict(
        {
            "attribute_trees": {"size": {"outline": "size\n  width"}},
            "derived": {"area": "size * size"},
        }
    )
    assert ontology.input_kind("width") is Kind.NUMBER
    assert ontology.kind("width") is None


DOUBLE = Ontology.from_dict({"derived": {"double": "half * 2", "fourth": "double * 2"}})


@pytest.mark.parametrize("half", ["x", [1, 2], True, 2**70, float("inf"), {"a": 1}])
def test_a_derivation_that_fails_cannot_be_read_unless_a_schema_declares_it(half):
    event = {"half": half}
    for name in ("double", "fourth"):
        assert td.evaluate(td.parse(f"{name} exists and none({name}) < 5 and not {name} > 0"), event, ontology=DOUBLE)
    declared = td.Schema({"double": "number"}, closed=False)
    with pytest.raises(td.BadEvent):
        td.evaluate(td.parse("a = 1"), event, ontology=DOUBLE, schema=declared)
    assert td.evaluate(td.parse("half exists"), event, ontology=DOUBLE)


def test_a_derivation_asks_nothing_of_others_who_use_its_input():
    event = {"half": "x"}
    assert td.evaluate(td.parse("half = 'x' and not double < 5"), event, ontology=DOUBLE)
    assert not td.evaluate(td.parse("double exists or none(double) < 5"), {"half": float("nan")}, ontology=DOUBLE)


# --- several trees ------------------------------------------------------------------------------

TWO = Ontology.from_dict(
    {"trees": {"animal": {"outline": "pet\n  mouse = Maus"}, "tool": {"outline": "device\n  mouse\n  keyboard"}}}
)


def test_name_in_two_trees_needs_its_tree():
    with pytest.raises(AmbiguousConcept, match="`mouse` of `animal`, `mouse` of `tool`; declare the attribute's tree"):
        TWO.canonical("mouse")
    assert TWO.is_a("mouse", "device", tree="tool")
    assert TWO.is_a("mouse", "device")
    assert not TWO.is_a("mouse", "pet", tree="tool")
    assert TWO.canonical("maus") == "mouse"
    assert TWO.root("keyboard") == "device"


def test_unknown_tree_and_concept_are_suggested():
    with pytest.raises(UnknownConcept, match="no concept tree `tol`; did you mean `tool`"):
        TWO.canonical("mouse", tree="tol")
    with pytest.raises(UnknownConcept, match="unknown concept `keybord`; did you mean `keyboard`"):
        TWO.ranges("keybord")


# --- mistakes -----------------------------------------------------------------------------------


def test_all_mistakes_of_a_file_are_told_together(tmp_path):
    (tmp_path / "bad.toml").write_text(
        """
        [tres]
        [trees.a]
        outline = "x\\n  y\\n  y"
        [trees.b]
        parents = { a = "b", b = "a" }
        [trees.c]
        file = "nowhere.txt"
        [attributes]
        p = "concept aa"
        q = "nmber"
        [attributes.r]
        unt = "USD"
        unit = "furlng"
        [derived]
        e = "yaer(now)"
        [currencies]
        base = "USD"
        rates = { EUR = -1 }
        """,
        encoding="utf-8",
    )
    with pytest.raises(OntologyError) as error:
        Ontology.load(tmp_path / "bad.toml")
    text = str(error.value)
    assert text.startswith("`bad.toml` has 11 mistakes:\n")
    for part in (
        "unknown key `tres`; did you mean `trees`?",
        "[trees.a], line 3: `y` stands on line 2 already",
        "[trees.b]: concepts in a circle: `a` under `b`, `b` under `a`",
        "nowhere.txt`: No such file",
        '[attributes."p"] no concept tree `aa`',
        "unknown kind `nmber`",
        '[attributes."r"]: unknown key `unt`; did you mean `unit`?',
        '[attributes."r"] unknown unit `furlng`; did you mean `furlong`?',
        "[derived] `e`: unknown function `yaer`; did you mean `year`?\n  yaer(now)\n  ^",
        "[currencies] `EUR` is worth -1",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"trees": 3}, "[trees] is a table, not 3"),
        ({"trees": {"a": 3}}, "[trees.a] is a table with one of outline, children, parents, file"),
        ({"trees": {"a": {}}}, "[trees.a] takes one of outline, children, parents, file; it has none of them"),
        ({"trees": {"a": {"outline": "x", "file": "y"}}}, "it has outline and file"),
        ({"trees": {"a": {"outline": 3}}}, "[trees.a] `outline` is a text, not 3"),
        ({"trees": {"a": {"parents": []}}}, "[trees.a] `parents` is a table, not []"),
        ({"trees": {"a": {"outline": "x", "lenient": 1}}}, "`lenient` is true or false, not 1"),
        ({"trees": {"a": {"outline": "x", "synonyms": {"x": 3}}}}, "`synonyms` of `x`: a text or a list of texts"),
        ({"trees": {"a": {"outline": "x", "synonyms": {"z": "y"}}}}, "unknown concept `z`"),
        ({"trees": {"a": {"file": "x.txt", "format": "outlne"}}}, "No such file"),
        ({"attributes": {"a": 3}}, "[attributes] `a` is a kind or a table, not 3"),
        ({"attributes": {"a": "several text"}}, "the schema's to say"),
        ({"attributes": {"a": "concept"}}, 'such as kind = "concept product"'),
        ({"attributes": {"a": {"unit": 3}}}, "`unit` is a text, not 3"),
        ({"attributes": {"a": {"unit": "m", "kind": "text"}}}, "only a number has a unit, and this is a text"),
        ({"attributes": {"a": {"unit_from": "b"}}}, "`unit_from` needs `unit`"),
        ({"attributes": {"a": {"synonyms": [3]}}}, "`synonyms` is a list of names"),
        ({"attributes": {"a": {"synonyms": "x"}, "b": {"synonyms": ["x"]}}}, "is a synonym of `a` already"),
        ({"attributes": {"a": {"synonyms": ["b"]}, "b": "text"}}, "is an attribute of its own"),
        ({"units": {"a": 3}}, "[units] `a` is a text, not 3"),
        ({"units": {"a": "wibble"}}, "[units] `a`: unknown unit `wibble`"),
        ({"currencies": {}}, "[currencies] is a table with base"),
        ({"currencies": {"base": "USD", "rates": 3}}, "`rates` is a table"),
        ({"currencies": {"base": "USD", "rate": {}}}, "unknown key `rate`; did you mean `rates`?"),
        ({"derived": {"a": "b", "b": "c", "c": "a"}}, "in a circle: `a` reads `b` reads `c` reads `a`"),
        ({"derived": {"a": "a + 1"}}, "`a` reads `a`"),
        ({"derived": {"a": "lower(b)", "b": "year(now)"}}, "takes a text here, and this is a number"),
        ({"derived": {"a": "now"}, "attributes": {"a": "text"}}, "it gives a time, but it is declared as a text"),
        ({"derived": {"a": "now - b"}, "attributes": {"a": {"unit": "kg"}}}, "`kg` does not convert to `second`"),
        (
            {"derived": {"a": "now - b"}, "attributes": {"b": "number"}},
            "if it is a year, write year(now) - graduated instead of now - graduated",
        ),
        (
            {"attribute_trees": {"t": {"outline": "a\n  b"}}, "attributes": {"a": "text", "b": "number"}},
            "the attributes `a` (text) and `b` (number) are in one tree",
        ),
        (
            {"attribute_trees": {"t": {"outline": "a\n  b"}, "u": {"outline": "b"}}},
            "[attribute_trees.u] the attribute `b` is in another tree already",
        ),
    ],
)
def test_mistake_is_told(table, message):
    assert message in mistakes(table)


def test_tree_that_failed_is_not_reported_as_unknown():
    messages = mistakes({"trees": {"a": {"outline": ""}}, "attributes": {"x": "concept a"}})
    assert "no concept tree" not in messages


# --- telling people -----------------------------------------------------------------------------


def test_show_tells_paths_children_and_numbers(shop):
    (line,) = ontology_description.show(shop, "PC")
    assert line == {
        "name": "computer",
        "tree": "product",
        "root": "product",
        "paths": [["product", "computer"]],
        "children": ["desktop PC", "laptop PC"],
        "synonyms": ["PC"],
        "ranges": [[3, 5]],
        "size": 3,
    }
    text = ontology_description.show_text(shop, "pc")
    assert "path: product > computer" in text
    assert "numbers: 3..5" in text


def test_show_tells_every_meaning():
    assert [line["tree"] for line in ontology_description.show(TWO, "mouse")] == ["animal", "tool"]
    diamond = Ontology(trees={"t": Tree({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]})})
    (line,) = ontology_description.show(diamond, "d")
    assert line["paths"] == [["a", "b", "d"], ["a", "c", "d"]]


def test_show_tells_attributes(shop):
    (line,) = ontology_description.show(shop, "price")
    assert line == {
        "attribute": "price.value",
        "domain": "number",
        "root": "price.value",
        "sources": ["price.value", "price"],
        "unit": "USD",
        "unit_from": "price.currency",
    }
    assert "derived: now - graduated" in ontology_description.show_text(shop, "experience")
    assert ontology_description.show(shop, "email")[0]["root"] == "contact information"


def test_show_suggests_a_name(shop):
    with pytest.raises(UnknownConcept, match="called `computr`; did you mean `computer`"):
        ontology_description.show(shop, "computr")


def test_check_counts_or_tells_the_mistakes(tmp_path):
    counts = ontology_description.check(EXAMPLE)
    assert counts["ok"]
    assert counts["trees"]["product"]["concepts"] == 6
    assert counts["derived"] == ["experience"]
    assert "tree product: 6 concepts" in ontology_description.check_text(EXAMPLE)
    (tmp_path / "bad.toml").write_text("[tres]", encoding="utf-8")
    bad = ontology_description.check(tmp_path / "bad.toml")
    assert not bad["ok"]
    assert "unknown key `tres`" in ontology_description.check_text(tmp_path / "bad.toml")
    assert not ontology_description.check(tmp_path / "nowhere.toml")["ok"]


def test_importing_concepts_loads_none_of_the_large_packages():
    program = "import sys, tidings.concepts; print(*{m.partition('.')[0] for m in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"pint", "shapely", "lark", "rdflib", "pyarrow"} & {*loaded}


def test_a_single_tree_takes_the_options_of_its_format(tmp_path):
    path = tmp_path / "things.csv"
    path.write_text("parent,child\nthing,tool\ntool,hammer\n")
    assert Ontology.load(path, root="everything").root("hammer") == "everything"
    table = tmp_path / "ontology.toml"
    table.write_text('[trees.thing]\noutline = "thing"\n')
    with pytest.raises(OntologyError, match="lenient"):
        Ontology.load(table, lenient=True)
