"""`tidings pattern forecast`."""

import json
import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.samples import write_lines

import tidings as td
from tidings.cli.pattern.rows import FORECAST_COLUMNS, PatternTable, format_standing_rows
from tidings.forecast.forecasts import EventForecast, Forecast
from tidings.lang import read_patterns
from tidings.matcher.tuning import FILE_TUNING

EXAMPLES = Path(__file__).parents[3] / "examples"
PUMPS, REPORTS = EXAMPLES / "pumps.patterns", EXAMPLES / "pumps.jsonl"
AB = "pattern ab\n  a = kind = 'a'\n  b = kind = 'b'\n  a ; b\n"


def events_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def pumps(tmp_path_factory):
    """A model of the first reports, and a file of the others."""
    folder = tmp_path_factory.mktemp("pumps")
    watch = td.Detector()
    watch.add_many(read_patterns(PUMPS.read_text(encoding="utf-8")))
    events = events_of(REPORTS)
    td.train(watch, events[:3000]).save(folder / "pumps.model")
    write_lines(folder / "rest.jsonl", events[3000:])
    return folder


@pytest.fixture
def ab(tmp_path):
    (tmp_path / "ab.patterns").write_text(AB, encoding="utf-8")
    write_lines(tmp_path / "e.jsonl", [{"kind": kind, "time": n} for n, kind in enumerate("acbabcaab" * 4)])
    return "ab.patterns"


def watching(model, **plan):
    watch = td.Detector(model=model, event_id="")
    watch.add_many(read_patterns(PUMPS.read_text(encoding="utf-8")), **plan)
    return watch


@pytest.mark.parametrize(("tell", "step"), [("crossing", 0.1), ("episode", 0.1), ("change", 0.25), ("every", 0.1)])
@pytest.mark.parametrize("horizon", ["10 own events", "30", "6h"])
def test_alarms_are_those_of_the_detector(tidings, pumps, tell, step, horizon):
    model, rest = pumps / "pumps.model", pumps / "rest.jsonl"
    options = ["--horizon", horizon, "--threshold", "0.4", "--tell", tell, "--step", step, "--keys", "9"]
    done = tidings("pattern", "forecast", PUMPS, rest, "--model", model, *options)
    assert done.code == 0, done.err
    watch = watching(model, horizon=horizon, threshold=0.4, tell=tell, step=step)
    detections = watch.detect_many(events_of(rest))
    alarms = [line for line in done.lines if line["kind"] == "forecast"]
    assert len(alarms) == len(detections.forecasts) > 0
    expected = [
        (forecast.event, forecast.forecast.key, float(f"{forecast.forecast.probability:.4g}"))
        for forecast in detections.forecasts
    ]
    assert sorted((line["event"], line["key"], line["probability"]) for line in alarms) == sorted(expected)
    assert [line["at"] for line in alarms] == sorted(line["at"] for line in alarms)
    assert {line["estimator"] for line in alarms} <= {"both", "chain"}
    now = watch.forecast("breakdown")
    standing = [line for line in done.lines if line["kind"] == "now"]
    assert len(standing) == len(now)
    assert standing[-1]["key"] is None
    assert {line["key"]: line["probability"] for line in standing} == {
        forecast.key: float(f"{forecast.probability:.4g}") for forecast in now
    }
    forecasts = f"{len(alarms):,} forecasts told, {len(detections):,} detections"
    assert f"note: 1,000 events, 1 patterns: {forecasts}" in done.err


def test_the_likeliest_keys_stand_first_and_the_rest_is_counted(tidings, pumps):
    command = ["pattern", "forecast", PUMPS, pumps / "rest.jsonl", "--model", pumps / "pumps.model", "-q"]
    done = tidings(*command, "--keys", "1", "--threshold", "1")
    assert done.err == ""
    first, others = done.lines
    assert first["key"] is not None
    assert others["key"] is None
    everything = tidings(*command, "--keys", "9", "--threshold", "1").lines
    assert others["more_keys"] == len(everything) - 2
    assert first["probability"] == max(line["probability"] for line in everything[:-1])
    assert set(first["waiting"]) == {"0.1", "0.25", "0.5", "0.75", "0.9"}
    assert first["horizon"] == 10


def test_what_is_learned_is_saved(tidings, ab, tmp_path):
    done = tidings("pattern", "forecast", ab, "e.jsonl", "--learn", "--save", "m", "--horizon", "3")
    assert done.code == 0
    assert "; the model is in `m`" in done.err
    watch = td.Detector()
    watch.add_many(read_patterns(AB))
    trained = td.train(watch, events_of(tmp_path / "e.jsonl"))
    assert td.Model.load(tmp_path / "m")["ab"].counts.moves.tolist() == trained["ab"].counts.moves.tolist()
    again = tidings("pattern", "forecast", ab, "e.jsonl", "--model", "m", "--learn", "--save", "m")
    assert again.code == 0
    assert td.Model.load(tmp_path / "m").now[0] == 72


def test_ctrl_c_saves_what_was_learned_up_to_the_end_of_the_batch(tidings, ab, tmp_path, monkeypatch):
    detect_many = td.Detector.detect_many

    def interrupt(self, events, **options):
        os.kill(os.getpid(), signal.SIGINT)
        return detect_many(self, events, **options)

    batch = FILE_TUNING.batch_rows
    rows = [{"kind": "acb"[n % 3], "time": n} for n in range(batch + 10)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "many.parquet")
    monkeypatch.setattr(td.Detector, "detect_many", interrupt)
    done = tidings("pattern", "forecast", ab, "many.parquet", "--learn", "--save", "m")
    assert done.code == 130
    assert done.err == f"note: stopped after {batch:,} events; what was learned is in `m`\n"
    assert td.Model.load(tmp_path / "m").now[0] == batch


