"""What programs import from `tidings.testing` and `tidings.concepts` is there, whatever folder the code lies in."""

from importlib import import_module

import pytest

from tidings.concepts import Tree
from tidings.matcher.registry import PAPERS

PUBLISHED = {
    "tidings.testing": "checks strategies workloads",
    "tidings.testing.bench": "BATCH_SIZE Change Figure Result Role Settings Verdict bench circumstances compared"
    " headline machine notes plain plot read sizes table write",
    "tidings.testing.checks": "CHECKS Check Factory check_matcher",
    "tidings.testing.composites": "IRRELEVANT SECOND Shape Stream composites name_of publications uniform_stream",
    "tidings.testing.patterns": "SECOND Word patterns streams words",
    "tidings.testing.strategies": "Case Lore NOW Slot World areas attributes bad_values cases conditions events filters"
    " mixed_cases mixed_events mixed_filters mixed_world ontologies points regions scalars schemas tests worlds",
    "tidings.testing.workloads": "Baseline CAR_SCHEMA NOW WORKLOADS Workload car_ads data_folder rows_of"
    " saved_searches workload zipf",
}
"""The names that version 0.1.0 had before its folders were laid out anew, by module."""

TREE = """
    below candidates canonical children code dropped has_spelling is_a load names parents ranges read require root roots
    shared_spellings spellings synonyms to_dict with_synonyms
"""


@pytest.mark.parametrize("module", PUBLISHED)
def test_a_published_module_has_its_names(module):
    loaded = import_module(module)
    assert [name for name in PUBLISHED[module].split() if getattr(loaded, name, None) is None] == []


def test_a_published_tree_has_its_names():
    assert [name for name in TREE.split() if not hasattr(Tree, name)] == []


def test_a_published_name_is_that_of_the_harness():
    from tidings.bench import harness
    from tidings.testing import bench

    assert (bench.Change, bench.compared) == (harness.FigureChange, harness.compare_results)
    assert (bench.read, bench.write, bench.table) == (harness.read_results, harness.write_results, harness.build_table)


@pytest.mark.parametrize("paper", PAPERS)
def test_the_registry_repeats_the_matchers_of_a_paper(paper):
    assert tuple(import_module(f"tidings.papers.{paper}").MATCHERS) == PAPERS[paper]
