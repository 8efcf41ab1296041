"""Scores of forecasts: each number against its definition, worked examples, and what is refused."""

from __future__ import annotations

import doctest
import json
import math
import sys
from importlib import import_module

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import BadValue, FileError, MissingExtra, TidingsError
from tidings.forecast.scoring.reliability import compute_wilson_interval, draw, measure_reliability
from tidings.forecast.scoring.scores import AlarmTimes, compare_skill, score

# Coarse steps, so that equal forecasts and forecasts on a threshold or an edge come up; beyond 1, as printed formulas.
STEPS = st.one_of(st.integers(-2, 14).map(lambda tenths: tenths / 10), st.floats(0, 1))
FORECASTS = st.lists(st.tuples(STEPS, st.booleans()), max_size=40)
THRESHOLDS = st.integers(0, 10).map(lambda tenths: tenths / 10)
UNDEFINED = pytest.approx(math.nan, nan_ok=True)


def same(first: float, second: float) -> bool:
    return first == pytest.approx(second, rel=1e-9, abs=1e-12, nan_ok=True)


def clip(value: float) -> float:
    return min(1.0, max(0.0, value))


def parts(forecasts: list[tuple[float, bool]]) -> tuple[list[float], list[bool]]:
    return [p for p, _ in forecasts], [y for _, y in forecasts]


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def brier_by_loop(p: list[float], y: list[bool]) -> float:
    return mean([(clip(p_) - other) ** 2 for p_, other in zip(p, y, strict=True)])


# --- scores against their definitions -------------------------------------------------------------


@given(FORECASTS, THRESHOLDS)
def test_counts_are_those_of_a_loop(forecasts: list[tuple[float, bool]], threshold: float):
    scores = score(*parts(forecasts), threshold)
    alarms = [(clip(p) > threshold, y) for p, y in forecasts]
    assert (scores.tp, scores.fp) == (alarms.count((True, True)), alarms.count((True, False)))
    assert (scores.fn, scores.tn) == (alarms.count((False, True)), alarms.count((False, False)))
    assert scores.n == len(forecasts)
    assert scores.clipped == sum(not 0 <= p <= 1 for p, _ in forecasts)


@given(FORECASTS, THRESHOLDS)
def test_ratios_follow_from_the_counts(forecasts: list[tuple[float, bool]], threshold: float):
    scores = score(*parts(forecasts), threshold)
    if scores.tp:
        assert same(scores.f1, 2 / (1 / scores.precision + 1 / scores.recall))
    elif scores.n:
        assert scores.f1 == 0
    if scores.n and not any(math.isnan(ratio) for ratio in (scores.precision, scores.recall)):
        assert 0 <= scores.precision <= 1
        assert 0 <= scores.recall <= 1
    assert math.isnan(scores.precision) == (scores.tp + scores.fp == 0)
    assert math.isnan(scores.recall) == (scores.tp + scores.fn == 0)


@given(FORECASTS, THRESHOLDS)
def test_mcc_is_the_correlation_of_alarms_and_outcomes(forecasts: list[tuple[float, bool]], threshold: float):
    scores = score(*parts(forecasts), threshold)
    alarms, happened = [clip(p) > threshold for p, _ in forecasts], [y for _, y in forecasts]
    if len(set(alarms)) == 2 and len(set(happened)) == 2:
        assert same(scores.mcc, float(np.corrcoef(alarms, happened)[0, 1]))
    elif forecasts:
        assert scores.mcc == 0


@given(FORECASTS)
def test_auc_is_the_share_of_pairs_in_order(forecasts: list[tuple[float, bool]]):
    ones = [clip(p) for p, y in forecasts if y]
    noughts = [clip(p) for p, y in forecasts if not y]
    wins = [(positive > negative) + (positive == negative) / 2 for positive in ones for negative in noughts]
    assert same(score(*parts(forecasts)).auc, mean(wins))


@given(FORECASTS)
def test_brier_skill_and_log_loss_are_those_of_a_loop(forecasts: list[tuple[float, bool]]):
    p, y = parts(forecasts)
    scores, rate = score(p, y), mean([float(probability) for probability in y])
    losses = [
        -math.log(max(1e-15, clip(probability) if other else 1 - clip(probability))) for probability, other in forecasts
    ]
    assert same(scores.base_rate, rate)
    assert same(scores.brier, brier_by_loop(p, y))
    assert same(scores.log_loss, mean(losses))
    base = brier_by_loop([rate] * len(y), y)
    assert same(scores.skill, 1 - scores.brier / base if len(set(y)) == 2 else math.nan)