def test_events_that_wait_for_their_turn_are_foretold_too(tidings, ab, tmp_path):
    tidings("pattern", "train", ab, "e.jsonl", "-o", "m", "-q")
    rows = [{"kind": kind, "time": at} for kind, at in (("c", 1), ("a", 4), ("c", 3), ("b", 5))]
    write_lines(tmp_path / "late.jsonl", rows)
    command = ["pattern", "forecast", ab, "late.jsonl", "--model", "m", "--tell", "every"]
    done = tidings(*command, "--lateness", "10s")
    assert [line["event"] for line in done.lines if line["kind"] == "forecast"] == [0, 2, 1, 3]
    assert "4 forecasts told, 1 detections, 0 late" in done.err
    assert "came late" in tidings(*command).err


def test_a_pattern_the_model_has_not_counted_is_told(tidings, ab, pumps):
    done = tidings("pattern", "forecast", ab, "e.jsonl", "--model", pumps / "pumps.model")
    assert done.code == 0
    assert "warning: the model has counted nothing of `ab`" in done.err


def test_wrong_usage_is_told(tidings, ab):
    command = ["pattern", "forecast", ab, "e.jsonl"]
    assert "--learn to begin without" in tidings(*command).err
    assert tidings(*command).code == 2
    assert tidings(*command, "--learn", "--horizon", "soon").code == 2
    assert tidings(*command, "--learn", "--threshold", "1.5").code == 2
    assert tidings(*command, "--model", "m", "--save", "n").code == 2
    assert tidings("pattern", "forecast", "-", "-", "--learn").code == 2
    done = tidings(*command, "--model", "nowhere")
    assert (done.code, done.out) == (1, "")
    assert "`tidings pattern train` writes a model" in done.err


def test_a_span_needs_a_model_that_knows_how_fast_events_come(tidings, ab, tmp_path):
    write_lines(tmp_path / "timeless.jsonl", [{"kind": kind} for kind in "abab"])
    tidings("pattern", "train", ab, "timeless.jsonl", "-o", "m", "-q")
    done = tidings("pattern", "forecast", ab, "timeless.jsonl", "--model", "m", "--horizon", "5min")
    assert done.code == 1
    assert done.err.startswith("error: a horizon of `5 min` needs a model trained on events with times")


def test_a_terminal_gets_rows():
    watch = td.Detector()
    watch.add_many(read_patterns(AB))
    table = PatternTable(watch)
    at = datetime(2024, 7, 1, tzinfo=UTC)
    forecast = Forecast("ab", "x", 0.6543, "10 own events", "both", {0.25: 3, 0.5: 7, 0.75: None})
    assert table.format_heading(FORECAST_COLUMNS) == "at                    pattern      p  key, event"
    assert table.format_forecast(EventForecast(17, at, forecast)) == "2024-07-01T00:00:00Z  ab       0.654  x, 17"
    other = Forecast("ab", None, 0.1, "10 own events", "chain", {0.25: 1, 0.5: 2, 0.75: 3})
    assert format_standing_rows([forecast, other], 4) == [
        "ab, within 10 own events:",
        "  0.654  x  [25% 3, 50% 7, 75% later]  both",
        "  and 4 keys that are less likely",
        "  0.100  nothing begun  [25% 1, 50% 2, 75% 3]  chain",
    ]
    alone = Forecast("ab", None, 0.1, timedelta(minutes=5), "both", {0.5: timedelta(seconds=61.4)})
    assert format_standing_rows([alone], 0) == [
        "ab, within 5 min:",
        "  0.100  [25% later, 50% 61 s, 75% later]  both",
    ]
    assert format_standing_rows([Forecast("ab", None, 0.1, 10, "both", {})], 0)[0] == "ab, within 10 events:"


@pytest.mark.parametrize("command", ["train", "forecast", "score"])
def test_every_help_has_an_example(tidings, command):
    done = tidings("pattern", command, "--help")
    assert done.code == 0
    assert f"tidings pattern {command}" in done.out


STRANGE = ["folder", "binary", "empty", "nowhere", "", "\x01", "x" * 300]
USES = [
    "pattern train {} e.jsonl -o m",
    "pattern train ab.patterns {} -o m",
    "pattern train ab.patterns e.jsonl -o {}",
    "pattern train ab.patterns e.jsonl -o {}/x",
    "pattern train ab.patterns e.jsonl -o m --from {}",
    "pattern forecast ab.patterns {} --learn",
    "pattern forecast ab.patterns e.jsonl --model {}",
    "pattern forecast ab.patterns e.jsonl --learn --save {}",
    "pattern score ab.patterns {}",
    "pattern score ab.patterns e.jsonl --model {}",
    "pattern show ab.patterns --model {}",
]


@pytest.mark.parametrize("use", USES)
def test_strange_files_are_refused_in_words(tidings, ab, tmp_path, use):
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 4)
    (tmp_path / "empty").write_bytes(b"")
    for name in STRANGE:
        done = tidings(*(part.replace("{}", name) for part in use.split()))  # a traceback would be raised here
        assert done.code in (0, 1), (name, done)
        assert done.code == 0 or "error: " in done.err, (name, done)
