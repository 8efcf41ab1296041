"""The names of the source are held to the rules of CONTRIBUTING.md; and the checker itself can fail."""

import ast
from pathlib import Path

import pytest
from tests.house import naming

PUBLIC = {
    "bench/workloads/ads.py": ("saved_searches",),
    "concepts/ontology.py": ("derived",),
    "concepts/taxonomies/tree.py": ("shared_spellings",),
    "forecast/detector.py": ("dropped",),
    "model/schema.py": ("merged", "opened"),
    "patterns/definition_events.py": ("seen",),
    "spark/match/match.py": ("refused",),
    "testing/strategies/mixed.py": ("mixed_world", "mixed_filters", "mixed_events", "mixed_cases"),
}
"""Names of the public face that users' code relies on, by the file that defines them."""


def is_public(line):
    return any(f"{file}:" in line and f"`{name}`" in line for file, names in PUBLIC.items() for name in names)


def test_functions_are_verbs_variables_are_nouns_and_a_class_exists_once():
    assert [line for line in naming.list_broken_rules([naming.SOURCE]) if not is_public(line)] == []


def test_tests_and_benchmarks_keep_the_rules_as_well():
    folders = [path for path in (naming.ROOT / "tests").iterdir() if path.is_dir() and path.name != "spark"]
    assert naming.list_broken_rules([*folders, naming.ROOT / "benchmarks"]) == []


@pytest.mark.parametrize("name", ["told", "_joined", "merged_rows", "taken", "held"])
def test_a_participle_is_no_name_of_a_function(name):
    tree = ast.parse(f"def {name}(): pass")
    assert list(naming.list_participles(Path("x.py"), tree))


@pytest.mark.parametrize("name", ["parse_filter", "read_csv", "feed", "is_closed", "split_rows", "embed"])
def test_a_verb_is(name):
    tree = ast.parse(f"def {name}(): pass")
    assert not list(naming.list_participles(Path("x.py"), tree))


@pytest.mark.parametrize("code", ["told = 1", "for one in rows: pass", "def f(found): pass", "self._held = 1"])
def test_variables_that_name_nothing_are_listed(code):
    assert list(naming.list_variables(Path("x.py"), ast.parse(code)))


def test_a_class_that_exists_twice_is_listed():
    trees = {Path("a.py"): ast.parse("class Table: pass"), Path("b.py"): ast.parse("class Table: pass")}
    assert list(naming.list_repeated_classes(trees)) == ["class `Table` is defined in a.py, b.py"]
