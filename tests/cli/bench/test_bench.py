"""`tidings bench`: what it prints, what it writes, what it refuses."""

import json

import pytest

from tidings.bench.harness.baselines import Scan
from tidings.bench.workloads import WORKLOADS


@pytest.fixture
def quick_run(tidings, tmp_path):
    """A quick run, written to a folder."""
    done = tidings("bench", "run", "equalities", "--quick", "-n", 200, "--no-peers", "--matcher", "brute", "--out", "r")
    assert done.code == 0, done.err
    (file,) = (tmp_path / "r").glob("*.jsonl")
    return done, file


def test_the_workloads_are_listed_with_their_matches(tidings):
    done = tidings("bench", "list")
    assert done.code == 0
    assert [line.split()[0] for line in done.out.splitlines()[1:]] == list(WORKLOADS)
    lines = {line["key"]: line for line in tidings("bench", "list", "--json").lines}
    assert lines["equalities"]["expected_at_1m"] == pytest.approx(8)
    assert all(line["description"] for line in lines.values())


def test_a_quick_run_prints_a_table(quick_run):
    done, _ = quick_run
    assert done.out.startswith("equalities, 200 subscriptions")
    assert "scan (baseline)" in done.out
    assert "times brute" in done.out
    assert "quick: figures mean little" in done.out.splitlines()
    assert "Python" in done.out.splitlines()[-1]
    assert "note: wrote" in done.err


def test_a_quick_run_writes_results_and_a_picture(quick_run):
    _, file = quick_run
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["subject"] for line in lines] == ["brute", "scan"]
    assert {"machine", "date", "command", "version"} <= lines[0]["run"].keys()
    pytest.importorskip("matplotlib")
    assert [path.suffix for path in sorted(file.parent.iterdir())] == [".png", ".jsonl"]


def test_json_is_all_there_is_on_standard_output(tidings):
    done = tidings("bench", "run", "equalities", "--quick", "-n", 100, "--no-peers", "--matcher", "brute", "--json")
    assert [line["role"] for line in done.lines] == ["matcher", "baseline"]
    assert done.err == ""


def test_the_usual_matcher_is_measured_with_peers(tidings):
    done = tidings("bench", "run", "hem:m=2", "--quick", "-n", 100, "--from-text", "--json")
    assert done.code == 0, done.err
    assert done.lines[0]["role"] == "matcher"
    assert "build_text" in done.lines[0]["figures"]
    assert "numpy" in [line["subject"] for line in done.lines]


def test_a_run_compared_with_itself_is_noise(tidings, quick_run):
    _, file = quick_run
    done = tidings("bench", "compare", file, file)
    assert done.code == 0
    assert "noise" in done.out
    assert "faster" not in done.out
    assert {line["verdict"] for line in tidings("bench", "compare", file, file, "--json").lines} == {"noise", "same"}


def test_a_slower_run_is_called_slower(tidings, quick_run, tmp_path):
    _, file = quick_run
    lines = [json.loads(line) for line in file.read_text().splitlines()]

    def write(name, seconds):  # what a busy machine measured does not matter
        for figure in (figure for line in lines for figure in line["figures"].values()):
            figure["repeats"] = [seconds * (1 + at / 1000) for at in range(len(figure["repeats"]))]
        (tmp_path / name).write_text("\n".join(map(json.dumps, lines)))

    def compare(before, after):
        return {line["figure"]: line["verdict"] for line in tidings("bench", "compare", before, after, "--json").lines}

    write("quick.jsonl", 1e-3)
    write("slow.jsonl", 1e-2)
    assert compare("quick.jsonl", "slow.jsonl")["batch"] == "slower"
    assert compare("slow.jsonl", "quick.jsonl")["batch"] == "faster"


def test_a_wrong_answer_is_refused(tidings, monkeypatch):
    honest = Scan.find_rows
    monkeypatch.setattr(Scan, "find_rows", lambda self, cells: honest(self, cells)[1:])
    done = tidings("bench", "run", "hem:m=2", "--quick", "-n", 100, "--no-peers", "--matcher", "brute")
    assert (done.code, done.out) == (1, "")
    assert "disagree" in done.err


def test_a_build_that_was_made_once_says_so(tidings):
    done = tidings("bench", "run", "hem:m=2", "--quick", "-n", 100, "--from-text", "--no-peers")
    (line,) = [line for line in done.out.splitlines() if line.startswith("build, text")]
    assert "(1 run)" in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "rangs", "--quick"), "did you mean `ranges`?"),
        (("run", "ranges", "--quick", "--matcher", "swift", "--no-peers"), "unknown matcher `swift`"),
        (("run", "ranges", "-n", "0"), "-n must be at least 1, not `0`"),
        (("run", "hem:m=0", "--quick"), "`m=0` of `hem:m=0` is out of range"),
        (("run", "hem:delta=2", "--quick"), "`delta=2` of `hem:delta=2` is out of range"),
        (("run", "equalities:wanted=30", "--quick"), "`wanted=30` of `attributes=20`"),
        (("run", "ranges", "--quick", "--out", "/dev/null/results"), "cannot make the folder `/dev/null/results`"),
        (("run", "used-cars", "--quick", "--data", "nowhere"), "needs real data"),
        (("compare", "a.jsonl", "b.jsonl"), "cannot read `a.jsonl`"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(tidings, monkeypatch, arguments, message):
    from tidings.bench.workloads import real_data

    real_data.load_cars.cache_clear()
    real_data.load_counties.cache_clear()
    monkeypatch.setenv("TIDINGS_DATA", "")  # restored afterwards, whatever --data sets
    done = tidings("bench", *arguments)
    assert (done.code, done.out) == (1, "")
    assert message in done.err


def test_runs_of_different_workloads_have_nothing_to_compare(tidings, quick_run):
    _, file = quick_run
    other = file.with_name("other.jsonl")
    other.write_text(file.read_text().replace('"equalities"', '"ranges"'))
    done = tidings("bench", "compare", file, other)
    assert done.code == 1
    assert "no figure in common" in done.err