@given(FORECASTS.filter(bool), st.randoms(use_true_random=False))
def test_the_order_of_forecasts_does_not_matter(forecasts: list[tuple[float, bool]], random: object):
    shuffled = list(forecasts)
    random.shuffle(shuffled)
    first, second = score(*parts(forecasts)).to_dict(), score(*parts(shuffled)).to_dict()
    assert first == pytest.approx(second)


@given(FORECASTS.filter(bool), st.data())
def test_skill_against_compares_two_forecasts(forecasts: list[tuple[float, bool]], data: st.DataObject):
    p, y = parts(forecasts)
    q = data.draw(st.lists(STEPS, min_size=len(p), max_size=len(p)))
    base = brier_by_loop(q, y)
    assert same(compare_skill(p, q, y), 1 - brier_by_loop(p, y) / base if base else math.nan)


# --- worked by hand -------------------------------------------------------------------------------


def test_scores_of_a_small_example_are_those_worked_by_hand():
    scores = score([0.8, 0.6, 0.4, 0.2, 0.2], [1, 0, 1, 0, 0], threshold=0.5)
    assert (scores.tp, scores.fp, scores.fn, scores.tn) == (1, 1, 1, 2)
    assert (scores.precision, scores.recall, scores.f1) == (0.5, 0.5, 0.5)
    assert scores.mcc == pytest.approx((1 * 2 - 1 * 1) / 6)
    assert scores.brier == pytest.approx((0.04 + 0.36 + 0.36 + 0.04 + 0.04) / 5)
    assert scores.skill == pytest.approx(1 - 0.168 / 0.24)
    assert scores.auc == pytest.approx(5 / 6)
    assert scores.log_loss == pytest.approx(-math.log(0.8 * 0.4 * 0.4 * 0.8 * 0.8) / 5)


def test_a_forecast_equal_to_the_threshold_is_no_alarm():
    assert score([0.6], [1], 0.6).fn == 1
    assert score([0.0], [0], 0.0).tn == 1
    assert score([1.3], [1], 1.0).fn == 1


def test_probabilities_above_one_count_as_one():
    scores = score([3.28, 1.03, -0.5], [1, 0, 0])
    assert scores.clipped == 2 + 1
    assert scores.brier == pytest.approx(1 / 3)
    assert scores.auc == 0.75  # clipped to the same number: half a pair
    assert score([math.inf], [1]).brier == 0


def test_a_sure_and_wrong_forecast_costs_the_log_loss_a_finite_sum():
    assert score([1.0, 0.0], [0, 1]).log_loss == pytest.approx(-math.log(1e-15))


def test_the_base_rate_has_no_skill_and_a_perfect_forecast_has_all():
    y = [1, 0, 0, 0]
    assert score([0.25] * 4, y).skill == pytest.approx(0)
    assert score([1, 0, 0, 0], y).skill == 1
    assert compare_skill([1, 0, 0, 0], 0.25, y) == 1
    assert compare_skill([0.5] * 4, 0.5, y) == 0


# --- what is not defined --------------------------------------------------------------------------


def test_without_forecasts_the_counts_are_nought_and_the_rest_is_not_defined():
    scores = score([], [])
    assert (scores.n, scores.tp, scores.fp, scores.fn, scores.tn, scores.clipped) == (0, 0, 0, 0, 0, 0)
    for name in ("base_rate", "precision", "recall", "f1", "mcc", "brier", "skill", "log_loss", "auc"):
        assert math.isnan(getattr(scores, name)), name
    assert math.isnan(compare_skill([], [], []))


def test_outcomes_of_one_kind_leave_skill_and_auc_undefined():
    none, all_of_them = score([0.1, 0.7], [0, 0]), score([0.1, 0.7], [1, 1])
    assert [none.skill, none.auc, none.recall] == [UNDEFINED] * 3
    assert [all_of_them.skill, all_of_them.auc] == [UNDEFINED] * 2
    assert (none.f1, none.mcc, all_of_them.mcc) == (0, 0, 0)
    assert none.brier == pytest.approx(0.25)


def test_a_model_that_never_fires_has_no_precision_and_an_f1_of_nought():
    scores = score([0.1, 0.2], [0, 1])
    assert math.isnan(scores.precision)
    assert (scores.recall, scores.f1, scores.mcc) == (0, 0, 0)


