"""Tree files: each format as people write it, and what is said when they write it wrong."""

import gzip
import json
import sys

import pytest

from tidings.concepts import Tree
from tidings.errors import AmbiguousConcept, FileError, MissingExtra, OntologyError


def links(tree):
    return {name: tree.parents(name) for name in tree}


# --- indented text ------------------------------------------------------------------------------


def test_outline_reads_indentation_and_synonyms():
    tree = Tree.read(
        "# goods\nproduct\n\n  computer\n    laptop = notebook = 笔记本\n  phone\nservice", format="outline"
    )
    assert links(tree) == {
        "product": (),
        "computer": ("product",),
        "laptop": ("computer",),
        "phone": ("product",),
        "service": (),
    }
    assert tree.canonical("笔记本") == "laptop"


def test_outline_takes_tabs_or_spaces_but_not_both():
    assert links(Tree.read("a\n\tb\n\t\tc", format="outline"))["c"] == ("b",)
    with pytest.raises(OntologyError, match="tabs and spaces are mixed"):
        Tree.read("a\n\tb\n  c", format="outline")


def test_outline_refuses_a_name_given_twice_and_names_both_lines():
    with pytest.raises(OntologyError, match="outline, line 4: `c` stands on line 3 already"):
        Tree.read("a\n  b\n    c\n  c", format="outline")


def test_empty_file_is_refused():
    with pytest.raises(OntologyError, match="no concept in it"):
        Tree.read("# nothing\n", format="outline")


def test_one_root_can_be_put_above_all():
    tree = Tree.read("a\n  b\nc", format="outline", root="everything")
    assert tree.roots == ("everything",)
    assert tree.is_a("b", "everything")


# --- parent,child -------------------------------------------------------------------------------


def test_csv_reads_several_parents_with_and_without_a_header():
    plain = Tree.read("thing,tool\nthing,weapon\ntool,knife\nweapon,knife\n", format="csv")
    headed = Tree.read("Child,Parent\ntool,thing\nweapon,thing\nknife,tool\nknife,weapon\nknife,weapon\n", format="csv")
    assert links(plain) == links(headed)
    assert plain.parents("knife") == ("tool", "weapon")


def test_csv_reads_named_columns_and_synonyms():
    text = 'kind,ABOVE,BELOW,synonyms\nx,,"goods, all",ware\nx,"goods, all",phone,Handy | mobile\n'
    tree = Tree.read(text, format="csv", columns=["ABOVE", "BELOW"])
    assert links(tree) == {"goods, all": (), "phone": ("goods, all",)}
    assert tree.canonical("mobile") == "phone"
    with pytest.raises(OntologyError, match="no column `ABOV`; did you mean `ABOVE`"):
        Tree.read(text, format="csv", columns=["ABOV", "BELOW"])


def test_csv_with_declared_roots_finds_orphans():
    with pytest.raises(OntologyError, match="csv, line 3: `laptop` lies under `computr`, which is defined nowhere"):
        Tree.read(",product\nproduct,computer\ncomputr,laptop\n", format="csv")


def test_csv_refuses_circles_with_their_lines():
    with pytest.raises(OntologyError, match=r"circle: `b` under `a` \(line 1\), `a` under `b` \(line 2\)"):
        Tree.read("a,b\nb,a\n", format="csv")


def test_csv_with_old_line_ends_is_read_and_endless_cells_are_refused():
    assert links(Tree.read("a,b\rb,c\r", format="csv"))["c"] == ("b",)
    with pytest.raises(OntologyError, match="csv, line 1: field larger than field limit"):
        Tree.read("a," + "b" * 200_000, format="csv")


def test_csv_row_without_a_child_is_a_mistake():
    with pytest.raises(OntologyError, match="csv, line 2: the row names no child"):
        Tree.read("a,b\na,\n", format="csv")


# --- paths --------------------------------------------------------------------------------------

PATHS = """# a shop
gid://1   : Clothes
gid://2   : Clothes > Accessories
gid://3   : Cameras
gid://4   : Cameras > Accessories
gid://5   : Cameras > Accessories > Tripods
"""


def test_paths_name_a_concept_by_its_whole_path():
    tree = Tree.read(PATHS, format="paths")
    assert tree.is_a("Cameras > Accessories > Tripods", "Cameras")
    assert tree.is_a("tripods", "gid://4")
    assert tree.canonical("Tripods") == "Cameras > Accessories > Tripods"
    with pytest.raises(AmbiguousConcept, match="`Cameras > Accessories`, `Clothes > Accessories`"):
        tree.canonical("Accessories")


def test_paths_take_a_tab_after_the_id():
    assert Tree.read("1\tA\n2\tA > B\n", format="paths").canonical("2") == "A > B"


