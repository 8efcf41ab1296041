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
    "spark/match/match.py": ("refused",),
    "testing/strategies/mixed.py": ("mixed_world", "mixed_filters", "mixed_events", "mixed_cases"),
}
"""Names of the public face that users' code relies on, by the file that defines them."""


NOUNS = {
    "algebra/normal_form.py": ("normal_form",),
    "cli/app.py": ("main",),
    "concepts/ontology.py": (
        *("attribute", "base_unit", "canonical", "code", "domain", "input_kind", "kind", "ranges", "root", "sources"),
        *("tree_of", "unit"),
    ),
    "concepts/spelling.py": ("did_you_mean",),
    "concepts/taxonomies/tree.py": (
        *("below", "candidates", "canonical", "children", "code", "parents", "ranges", "root", "shared_spellings"),
        *("spellings", "synonyms"),
    ),
    "concepts/units.py": ("base", "canonical"),
    "forecast/detector.py": ("horizons", "mismatches", "next_deadline"),
    "forecast/model.py": ("estimates", "using"),
    "forecast/prequential.py": ("prequential", "warnings"),
    "kernels/match/vector_words.py": ("xor",),
    "matcher/live/feeds.py": ("changes",),
    "matcher/matcher.py": ("dead_letters", "mismatches", "why", "why_not"),
    "matcher/registry.py": ("matchers",),
    "model/conditions.py": ("one_of",),
    "model/filters.py": ("all_of", "any_of"),
    "model/matches.py": ("by_event", "id_array"),
    "model/patterns.py": ("guards", "key_variables", "steps", "variable_attributes"),
    "model/schema.py": ("merged", "opened"),
    "patterns/detections.py": ("by_pattern",),
    "service/api/connections.py": ("connection_lost", "connection_made", "data_received"),
    "service/demo/__main__.py": ("demo",),
    "service/store_feed.py": ("changes",),
    "spark/detect/bucket_processor.py": ("handleExpiredTimer", "handleInputRows"),
    "spark/detect/detect.py": ("bad_events",),
    "spark/match/match.py": ("dead_letters", "refused"),
    "spark/pipeline/run/spark_feeds.py": ("changes",),
    "spark/pipeline/run/subscription_follower.py": ("changes",),
    "spark/pipeline/sources/csv_stream.py": ("readable",),
    "spark/pipeline/sources/event_folder.py": (
        *("initialOffset", "latestOffset", "partitions", "prepareForTriggerAvailableNow", "streamReader"),
    ),
    "spark/schema.py": ("schema_of",),
    "spark/session.py": ("session",),
}
"""Functions that begin with no verb: users call them so, or Spark, Arrow and the protocol of feeds do."""


REPEATED = {
    "Name": "a node of derived expressions, and an alias that two modules of `algebra.covering` share",
    "NotPlain": "`_NotPlain` never leaves `lang.filters.fast_text`",
}
"""Names of classes and aliases that exist twice all the same, each with the reason."""


def is_repeated(line):
    return any(line.startswith(f"class `{name}` ") for name in REPEATED)


def is_listed(line, names):
    return any(f"{file}:" in line and f"`{name}`" in line for file, listed in names.items() for name in listed)


@pytest.mark.parametrize(("listed", "find"), [(PUBLIC, naming.list_participles), (NOUNS, naming.list_verbless)])
def test_every_listed_name_is_there(listed, find):
    trees = naming.parse_sources([naming.SOURCE])
    lines = [line for path, tree in trees.items() for line in find(path, tree)]
    missing = {(file, name) for file, names in listed.items() for name in names}
    missing -= {pair for pair in missing for line in lines if f"{pair[0]}:" in line and f"`{pair[1]}`" in line}
    assert missing == set()


def test_functions_are_verbs_variables_are_nouns_and_a_class_exists_once():
    lines = [line for line in naming.list_broken_rules([naming.SOURCE]) if not is_listed(line, PUBLIC)]
    assert [line for line in lines if not is_repeated(line)] == []
    assert len(lines) == len(REPEATED), "a name that exists once now has no place in REPEATED"


def test_functions_begin_with_a_verb():
    trees = naming.parse_sources([naming.SOURCE])
    lines = [line for path, tree in trees.items() for line in naming.list_verbless(path, tree)]
    assert [line for line in lines if not is_listed(line, NOUNS)] == []


@pytest.mark.parametrize(("name", "count"), [("price_index", 1), ("_way", 1), ("find_price", 0), ("is_open", 0)])
def test_a_function_without_a_verb_is_listed(name, count):
    assert len(list(naming.list_verbless(Path("x.py"), ast.parse(f"def {name}(): pass")))) == count


def test_all_other_code_keeps_the_rules_as_well():
    folders = [path for path in (naming.ROOT / "tests").iterdir() if path.is_dir()]
    folders += [naming.ROOT / name for name in ("benchmarks", "examples", "tools")]
    assert naming.list_broken_rules(folders) == []


def test_a_program_without_an_ending_is_read():
    assert Path("tools/changed-tests") in naming.parse_sources([naming.ROOT / "tools"])


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


@pytest.mark.parametrize(
    "code",
    [
        "class Table: pass",
        "class _Table: pass",
        "Table: TypeAlias = 'dict[str, int]'",
        "Table = dict[str, int]",
        "if TYPE_CHECKING:\n    Table = tuple[IntArray, CodeArray]",
        "Table = StrEnum('Table', ['a'])",
    ],
)
def test_a_class_or_alias_that_exists_twice_is_listed(code):
    trees = {Path("a.py"): ast.parse("class Table: pass"), Path("b.py"): ast.parse(code)}
    assert list(naming.list_repeated_classes(trees)) == ["class `Table` is defined in a.py, b.py"]


@pytest.mark.parametrize("code", ["TABLE = 1", "table = Table", "Table = TypeVar('Table')", "Table = build_table()"])
def test_constants_and_type_variables_repeat_no_class(code):
    trees = {Path("a.py"): ast.parse("class Table: pass"), Path("b.py"): ast.parse(code)}
    assert not list(naming.list_repeated_classes(trees))


@pytest.mark.parametrize(("name", "count"), [("rows", 0), ("_rows", 1)])
def test_only_public_strategies_and_workloads_are_nouns(name, count):
    for folder in naming.NAMED_AS_NOUNS:
        assert len(list(naming.list_verbless(folder / "x.py", ast.parse(f"def {name}(): pass")))) == count
    assert len(list(naming.list_verbless(Path("x.py"), ast.parse(f"@st.composite\ndef {name}(draw): pass")))) == count