def test_skill_against_a_forecast_that_is_never_wrong_is_not_defined():
    assert math.isnan(compare_skill([0.9, 0.1], [1, 0], [1, 0]))


# --- forms of input and output --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "y"),
    [
        ([0.5, 1, 0], [True, False, 1]),
        ((0.5, 1, 0), (1.0, 0.0, 1.0)),
        (np.array([0.5, 1, 0], dtype=np.float32), np.array([1, 0, 1], dtype=np.uint8)),
        (pa.array([0.5, 1.0, 0.0]), pa.array([True, False, True])),
        (pa.chunked_array([[0.5], [1.0, 0.0]]), pa.chunked_array([[1, 0], [1]])),
    ],
)
def test_lists_numpy_and_arrow_score_alike(p: object, y: object):
    assert score(p, y) == score([0.5, 1.0, 0.0], [1, 0, 1])


def test_a_score_reads_as_a_table_and_as_json():
    scores = score([0.1, 0.2], [0, 1])
    lines = str(scores).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert [line.split() for line in lines][8] == ["precision", "-"]
    assert json.loads(json.dumps(scores.to_dict(), allow_nan=False))["precision"] is None
    assert lines[0].split() == ["score"]
    assert str(score([1.4, 0.2], [0, 1])).splitlines()[-1].split() == ["clipped", "1"]


@pytest.mark.parametrize(
    ("p", "y", "threshold", "message"),
    [
        ([0.5, math.nan], [0, 1], 0.5, "`p` has no number at 1"),
        ([0.5, None], [0, 1], 0.5, "leave out"),
        (pa.array([0.5, None]), [0, 1], 0.5, "leave out"),
        ([0.5], [None], 0.5, "`y` has no number at 0"),
        ([0.5], [0, 1], 0.5, "`p` has 1 values and `y` has 2"),
        ([0.5, 0.5], [0, 2], 0.5, "`y` has `2` at 1"),
        ([0.5], [0.5], 0.5, "give 1 where it happened"),
        (["0.5"], [1], 0.5, "`p` is not a row of numbers"),
        (np.array(["0.5"], dtype=object), [1], 0.5, "`p` is not a row of numbers"),
        ([0.5], ["yes"], 0.5, "`y` is not a row of numbers"),
        ([[0.5]], [1], 0.5, "`p` is not a row of numbers"),
        ([[0.5], [0.5, 0.5]], [1, 1], 0.5, "`p` is not a row of numbers"),
        (0.5, 1, 0.5, "`p` is not a row of numbers"),
        ([0.5], [1], 1.5, "the threshold `1.5`"),
        ([0.5], [1], math.nan, "the threshold `nan`"),
        ([0.5], [1], "0.5", "give a number from 0 to 1"),
    ],
)
def test_bad_input_is_refused_with_the_way_out(p: object, y: object, threshold: float, message: str):
    with pytest.raises(BadValue) as refused:
        score(p, y, threshold)
    assert message in str(refused.value)
    assert isinstance(refused.value, TidingsError)


def test_skill_against_names_the_forecast_that_does_not_fit():
    with pytest.raises(BadValue, match="`q` has 1 values"):
        compare_skill([0.5, 0.5], [0.5], [1, 0])
    with pytest.raises(BadValue, match="`q` is not a row of numbers"):
        compare_skill([0.5], "0.5", [1])


# --- warnings -------------------------------------------------------------------------------------


def test_leads_and_false_alarms_of_a_small_stream_are_those_worked_by_hand():
    warnings = AlarmTimes((2, 3, None), alarms=3, false=1, undecided=1, judged=7)
    assert (warnings.matches, warnings.warned_count, warnings.lead) == (3, 2, 2.5)
    assert warnings.share == pytest.approx(2 / 3)
    assert warnings.false_per_1000 == pytest.approx(1000 / 7)


def test_warnings_of_two_streams_add_up():
    first = AlarmTimes((1,), alarms=1, false=0, undecided=0, judged=2)
    second = AlarmTimes((), alarms=1, false=1, undecided=0, judged=2)
    assert first + second == AlarmTimes((1,), alarms=2, false=1, undecided=0, judged=4)


def test_warnings_without_matches_or_events_are_not_defined():
    warnings = AlarmTimes((), 0, 0, 0, 0)
    assert [warnings.share, warnings.lead, warnings.false_per_1000] == [UNDEFINED] * 3


# --- reliability ----------------------------------------------------------------------------------