def test_paths_without_ids_imply_what_is_above():
    tree = Tree.read("A > B > C\nA > B\nA > D", format="paths")
    assert links(tree) == {"A": (), "A > B": ("A",), "A > B > C": ("A > B",), "A > D": ("A",)}


def test_paths_with_ids_find_orphans_and_repetitions():
    with pytest.raises(OntologyError, match="line 2: `A > Bird > Cages` lies under `A > Bird`"):
        Tree.read("1\tA\n2\tA > Bird > Cages\n", format="paths")
    with pytest.raises(OntologyError, match="line 3: `A > B` stands on line 2 already"):
        Tree.read("1\tA\n2\tA > B\n3\tA > B\n", format="paths")


def test_paths_refuse_an_empty_part():
    with pytest.raises(OntologyError, match="line 1: a part of the path is empty"):
        Tree.read("A >  > B", format="paths")


# --- TOML and JSON ------------------------------------------------------------------------------


def test_tables_nest_or_name_parents(tmp_path):
    nested = {"children": {"product": {"computer": {"laptop": {}}}}, "synonyms": {"laptop": "notebook"}}
    (tmp_path / "t.json").write_text(json.dumps(nested), encoding="utf-8")
    (tmp_path / "t.toml").write_text(
        '[parents]\ncomputer = "product"\nlaptop = ["computer"]\n[synonyms]\nlaptop = ["notebook"]\n', encoding="utf-8"
    )
    assert Tree.load(tmp_path / "t.json") == Tree.load(tmp_path / "t.toml")


def test_tables_with_a_declared_root_find_orphans():
    with pytest.raises(OntologyError, match="`b` lies under `c`, which is defined nowhere"):
        Tree.read('{"parents": {"a": [], "b": "c"}}', format="table")


def test_tables_refuse_a_name_given_twice():
    with pytest.raises(OntologyError, match="`x` is given twice"):
        Tree.read('{"children": {"a": {"x": {}}, "b": {"x": {}}}}', format="table")


def test_tables_tell_all_their_mistakes():
    text = '{"parents": {"a": [], "b": 3}, "synonyms": {"z": ["y"], "a": "a2"}}'
    with pytest.raises(OntologyError) as error:
        Tree.read(text, format="table")
    assert "`parents` of `b`: a text or a list of texts, not 3" in str(error.value)
    assert "synonyms of `z`, which is no concept of this tree" in str(error.value)


@pytest.mark.parametrize("text", ["{", "a = ", '{"parent": {}}', '{"parents": 3}', '{"children": {"a": 3}}', "{}"])
def test_tables_that_are_none_are_refused(text):
    with pytest.raises(OntologyError):
        Tree.read(text, format="table")


# --- Open Food Facts ----------------------------------------------------------------------------

FOOD = """# comment

synonyms:en: flavoured, flavored

stopwords:fr: aux, au

en: Beverages, Drinks
fr: Boissons
wikidata:en: Q40050

< en: Beverages
en: Teas, Tea\\, brewed
fr: Thés

< en:tea
< fr: Boissons
en: Iced teas
"""


def test_food_blocks_give_tags_and_translations():
    tree = Tree.read(FOOD, format="openfoodfacts")
    assert links(tree) == {
        "en:beverages": (),
        "en:teas": ("en:beverages",),
        "en:iced-teas": ("en:teas", "en:beverages"),
    }
    assert tree.canonical("Boissons") == "en:beverages"
    assert tree.canonical("thés") == "en:teas"
    assert tree.canonical("fr:thes") == "en:teas"
    assert tree.canonical("Tea, brewed") == "en:teas"


def test_food_orphans_and_repetitions_are_refused_unless_lenient():
    text = FOOD + "\n< en: Sodas\nen: Colas\n\nen: Teas\n\n< en: Teas\n"
    with pytest.raises(OntologyError) as error:
        Tree.read(text, format="openfoodfacts")
    assert "line 19: `en:colas` lies under `en:sodas`, which is defined nowhere" in str(error.value)
    assert "line 22: `en:teas` stands on line 12 already" in str(error.value)
    assert "line 24: a block with parents but without a name" in str(error.value)
    assert "`lenient = true`" in str(error.value)
    tree = Tree.read(text, format="openfoodfacts", lenient=True)
    assert len(tree.dropped) == 3
    assert tree.parents("Colas") == ()


def test_circle_is_refused_even_leniently():
    with pytest.raises(OntologyError, match="circle"):
        Tree.read("< en: B\nen: A\n\n< en: A\nen: B\n", format="openfoodfacts", lenient=True)


# --- WordNet ------------------------------------------------------------------------------------

