"""`tidings bench run papers/KEY`: a study that takes no time, in a checkout made for it."""

import json
import sys
from pathlib import Path
from textwrap import dedent

import pytest

STUDIES = Path(__file__).parents[3] / "benchmarks" / "studies"

RUN = '''
"""A study of nothing."""

from benchmarks.papers.tiny.sizes import SIZES
from benchmarks.studies import Chart, Line, Scale, Study
from tidings.bench.harness.timing import Figure

TITLE = "Nothing, twice as fast"


def study(scale, *, seed, say):
    say("measuring nothing")
    points = tuple((float(n), Figure("us", (n / 10, n / 9, n / 8))) for n in SIZES[scale])
    slow = tuple((x, Figure("us", tuple(2 * value for value in figure.repeats))) for x, figure in points)
    lines = (Line("ours", points), Line("theirs", slow))
    chart = Chart("figure-1", "Nothing over size", "things", "us an event", lines, log_x=True, log_y=True, note="made")
    facts = {"ratio": 2.0, "slope": 7.0, "seed": float(seed), "empty": float("nan")}
    facts |= {"at_full_size": 1.0} if scale is Scale.FULL else {}
    return Study(TITLE, (chart,), facts, notes=("nothing was left out",))
'''

SIZES = """
from benchmarks.studies import Scale

SIZES = {Scale.QUICK: (10, 100), Scale.USUAL: (10, 100, 1000), Scale.FULL: (10, 100, 1000, 10000)}
"""

CLAIMS = """
paper = "A. Nobody, Nothing, 1999"

[[claim]]
key = "twice"
place = "3.1, Figure 1"
says = "nothing is twice as fast"
fact = "ratio"
printed = 1.9
at_least = 1.5
at_most = 2.5

[[claim]]
key = "flat"
place = "3.2"
says = "it is flat"
fact = "slope"
printed = 0
at_most = 1
reason = "the machine leans"

[[claim]]
key = "large"
place = "3.3"
says = "it holds at the full size"
fact = "at_full_size"
at_least = 1

[[claim]]
key = "void"
place = "3.4"
says = "nothing can be divided by nothing"
fact = "empty"
at_least = 1
"""


@pytest.fixture
def checkout(tidings, tmp_path, monkeypatch):
    """A checkout with one study; other packages of its name, and the path, come back afterwards."""
    for name in [name for name in sys.modules if name.split(".")[0] == "benchmarks"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", list(sys.path))
    folder = tmp_path / "benchmarks" / "papers" / "tiny"
    folder.mkdir(parents=True)
    for package in (folder, folder.parent, folder.parent.parent):
        (package / "__init__.py").write_text('"""A package."""\n')
    (tmp_path / "benchmarks" / "studies").symlink_to(STUDIES)
    (folder / "run.py").write_text(RUN)
    (folder / "sizes.py").write_text(SIZES)
    (folder / "claims.toml").write_text(CLAIMS)
    yield folder
    for name in [name for name in sys.modules if name.split(".")[0] == "benchmarks"]:
        del sys.modules[name]


def test_a_study_prints_its_figures_and_its_claims(tidings, checkout):
    done = tidings("bench", "run", "papers/tiny", "--quick")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[:2] == ["Nothing, twice as fast (quick)", "A. Nobody, Nothing, 1999"]
    assert "figure-1: Nothing over size; us an event" in lines
    assert any(line.split() == ["things", "ours", "theirs"] for line in lines)
    assert any(line.startswith("3.1, Figure 1  nothing is twice as fast") and line.endswith("kept") for line in lines)
    assert any(line.split()[-3:] == ["most", "1", "missed"] for line in lines)
    assert sum(line.endswith("not measured at this scale") for line in lines) == 3  # two rows, and the tally
    assert "  missed, 3.2 (`flat`): the machine leans" in lines
    assert "4 claims: 1 kept, 1 missed, 2 not measured at this scale" in lines
    assert "nothing was left out" in done.out
    assert "Python" in lines[-1]


def test_a_study_writes_its_results_with_their_circumstances(tidings, checkout, tmp_path):
    tidings("bench", "run", "papers/tiny", "--quick", "--seed", 5)
    record = json.loads((tmp_path / "out" / "papers" / "tiny" / "study.json").read_text())
    assert record["study"] == "papers/tiny"
    assert record["facts"] == {"ratio": 2.0, "slope": 7.0, "seed": 5.0, "empty": None}
    outcomes = {claim["key"]: claim["outcome"] for claim in record["claims"]}
    assert outcomes == {"twice": "kept", "flat": "missed", "large": "unmeasured", "void": "unmeasured"}
    assert [claim["reason"] for claim in record["claims"]] == ["", "the machine leans", "", ""]
    assert record["charts"][0]["lines"][0]["points"][0]["repeats"] == [1.0, 10 / 9, 1.25]
    assert {"machine", "date", "command", "version", "python", "packages", "seed", "scale"} <= record["run"].keys()


def test_a_study_draws_a_picture_for_each_chart(tidings, checkout, tmp_path):
    pytest.importorskip("matplotlib")
    done = tidings("bench", "run", "papers/tiny", "--out", "elsewhere")
    assert [path.name for path in sorted((tmp_path / "elsewhere").iterdir())] == ["figure-1.png", "study.json"]
    assert "note: wrote `elsewhere/study.json`, `elsewhere/figure-1.png`" in done.err
    assert (tmp_path / "elsewhere" / "figure-1.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_tables_are_printed_and_a_warning_says_how_to_get_plots(tidings, checkout, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    done = tidings("bench", "run", "papers/tiny", "--quick")
    assert done.code == 0
    assert "4 claims" in done.out
    assert "warning: plots need matplotlib; install it with `pip install 'tidings[bench]'`" in done.err


def test_json_is_all_there_is_on_standard_output(tidings, checkout):
    (line,) = tidings("bench", "run", "papers/tiny", "--full", "--json").lines
    assert (line["scale"], line["facts"]["at_full_size"]) == ("full", 1.0)
    assert {claim["key"] for claim in line["claims"]} == {"twice", "flat", "large", "void"}


def test_a_fact_that_even_the_full_study_lacks_is_told(tidings, checkout):
    done = tidings("bench", "run", "papers/tiny", "--full")
    assert "even the full study has no fact `empty` (claim `void`)" in done.err


def test_a_study_runs_from_a_folder_within_the_checkout(tidings, checkout, tmp_path, monkeypatch):
    monkeypatch.chdir(checkout)
    assert tidings("bench", "run", "papers/tiny", "--quick").code == 0
    assert (tmp_path / "out" / "papers" / "tiny" / "study.json").exists()


def test_studies_are_listed_in_a_checkout(tidings, checkout):
    done = tidings("bench", "list")
    assert done.out.splitlines()[-1].split(maxsplit=1) == ["papers/tiny", "Nothing, twice as fast"]
    assert tidings("bench", "list", "--json").lines[-1]["key"] == "papers/tiny"
    assert "benchmarks.papers.tiny.run" not in sys.modules  # listing runs nothing


def test_a_study_outside_a_checkout_is_refused_and_told_where_studies_are(tidings):
    done = tidings("bench", "run", "papers/hem", "--quick")
    assert (done.code, done.out) == (1, "")
    assert "`papers/hem` is a study of a paper" in done.err
    assert "Clone the repository, and run this inside it" in done.err


def test_studies_of_another_project_are_no_checkout(tidings, tmp_path):
    (tmp_path / "benchmarks" / "studies").mkdir(parents=True)
    assert "papers/" not in tidings("bench", "list").out
    assert "`papers/hem` is a study of a paper" in tidings("bench", "run", "papers/hem", "--quick").err


def test_an_unknown_study_is_refused_with_the_nearest(tidings, checkout):
    done = tidings("bench", "run", "papers/tny")
    assert (done.code, done.out) == (1, "")
    assert done.err == "error: unknown study `papers/tny`; did you mean `papers/tiny`?; there are `papers/tiny`\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--quick", "--full"), "--quick and --full exclude each other"),
        (("-n", 10, "--matcher", "brute"), "-n, --matcher cannot be said of a study"),
        (("--events", 10), "--events cannot be said of a study"),
        (("--no-peers",), "--peers cannot be said of a study"),
    ],
)
def test_options_that_do_not_apply_to_a_study_are_wrong_usage(tidings, checkout, options, message):
    done = tidings("bench", "run", "papers/tiny", *options)
    assert (done.code, done.out) == (2, "")
    assert message in " ".join(done.err.replace("│", " ").split())


