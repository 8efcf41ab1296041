"""`tidings pattern score`."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.samples import write_lines

import tidings as td
from tidings.forecast.prequential import BASE, prequential
from tidings.lang import read_patterns

EXAMPLES = Path(__file__).parents[3] / "examples"
PUMPS, REPORTS = EXAMPLES / "pumps.patterns", EXAMPLES / "pumps.jsonl"
AB = "pattern ab\n  a = kind = 'a'\n  b = kind = 'b'\n  a , b\n"
SLOW = AB.replace("pattern ab", "pattern slow").replace("a , b", "a ; b within 3 s")
HEAD = ["brier", "skill", "log", "loss", "auc", "precision", "recall", "f1", "mcc", "lead", "false"]


@pytest.fixture
def ab(tmp_path):
    """A source with a rhythm: an `a` after two others is followed by `b`."""
    rng = np.random.default_rng(3)
    word = "".join("cca" + "b" if rng.random() < 0.6 else "ca" for _ in range(120))
    write_lines(tmp_path / "e.jsonl", [{"kind": kind, "time": n} for n, kind in enumerate(word)])
    (tmp_path / "ab.patterns").write_text(AB, encoding="utf-8")
    (tmp_path / "two.patterns").write_text(AB + SLOW, encoding="utf-8")
    return "ab.patterns"


def test_ours_stands_beside_the_base_rate_and_the_printed_formulas(tidings, ab):
    done = tidings("pattern", "score", ab, "e.jsonl", "--horizon", "2")
    assert done.code == 0, done.err
    title, head, *rows = done.out.splitlines()
    assert title.startswith("ab, within 2 events: ")
    assert "2 not known yet" in title
    assert head.split() == HEAD
    assert [row.split("  ")[1].strip() for row in rows] == ["both", BASE, "printed"]
    everything = tidings("pattern", "score", ab, "e.jsonl", "--horizon", "2", "--all").out.splitlines()
    assert [row.split("  ")[1].strip() for row in everything[2:]] == ["both", BASE, "printed", "chain", "direct"]


def test_the_numbers_are_those_of_the_trial(tidings, ab, tmp_path):
    command = ["pattern", "score", "two.patterns", "e.jsonl", "--horizon", "2", "--threshold", "0.4", "--json"]
    done = tidings(*command, "--context", "1", "--smoothing", "1")
    assert [line["pattern"] for line in done.lines] == ["ab", "slow"]
    watch = td.Detector()
    watch.add_many(read_patterns(AB + SLOW))
    events = [json.loads(line) for line in (tmp_path / "e.jsonl").read_text(encoding="utf-8").splitlines()]
    trials = prequential(watch, events, horizon=2, model=td.Model(context=1, smoothing=1))
    for line, trial in zip(done.lines, trials, strict=True):
        assert line["matches"] == trial.matches
        assert line["forecasts"] + line["unknown"] == len(events)
        for name, numbers in line["scores"].items():
            expected = trial.score(name, 0.4).to_dict()
            assert {key: numbers[key] for key in expected} == pytest.approx(expected, nan_ok=True)
            warned = trial.warnings(name, 0.4)
            assert numbers["false_per_1000"] == warned.false_per_1000
            assert numbers["lead"] == (None if warned.lead != warned.lead else warned.lead)
        assert set(line["scores"]["both"]["skill_against"]) == {BASE, "printed"}


def test_on_the_shipped_pumps_ours_is_better_than_both(tidings):
    (line,) = tidings("pattern", "score", PUMPS, REPORTS, "--horizon", "10 own events", "--json", "-q").lines
    ours = line["scores"]["both"]
    assert ours["skill"] > 0.1
    assert all(skill > 0 for skill in ours["skill_against"].values())
    assert ours["lead"] >= 1


def test_several_patterns_are_also_scored_together(tidings, ab):
    done = tidings("pattern", "score", "two.patterns", "e.jsonl")
    titles = [block.split(",")[0] for block in done.out.split("\n\n")]
    assert titles == ["ab", "slow", "all 2 patterns"]
    assert "2 patterns, 0 late, 0 dead letters" in done.err


def test_a_model_may_be_judged_as_it_is(tidings, ab):
    tidings("pattern", "train", ab, "e.jsonl", "-o", "m", "-q", "--estimator", "chain")
    kept = tidings("pattern", "score", ab, "e.jsonl", "--model", "m", "--no-learn", "--json").lines[0]["scores"]
    fresh = tidings("pattern", "score", ab, "e.jsonl", "--json").lines[0]["scores"]
    assert list(kept) == ["chain", BASE, "printed"]
    assert kept["chain"]["brier"] < fresh["both"]["brier"]  # it has seen these very events
    assert tidings("pattern", "score", ab, "e.jsonl", "--no-learn").code == 2
    assert tidings("pattern", "score", ab, "e.jsonl", "--model", "m", "--context", "1").code == 2


def test_the_plot_is_a_png(tidings, ab, tmp_path):
    pytest.importorskip("matplotlib")
    done = tidings("pattern", "score", ab, "e.jsonl", "--plot", "reliability.png")
    assert "note: wrote `reliability.png`" in done.err
    assert (tmp_path / "reliability.png").read_bytes().startswith(b"\x89PNG")


def test_a_plot_without_matplotlib_names_the_extra(tidings, ab, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    done = tidings("pattern", "score", ab, "e.jsonl", "--plot", "reliability.png")
    assert done.code == 1
    assert "tidings[bench]" in done.err


def test_bad_events_are_left_out_and_nothing_but_them_is_refused(tidings, ab, tmp_path):
    lines = (tmp_path / "e.jsonl").read_text(encoding="utf-8")
    (tmp_path / "bad.jsonl").write_text('["kind", "a"]\n' + lines + "no\n", encoding="utf-8")
    clean = tidings("pattern", "score", ab, "e.jsonl", "--json", "-q")
    mixed = tidings("pattern", "score", ab, "bad.jsonl", "--json", "-q", "--dead-letters", "dead.jsonl")
    assert mixed.lines == clean.lines
    assert "events could not be read and were not taken" in mixed.err
    assert len((tmp_path / "dead.jsonl").read_text(encoding="utf-8").splitlines()) == 2
    done = tidings("pattern", "score", ab, "-", stdin="no\n")
    assert done.code == 1
    assert "there is no event to score on; 0 late, 1 dead letters" in done.err
