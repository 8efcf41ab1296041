"""`tidings pattern train`, and `tidings pattern show --model`."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cli.samples import write_lines

import tidings as td
from tidings.lang import WrittenPattern, read_patterns, render_patterns
from tidings.model.patterns import Mode
from tidings.testing.strategies.patterns import patterns, streams

EXAMPLES = Path(__file__).parents[3] / "examples"
PUMPS, REPORTS = EXAMPLES / "pumps.patterns", EXAMPLES / "pumps.jsonl"
AB = "pattern ab\n  a = kind = 'a'\n  b = kind = 'b'\n  a ; b\n"
AGED = AB.replace("a ; b", "a ; b within 5 s").replace("pattern ab", "pattern aged")


@pytest.fixture
def ab(tmp_path):
    (tmp_path / "ab.patterns").write_text(AB, encoding="utf-8")
    return "ab.patterns"


def kinds(text, since=0):
    return [{"id": f"e{n}", "kind": kind, "time": since + n} for n, kind in enumerate(text)]


def train_here(text, events, **settings):
    watch = td.Detector()
    watch.add_many(read_patterns(text))
    return td.train(watch, events, **settings)


def same(model, other):
    assert model.traffic == other.traffic
    assert model.now == other.now
    assert model.patterns.keys() == other.patterns.keys()
    for key, trained_pattern in model.patterns.items():
        assert (trained_pattern.counts.moves == other.patterns[key].counts.moves).all()
        assert (trained_pattern.counts.waits == other.patterns[key].counts.waits).all()


def test_the_model_is_what_td_train_gives(tidings, tmp_path):
    done = tidings("pattern", "train", PUMPS, REPORTS, "-o", "pumps.model")
    assert done.code == 0
    assert done.out.splitlines()[0] == "1 pattern counted over 4,000 events"
    assert done.out.splitlines()[2].split()[:3] == ["breakdown", "restart", "4"]
    size = (tmp_path / "pumps.model").stat().st_size
    assert "note: 4,000 events, 0 late, 0 dead letters (" in done.err
    assert done.err.endswith(f"; the model is in `pumps.model`, {size:,} bytes\n")
    events = [json.loads(line) for line in REPORTS.read_text(encoding="utf-8").splitlines()]
    same(td.Model.load(tmp_path / "pumps.model"), train_here(PUMPS.read_text(encoding="utf-8"), events))


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(patterns(), min_size=1, max_size=3), streams(), st.sampled_from([Mode.RESTART, Mode.OVERLAP]))
def test_generated_patterns_are_counted_alike(tidings, tmp_path, drawn, events, mode):
    written = [WrittenPattern(f"p{n}", pattern, mode) for n, pattern in enumerate(drawn)]
    (tmp_path / "drawn.patterns").write_text(render_patterns(written), encoding="utf-8")
    write_lines(tmp_path / "drawn.jsonl", [{**event, "time": event["time"].isoformat()} for event in events])
    assert tidings("pattern", "train", "drawn.patterns", "drawn.jsonl", "-o", "drawn.model").code == 0
    watch = td.Detector()
    watch.add_many(written)
    same(td.Model.load(tmp_path / "drawn.model"), td.train(watch, events))


def test_settings_are_the_model_s(tidings, ab, tmp_path):
    write_lines(tmp_path / "e.jsonl", kinds("abcab"))
    options = ["--context", "1", "--smoothing", "2", "--half-life", "7d", "--estimator", "chain", "--horizon", "5min"]
    assert tidings("pattern", "train", ab, "e.jsonl", "-o", "m", *options).code == 0
    model = td.Model.load(tmp_path / "m")
    assert (model.settings.context, model.settings.smoothing, model.settings.estimator) == (1, 2.0, "chain")
    assert model.settings.half_life.timed
    assert list(model["ab"].counts.spans) == [300_000_000]
    assert tidings("pattern", "train", ab, "e.jsonl", "-o", "m", "--half-life", "soon").code == 2
    assert tidings("pattern", "train", ab, "e.jsonl", "-o", "m", "--horizon", "0").code == 2


def test_several_files_are_one_stream_unless_apart(tidings, ab, tmp_path):
    first, second = kinds("aca"), kinds("bcb", since=3)
    write_lines(tmp_path / "1.jsonl", first)
    write_lines(tmp_path / "2.jsonl", second)
    tidings("pattern", "train", ab, "1.jsonl", "2.jsonl", "-o", "one")
    tidings("pattern", "train", ab, "1.jsonl", "2.jsonl", "-o", "two", "--apart")
    same(td.Model.load(tmp_path / "one"), train_here(AB, [*first, *second]))
    parted = train_here(AB, first) + train_here(AB, second)
    assert td.Model.load(tmp_path / "two")["ab"].counts.moves.tolist() == parted["ab"].counts.moves.tolist()


def test_a_model_goes_on_from_another(tidings, ab, tmp_path):
    write_lines(tmp_path / "1.jsonl", kinds("acab"))
    write_lines(tmp_path / "2.jsonl", kinds("bcab", since=9))
    tidings("pattern", "train", ab, "1.jsonl", "-o", "m", "--context", "1")
    done = tidings("pattern", "train", ab, "2.jsonl", "-o", "m", "--from", "m", "--json")
    assert done.lines[0]["events"] == 4
    assert done.lines[0]["events_of_the_model"] == 8
    assert done.lines[0]["bytes"] == (tmp_path / "m").stat().st_size
    merged = train_here(AB, kinds("acab"), context=1) + train_here(AB, kinds("bcab", since=9), context=1)
    assert td.Model.load(tmp_path / "m")["ab"].counts.moves.tolist() == merged["ab"].counts.moves.tolist()
    done = tidings("pattern", "train", ab, "2.jsonl", "-o", "m", "--from", "m", "--context", "2")
    assert done.code == 2
    assert "--context" in done.err


def test_bad_and_late_events_are_left_out_and_told(tidings, tmp_path):
    (tmp_path / "p.patterns").write_text(AGED, encoding="utf-8")
    rows = [*kinds("ab"), ["no event"], {"kind": ["a"], "time": 0}]
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "no\n", encoding="utf-8")
    done = tidings("pattern", "train", "p.patterns", "e.jsonl", "-o", "m", "--dead-letters", "dead.jsonl")
    assert done.code == 0
    assert "2 of 5 events could not be read and were not taken\n  line 3: " in done.err
    assert "1 of 5 events came late and were not taken\n  line 4: its time" in done.err
    assert len((tmp_path / "dead.jsonl").read_text(encoding="utf-8").splitlines()) == 3
    assert td.Model.load(tmp_path / "m").now[0] == 2
    done = tidings("pattern", "train", "p.patterns", "e.jsonl", "e.jsonl", "-o", "m")
    assert "  e.jsonl, line 3: " in done.err


def test_what_has_no_time_is_learned_of_and_told(tidings, tmp_path):
    (tmp_path / "p.patterns").write_text(AGED, encoding="utf-8")
    rows = [*kinds("ab"), {"kind": "a", "time": "never"}]
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    done = tidings("pattern", "train", "p.patterns", "e.jsonl", "-o", "m")
    assert "warning: time: 1 of 3 events have no time that can be read, and take no part in 1 pattern" in done.err
    assert td.Model.load(tmp_path / "m").now[0] == 3


def test_what_is_no_model_is_not_overwritten_or_read(tidings, ab, tmp_path):
    write_lines(tmp_path / "e.jsonl", kinds("ab"))
    done = tidings("pattern", "train", ab, "e.jsonl", "-o", "e.jsonl")
    assert (done.code, done.err) == (1, "error: `e.jsonl` is no model, and would be overwritten; choose another name\n")
    done = tidings("pattern", "train", ab, "e.jsonl", "-o", "m", "--from", "e.jsonl")
    assert done.code == 1
    assert "e.jsonl" in done.err
    assert not (tmp_path / "m").exists()
    assert tidings("pattern", "train", "-", "-", "-o", "m").code == 2


# show --model ----------------------------------------------------------------------------------


@pytest.fixture
def model(tidings, ab, tmp_path):
    (tmp_path / "both.patterns").write_text(AB + AGED, encoding="utf-8")
    write_lines(tmp_path / "e.jsonl", kinds("acbcabaabbcab" * 3))
    assert tidings("pattern", "train", "both.patterns", "e.jsonl", "-o", "m", "-q").code == 0
    return "m"


def test_states_counts_and_probabilities_are_told_in_text(tidings, model, tmp_path):
    done = tidings("pattern", "show", "both.patterns", "ab", "--model", model)
    assert done.code == 0
    assert done.out.rstrip("\n") == td.Model.load(tmp_path / model).show("ab").replace("2 patterns", "1 pattern")
    assert "p(5)" in tidings("pattern", "show", "both.patterns", "ab", "--model", model, "--horizon", "5").out
    both = tidings("pattern", "show", "both.patterns", "--model", model).out
    assert "\nab (restart" in both
    assert "\naged (restart" in both


def test_a_pattern_is_known_by_what_it_says_not_by_its_name(tidings, model, tmp_path):
    (tmp_path / "new.patterns").write_text(AB.replace("pattern ab", "pattern renamed"), encoding="utf-8")
    assert "\nrenamed (restart" in tidings("pattern", "show", "new.patterns", "--model", model).out
    (tmp_path / "new.patterns").write_text(AB.replace("a ; b", "b ; a"), encoding="utf-8")
    done = tidings("pattern", "show", "new.patterns", "--model", model)
    assert done.code == 1
    assert "`m` knows nothing of `ab`, as the file has it; train it again" in done.err


def test_arrows_and_states_of_a_picture_carry_probabilities(tidings, model, tmp_path):
    (line,) = tidings("pattern", "show", "both.patterns", "ab", "--model", model, "--json").lines
    leaving = {}
    for arrow in line["arrows"]:
        labels = [part.rsplit(" ", 1) for part in arrow["label"].splitlines()]
        leaving[arrow["source"]] = leaving.get(arrow["source"], 0) + sum(float(chance) for _, chance in labels)
    assert all(abs(total - 1) < 0.01 for total in leaving.values())
    assert [state["name"] for state in line["states"] if state["final"]] == ["N2"]
    shown = td.Model.load(tmp_path / model).show("ab", horizon=10).splitlines()[-3:]
    for state, row in zip(line["states"], shown, strict=True):
        called, chance, times = state["note"].splitlines()
        assert row.split()[: len(called.split()) + 2] == [*called.split(), times.split()[0], chance.split()[-1]]
    dot = tidings("pattern", "show", "both.patterns", "ab", "--model", model, "--as", "dot").out
    assert "p within 10 events" in dot
    assert "times" in dot


def test_a_picture_of_an_approximate_pattern_ends_in_a_match(tidings, model, tmp_path):
    done = tidings("pattern", "show", "both.patterns", "aged", "--model", model, "-o", "aged.svg", "--horizon", "5s")
    assert done.code == 0, done.err
    drawn = ET.parse(tmp_path / "aged.svg").getroot()
    words = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert "match" in words
    assert any(word.startswith("p = ") for word in words)
    assert words[-1] == "aged (restart), p within 5 s, approximate"


def test_of_a_key_its_own_events_are_looked_at(tidings):
    tidings("pattern", "train", PUMPS, REPORTS, "-o", "m", "-q")
    assert "p(10 own events)" in tidings("pattern", "show", PUMPS, "--model", "m", "--horizon", "10").out
    done = tidings("pattern", "show", PUMPS, "--model", "m", "--horizon", "5min", "--as", "dot")
    assert (done.code, done.out) == (1, "")
    assert "`breakdown` has a key" in done.err