def test_full_is_not_for_workloads(tidings):
    done = tidings("bench", "run", "ranges", "--full")
    assert done.code == 2
    assert "--full is for studies of papers" in " ".join(done.err.replace("│", " ").split())


def test_a_run_that_is_no_study_is_refused(tidings, checkout):
    (checkout / "run.py").write_text("TITLE = 'nothing'\n")
    done = tidings("bench", "run", "papers/tiny")
    assert done.code == 1
    assert "is no study; it must have `TITLE` and `study(scale, *, seed, say)`" in done.err


# Claims that are wrong ---------------------------------------------------------------------------


def claim(**fields):
    good = {"key": "a", "place": "1", "says": "so", "fact": "ratio", "at_least": 1}
    lines = [f"{name} = {json.dumps(value)}" for name, value in (good | fields).items() if value is not None]
    return "[[claim]]\n" + "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("paper = ", ["are not TOML"]),
        ("claim = 3\npaper = 'x'", ["`claim` must be a list of tables; write each as [[claim]]"]),
        (claim(), ["`paper` is missing"]),
        ("paper = 'x'\nyear = 3\n" + claim(), ["`year` is not known here"]),
        ("paper = 'x'\n" + claim(at_lest=2), ["claim `a`: `at_lest` is not known here; did you mean `at_least`?"]),
        ("paper = 'x'\n" + claim(key=None), ["claim number 1: `key` is missing"]),
        ("paper = 'x'\n" + claim(fact=3), ["claim `a`: `fact` must be text, not 3"]),
        ("paper = 'x'\n" + claim(printed="16 %"), ["claim `a`: `printed` must be a number, not '16 %'"]),
        ("paper = 'x'\n" + claim(at_least=None), ["claim `a`: needs `at_least` or `at_most`, or both"]),
        ("paper = 'x'\n" + claim(at_most=0), ["claim `a`: `at_least` 1 is more than `at_most` 0"]),
        ("paper = 'x'\n" + claim() + claim(), ["claim `a`: its key is there 2 times"]),
        (claim(says=None) + claim(key="b", at_most=True), ["have 3 mistakes", "`says` is missing", "claim `b`"]),
    ],
)
def test_mistakes_in_claims_are_told_before_anything_is_measured(tidings, checkout, text, messages):
    (checkout / "claims.toml").write_text(dedent(text))
    done = tidings("bench", "run", "papers/tiny")
    assert (done.code, done.out) == (1, "")
    for message in messages:
        assert message in done.err


def test_claims_that_are_not_there_are_refused(tidings, checkout):
    (checkout / "claims.toml").unlink()
    done = tidings("bench", "run", "papers/tiny")
    assert done.code == 1
    assert "cannot read the claims" in done.err