# A few meanings in the form of WordNet's files, written for this test.
DATA = """  1 The licence stands here, every line of it
  2 begins with two blanks.
00000100 03 n 01 entity 0 002 ~ 00000200 n 0000 ~ 00000300 n 0000 | what there is
00000200 05 n 02 animal 0 creature 0 003 @ 00000100 n 0000 ~ 00000400 n 0000 ~ 00000500 n 0000 | it lives
00000300 06 n 01 tool 0 001 @ 00000100 n 0000 | it helps
00000400 05 n 02 mouse 0 house_mouse 0 001 @ 00000200 n 0000 | it squeaks
00000500 05 n 01 pet 0 002 @ 00000200 n 0000 ;u 00000900 n 0000 | it is kept
00000600 06 n 02 mouse 1 computer_mouse 0 001 @ 00000300 n 0000 | it points
00000700 18 n 02 Mickey 0 Mickey_Mouse 0 002 @i 00000400 n 0000 @ 00000500 n 0000 | a particular one
"""
INDEX = """  1 The licence again.
animal n 1 2 @ ~ 1 1 00000200
computer_mouse n 1 1 @ 1 0 00000600
creature n 1 2 @ ~ 1 0 00000200
entity n 1 1 ~ 1 0 00000100
house_mouse n 1 1 @ 1 0 00000400
mickey n 1 1 @i 1 0 00000700
mickey_mouse n 1 1 @i 1 0 00000700
mouse n 2 1 @ 2 1 00000400 00000600
pet n 1 1 @ 1 0 00000500
tool n 1 1 @ 1 0 00000300
"""


@pytest.fixture
def wordnet(tmp_path):
    (tmp_path / "data.noun").write_text(DATA, encoding="utf-8")
    (tmp_path / "index.noun").write_text(INDEX, encoding="utf-8")
    return tmp_path / "data.noun"


def test_wordnet_numbers_the_meanings_of_a_word(wordnet):
    tree = Tree.load(wordnet)
    assert tree.canonical("computer mouse") == "mouse.n.02"
    assert tree.canonical("house_mouse") == "mouse.n.01"
    assert tree.is_a("mouse.n.02", "tool")
    with pytest.raises(AmbiguousConcept, match=r"`mouse\.n\.01`, `mouse\.n\.02`"):
        tree.canonical("mouse")


def test_wordnet_follows_kinds_and_instances(wordnet):
    tree = Tree.load(wordnet)
    assert tree.parents("Mickey Mouse") == ("mouse.n.01", "pet.n.01")
    assert tree.is_a("mickey", "creature")
    assert not tree.is_a("mickey", "tool")


def test_wordnet_reads_gzipped_files(wordnet, tmp_path):
    plain = Tree.load(wordnet)
    for name in ("data.noun", "index.noun"):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress((tmp_path / name).read_bytes()))
        (tmp_path / name).unlink()
    assert Tree.load(tmp_path / "data.noun.gz") == plain


def test_wordnet_needs_its_index(wordnet):
    wordnet.with_name("index.noun").unlink()
    with pytest.raises(FileError, match=r"`data\.noun` needs `index\.noun` beside it"):
        Tree.load(wordnet)
    with pytest.raises(OntologyError, match="two files"):
        Tree.read(DATA, format="wordnet")


def test_wordnet_lines_in_another_form_are_told(wordnet):
    wordnet.write_text(DATA + "00000800 nonsense\n", encoding="utf-8")
    with pytest.raises(OntologyError, match=r"data\.noun, line 10: the line is not in the form"):
        Tree.load(wordnet)


@pytest.mark.parametrize("line", ["00000800 03 n 00 000 | x", "00000800 03 n 01 a 0 002 @ 00000100 n 0000 | x", "x"])
def test_wordnet_counts_that_do_not_fit_are_told(wordnet, line):
    wordnet.write_text(f"{DATA}{line}\n", encoding="utf-8")
    with pytest.raises(OntologyError, match="line 10: the line is not in the form"):
        Tree.load(wordnet)


def test_wordnet_index_in_another_form_is_told(wordnet):
    wordnet.with_name("index.noun").write_text(INDEX + "mouse n\n", encoding="utf-8")
    with pytest.raises(OntologyError, match="line 12 of its index is not in the form"):
        Tree.load(wordnet)


def test_wordnet_pointer_to_nowhere_is_an_orphan(wordnet):
    wordnet.write_text(DATA.replace("@ 00000300 n", "@ 00000999 n"), encoding="utf-8")
    with pytest.raises(OntologyError, match=r"line 8: `mouse\.n\.02` lies under `00000999`"):
        Tree.load(wordnet)


# --- SKOS and RDF -------------------------------------------------------------------------------