@given(FORECASTS, st.integers(1, 12))
def test_bins_of_equal_width_are_those_of_a_loop(forecasts: list[tuple[float, bool]], bins: int):
    measured = measure_reliability(*parts(forecasts), bins)
    limits = [at / bins for at in range(bins + 1)]
    expected = []
    for at in range(bins):
        last = at == bins - 1
        inside = [(q, y) for p, y in forecasts if limits[at] <= (q := clip(p)) and (last or q < limits[at + 1])]
        if inside:
            expected.append((len(inside), mean([q for q, _ in inside]), mean([float(y) for _, y in inside])))
    assert len(measured) == len(expected)
    for bucket, (count, mean_of_bin, was) in zip(measured, expected, strict=True):
        assert bucket.count == count
        assert same(bucket.mean, mean_of_bin)
        assert same(bucket.observed, was)
        assert (bucket.lower, bucket.upper) == compute_wilson_interval(round(was * count), count)


def test_reliability_of_a_small_example_is_that_worked_by_hand():
    low, high = measure_reliability([0.2, 0.2, 0.2, 0.2, 0.8, 0.8], [0, 0, 0, 1, 1, 1], bins=5)
    assert (low.count, low.mean, low.observed) == (4, pytest.approx(0.2), 0.25)
    assert (high.count, high.mean, high.observed) == (2, pytest.approx(0.8), 1.0)


@given(st.integers(1, 10_000), st.data())
def test_the_interval_solves_the_equation_it_is_defined_by(count: int, data: st.DataObject):
    hits = data.draw(st.integers(0, count))
    low, high = compute_wilson_interval(hits, count)
    assert 0 <= low <= hits / count <= high <= 1
    for end in (low, high):
        if 0 < end < 1:
            assert (hits / count - end) ** 2 == pytest.approx(1.959964**2 * end * (1 - end) / count, abs=1e-9)


def test_the_interval_of_one_in_ten_is_the_published_one():
    assert compute_wilson_interval(1, 10) == pytest.approx((0.0179, 0.4042), abs=1e-4)


def off(bucket) -> float:
    """Return how many standard errors an observed share lies from the diagonal, were each forecast the bin's mean."""
    return abs(bucket.observed - bucket.mean) / math.sqrt(bucket.mean * (1 - bucket.mean) / bucket.count)


def test_a_source_of_known_law_lies_on_the_diagonal_within_its_error():
    rng = np.random.default_rng(8)
    p = rng.random(20_000)
    assert max(map(off, measure_reliability(p, rng.random(20_000) < p))) < 4
    assert max(map(off, measure_reliability(np.sqrt(p), rng.random(20_000) < p))) > 10


@pytest.mark.parametrize("bins", [0, -1, 2.5])
def test_bins_that_cannot_be_made_are_refused(bins: float):
    with pytest.raises(BadValue, match=f"`bins` is `{bins}`"):
        measure_reliability([0.5], [1], bins)


def test_reliability_without_forecasts_has_no_bins():
    assert measure_reliability([], []) == ()


# --- pictures -------------------------------------------------------------------------------------


def test_a_picture_of_several_models_is_a_png(tmp_path):
    pytest.importorskip("matplotlib")
    curves = {
        "chain": measure_reliability([0.1, 0.9], [0, 1]),
        "new": measure_reliability([], []),
        "sure": measure_reliability([1, 1], [1, 1]),
    }
    made = draw(tmp_path / "new" / "plot.png", curves, title="five warm days")
    assert made.read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_cannot_be_written_is_told(tmp_path):
    pytest.importorskip("matplotlib")
    with pytest.raises(FileError, match="cannot write the picture"):
        draw(tmp_path, {"chain": measure_reliability([0.1], [0])})


def test_a_picture_of_nothing_is_refused(tmp_path):
    with pytest.raises(BadValue, match="nothing to draw"):
        draw(tmp_path / "plot.png", {})


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"tidings\[bench\]"):
        draw(str(tmp_path / "plot.png"), {"chain": measure_reliability([0.1], [0])})


@pytest.mark.parametrize("name", ["scores", "reliability"])
def test_examples_in_the_docstrings_are_true(name: str):
    failed, tried = doctest.testmod(import_module(f"tidings.forecast.scoring.{name}"))
    assert (failed, tried > 0) == (0, True)


def test_scores_are_values():
    scores = score([0.9, 0.2], [1, 0])
    assert {scores, score([0.9, 0.2], [1, 0])} == {scores}
    assert not hasattr(scores, "__dict__")
