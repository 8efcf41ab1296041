"""`tools/changed-tests`: which tests `make quick` runs for a change."""

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SOURCE = Path("src/tidings")


def load_tool():
    loader = SourceFileLoader("changed_tests", str(ROOT / "tools" / "changed-tests"))
    tool = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(tool)
    return tool


TOOL = load_tool()


def choose_names(path):
    return {test.name for test in TOOL.choose_tests({Path(path)})}


@pytest.mark.parametrize(
    ("changed", "law"),
    [
        ("patterns/run/run.py", "test_pattern_isolation.py"),
        ("forecast/detector.py", "test_pattern_isolation.py"),
        ("kernels/patterns/runs.py", "test_pattern_isolation.py"),
        ("kernels/match/tiles.py", "test_engine_steps.py"),
        ("papers/hem/hem.py", "test_isolation.py"),
        ("matcher/matcher.py", "test_damage.py"),
        ("lang/filters/parse_text.py", "test_patterns_notation.py"),
        ("forks.py", "test_forks.py"),
    ],
)
def test_a_change_runs_the_laws_that_reach_it_through_public_names(changed, law):
    assert law in choose_names(SOURCE / changed)


def test_a_change_leaves_out_the_laws_of_other_packages():
    assert "test_pattern_isolation.py" not in choose_names(SOURCE / "errors.py")
    assert "test_engine_steps.py" not in choose_names(SOURCE / "patterns" / "run" / "run.py")


def test_every_file_of_a_package_has_unit_tests_of_that_package():
    files = [path.relative_to(ROOT) for path in (ROOT / SOURCE).rglob("*") if path.suffix in {".py", *TOOL.DATA}]
    in_packages = [path for path in files if len(path.parts) > 3]
    strangers = {
        path.parts[2] for path in in_packages if Path("tests/unit") in {t.parent for t in TOOL.find_unit_tests(path)}
    }
    assert len(in_packages) > 400
    assert strangers == {"cli"}  # tested from outside, in tests/cli


@pytest.mark.parametrize(
    ("changed", "folder"),
    [
        ("lang/filters/grammar.lark", "tests/unit/lang/filters"),
        ("lang/diagnostics.py", "tests/unit/lang"),
        ("testing/checks/base.py", "tests/unit/testing"),
        ("patterns/run/a_module_that_was_deleted.py", "tests/unit/patterns/run"),
    ],
)
def test_a_file_without_tests_of_its_own_takes_those_of_the_nearest_folder(changed, folder):
    chosen = TOOL.find_unit_tests(SOURCE / changed)
    assert chosen
    assert all(path.is_relative_to(folder) for path in chosen)


def test_only_unit_tests_and_laws_are_chosen_and_only_those_that_exist():
    names = ["cli/test_doctor.py", "docs/test_paths.py", "house/test_names.py", "unit/model/test_gone.py", "tests/x.md"]
    chosen = TOOL.choose_tests({Path("tests", name) for name in [*names, "laws/test_feeds.py", "unit/test_layers.py"]})
    assert chosen == {Path("tests/laws/test_feeds.py"), Path("tests/unit/test_layers.py")}