SKOS = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix : <http://example.org/topics#> .
:1 a skos:Concept ; skos:prefLabel "sport"@en, "Sport"@de .
:2 a skos:Concept ; skos:prefLabel "ball games"@en, "Ballspiele"@de ; skos:altLabel "ball sports"@en ; skos:broader :1 .
:3 a skos:Concept ; skos:prefLabel "football"@en .
:2 skos:narrower :3 .
:4 a skos:Concept ; skos:prefLabel "rules"@en ; skos:broader :2 .
:5 a skos:Concept ; skos:prefLabel "rules"@en ; skos:broader :1, :3 .
"""


def test_skos_reads_labels_of_all_languages():
    pytest.importorskip("rdflib")
    tree = Tree.read(SKOS, format="skos")
    assert tree.parents("football") == ("ball games",)
    assert tree.canonical("Ballspiele") == "ball games"
    assert tree.canonical("http://example.org/topics#3") == "football"
    assert Tree.read(SKOS, format="skos", language="de").canonical("ball games") == "Ballspiele"


def test_skos_label_of_several_concepts_gets_the_identifier():
    pytest.importorskip("rdflib")
    tree = Tree.read(SKOS, format="skos")
    assert set(tree.children("sport")) == {"ball games", "rules (5)"}
    with pytest.raises(AmbiguousConcept):
        tree.require("rules")


def test_skos_orphans_are_told():
    pytest.importorskip("rdflib")
    with pytest.raises(OntologyError, match=r"`football` lies under `http://example\.org/topics#9`"):
        Tree.read(SKOS + ":3 skos:broader :9 .", format="skos")


def test_a_subject_of_skos_that_is_no_concept_is_a_mistake_or_left_out():
    pytest.importorskip("rdflib")
    loose = SKOS + ":9 skos:broader :3 ."
    with pytest.raises(
        OntologyError, match=r"`http://example\.org/topics#9`, which is defined nowhere, lies under `football`"
    ):
        Tree.read(loose, format="skos")
    assert len(Tree.read(loose, format="skos", lenient=True)) == len(Tree.read(SKOS, format="skos"))


def test_rdf_classes_are_a_tree_too(tmp_path):
    pytest.importorskip("rdflib")
    (tmp_path / "c.ttl").write_text(
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix : <http://example.org/> .\n"
        ":Computer a rdfs:Class . :Laptop a rdfs:Class ; rdfs:subClassOf :Computer ; rdfs:label 'laptop PC' .",
        encoding="utf-8",
    )
    assert Tree.load(tmp_path / "c.ttl").is_a("laptop PC", "Computer")


def test_rdf_that_is_none_is_refused():
    pytest.importorskip("rdflib")
    with pytest.raises(OntologyError, match="skos: "):
        Tree.read("<?xml version='1.0'?><not closed", format="skos")


def test_missing_rdflib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdflib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'tidings\[rdf\]'"):
        Tree.read(SKOS, format="skos")


# --- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.txt", "a\n  b\n"),
        ("t.csv", "parent,child\na,b\n"),
        ("t.json", '{"parents": {"b": "a"}}'),
        ("t.toml", "[children.a.b]\n"),
        ("t.csv.gz", "parent,child\na,b\n"),
        ("t.txt.gz", "a\n  b\n"),
    ],
)
def test_format_is_told_from_the_file(tmp_path, name, text):
    data = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert links(Tree.load(tmp_path / name)) == {"a": (), "b": ("a",)}


def test_format_of_plain_text_is_told_from_its_content(tmp_path):
    (tmp_path / "p.txt").write_text("A\nA > B\n", encoding="utf-8")
    (tmp_path / "f.txt").write_text(FOOD, encoding="utf-8-sig")
    assert Tree.load(tmp_path / "p.txt").parents("B") == ("A",)
    assert Tree.load(tmp_path / "f.txt").parents("Teas") == ("en:beverages",)


def test_unknown_format_is_suggested():
    with pytest.raises(OntologyError, match="unknown format `outlne`; did you mean `outline`"):
        Tree.read("a", format="outlne")


def test_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(FileError, match=r"nowhere\.txt`: No such file"):
        Tree.load(tmp_path / "nowhere.txt")
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfe\x00a")
    with pytest.raises(FileError, match="not UTF-8 text"):
        Tree.load(tmp_path / "bad.txt")
    (tmp_path / "bad.txt.gz").write_bytes(b"no gzip")
    with pytest.raises(FileError, match=r"bad\.txt\.gz"):
        Tree.load(tmp_path / "bad.txt.gz")


def test_many_mistakes_are_counted():
    text = "1\tA\n" + "".join(f"{n}\tB{n} > C\n" for n in range(2, 100))
    with pytest.raises(OntologyError, match="and 79 more") as error:
        Tree.read(text, format="paths")
    assert len(error.value.mistakes) == 99
