"""`tidings concept`."""

import pytest


@pytest.fixture
def products(tmp_path):
    path = tmp_path / "products.txt"
    path.write_text("product\n  computer\n    laptop = notebook\n  car\n", encoding="utf-8")
    return path


def test_a_concept_is_shown_by_any_of_its_names(tidings, products):
    done = tidings("concept", "show", "notebook", "--ontology", products)
    assert done.code == 0
    assert "path: product > computer > laptop" in done.out


def test_each_meaning_is_a_line_of_json(tidings, products):
    (line,) = tidings("concept", "show", "computer", "--ontology", products, "--json").lines
    assert (line["name"], line["children"], line["size"]) == ("computer", ["laptop"], 2)


def test_the_file_may_come_from_the_environment(tidings, products, monkeypatch):
    monkeypatch.setenv("TIDINGS_ONTOLOGY", str(products))
    assert tidings("concept", "show", "car").code == 0


def test_an_unknown_name_is_refused_with_a_suggestion(tidings, products):
    done = tidings("concept", "show", "laptp", "--ontology", products)
    assert (done.code, done.out) == (1, "")
    assert "did you mean `laptop`?" in done.err


def test_a_sound_file_is_counted(tidings, products):
    done = tidings("concept", "check", products)
    assert done.code == 0
    assert "4 concepts" in done.out
    (line,) = tidings("concept", "check", products, "--json").lines
    assert (line["ok"], line["trees"]["products"]["concepts"]) == (True, 4)


def test_a_cycle_is_refused(tidings, tmp_path):
    (tmp_path / "cycle.csv").write_text("parent,child\na,b\nb,c\nc,a\n", encoding="utf-8")
    done = tidings("concept", "check", "cycle.csv")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")
    (line,) = tidings("concept", "check", "cycle.csv", "--json").lines
    assert line["ok"] is False
    assert line["mistakes"]


def test_a_missing_file_is_refused(tidings):
    assert tidings("concept", "check", "nowhere.toml").code == 1
    assert tidings("concept", "show", "x", "--ontology", "nowhere.toml").code == 1
