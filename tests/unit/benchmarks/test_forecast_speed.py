"""The speed table of forecasts: it runs, and stops where the plain loop and the detector say different things."""

import pytest

import tidings as td
from benchmarks.forecasts import run
from benchmarks.forecasts.plain import PlainForecastLoop


def test_the_table_prints_a_row_for_every_case(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["run", "--quick", "--repeat", "1", "--only", "one", "published", "training"])
    run.main()
    printed = capsys.readouterr().out
    assert "1 pattern of 5 steps, at every event" in printed
    assert "1,000 of the paper, its publications" in printed
    assert "training, 20,000 events, 20 patterns" in printed


def test_nothing_is_timed_when_the_loop_and_the_detector_do_not_agree(monkeypatch):
    monkeypatch.setattr(PlainForecastLoop, "take", lambda _, types, *, every=None: every.extend(2.0 for _ in types))
    with pytest.raises(SystemExit, match="do not agree"):
        run.measure_case(run.CASES[0], repeat=1, quick=True)


def test_the_loop_stands_where_the_detector_does():
    case = run.CASES[1]
    patterns = run.draw_patterns(case, quick=True)[:5]
    stream = run.stream_of(case, patterns, 300)
    learner = td.Detector()
    learner.add_many(run.write_patterns(patterns))
    detector = run.watch_patterns(patterns, td.train(learner, stream.table()), case)
    loop = PlainForecastLoop.of(detector, run.HORIZON, run.THRESHOLD)
    loop.take(stream.names())
    forecasts = detector.detect_many(stream.table()).forecasts
    assert loop.forecasts == len(forecasts)
    assert loop.cells == detector.prepare_forecasting().forecaster.followers[0].cells[:, 0].tolist()
