"""docs/guide/engine.md: its examples run, and the plan it shows is one that `explain` prints."""

import doctest
import re
from pathlib import Path

import pytest

import tidings as td
from tidings.matcher.plan import HEAD

pytestmark = pytest.mark.filterwarnings("error")
PATH = Path(__file__).parents[2] / "docs" / "guide" / "engine.md"
PAGE = PATH.read_text(encoding="utf-8")
SHOWN = re.search(r"```text\n(.*?)```", PAGE, re.DOTALL).group(1).splitlines()


def test_the_examples_run():
    failed, tried = doctest.testfile(str(PATH), module_relative=False, encoding="utf-8")
    assert tried >= 8
    assert failed == 0


def test_the_plan_has_the_form_that_explain_prints():
    searches = td.Matcher()
    searches.add_many((n, f"make = 'm{n}' and price < {n}") for n in range(3000))
    searches.add_many((3000 + n, f"make != 'm{n}'") for n in range(80))
    searches.compact()
    printed = str(searches.explain()).splitlines()
    assert remove_numbers(printed[0]) == remove_numbers(SHOWN[0]).replace(
        "sampled events", "the values that filters name"
    )
    assert remove_numbers(printed[1]) == remove_numbers(SHOWN[1])
    assert next(line for line in SHOWN if "found by" in line).split() == " ".join(HEAD).split()


def remove_numbers(line):
    return re.sub(r"[\d,.]+ (ns|µs|ms)|[\d,.]+", "N", line)
