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
from tidings.forecast.scoring.scores import Warnings, compare_skill, format_scores, score

# Coarse steps, so that equal forecasts and forecasts on a threshold or an edge come up; beyond 1, as printed formulas.
STEPS = st.one_of(st.integers(-2, 14).map(lambda tenths: tenths / 10), st.floats(0, 1))
FORECASTS = st.lists(st.tuples(STEPS, st.booleans()), max_size=40)
THRESHOLDS = st.integers(0, 10).map(lambda tenths: tenths / 10)
UNDEFINED = pytest.approx(math.nan, nan_ok=True)


def same(one: float, two: float) -> bool:
    return one == pytest.approx(two, rel=1e-9, abs=1e-12, nan_ok=True)


def clipped(value: float) -> float:
    return min(1.0, max(0.0, value))


def parts(forecasts: list[tuple[float, bool]]) -> tuple[list[float], list[bool]]:
    return [p for p, _ in forecasts], [y for _, y in forecasts]


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def brier_by_loop(p: list[float], y: list[bool]) -> float:
    return mean([(clipped(one) - other) ** 2 for one, other in zip(p, y, strict=True)])


# --- scores against their definitions -------------------------------------------------------------


@given(FORECASTS, THRESHOLDS)
def test_counts_are_those_of_a_loop(forecasts: list[tuple[float, bool]], threshold: float):
    told = score(*parts(forecasts), threshold)
    alarms = [(clipped(p) > threshold, y) for p, y in forecasts]
    assert (told.tp, told.fp) == (alarms.count((True, True)), alarms.count((True, False)))
    assert (told.fn, told.tn) == (alarms.count((False, True)), alarms.count((False, False)))
    assert told.n == len(forecasts)
    assert told.clipped == sum(not 0 <= p <= 1 for p, _ in forecasts)


@given(FORECASTS, THRESHOLDS)
def test_ratios_follow_from_the_counts(forecasts: list[tuple[float, bool]], threshold: float):
    told = score(*parts(forecasts), threshold)
    if told.tp:
        assert same(told.f1, 2 / (1 / told.precision + 1 / told.recall))
    elif told.n:
        assert told.f1 == 0
    if told.n and not any(math.isnan(one) for one in (told.precision, told.recall)):
        assert 0 <= told.precision <= 1
        assert 0 <= told.recall <= 1
    assert math.isnan(told.precision) == (told.tp + told.fp == 0)
    assert math.isnan(told.recall) == (told.tp + told.fn == 0)


@given(FORECASTS, THRESHOLDS)
def test_mcc_is_the_correlation_of_alarms_and_outcomes(forecasts: list[tuple[float, bool]], threshold: float):
    told = score(*parts(forecasts), threshold)
    alarms, happened = [clipped(p) > threshold for p, _ in forecasts], [y for _, y in forecasts]
    if len(set(alarms)) == 2 and len(set(happened)) == 2:
        assert same(told.mcc, float(np.corrcoef(alarms, happened)[0, 1]))
    elif forecasts:
        assert told.mcc == 0


@given(FORECASTS)
def test_auc_is_the_share_of_pairs_in_order(forecasts: list[tuple[float, bool]]):
    ones = [clipped(p) for p, y in forecasts if y]
    noughts = [clipped(p) for p, y in forecasts if not y]
    wins = [(one > other) + (one == other) / 2 for one in ones for other in noughts]
    assert same(score(*parts(forecasts)).auc, mean(wins))


@given(FORECASTS)
def test_brier_skill_and_log_loss_are_those_of_a_loop(forecasts: list[tuple[float, bool]]):
    p, y = parts(forecasts)
    told, rate = score(p, y), mean([float(one) for one in y])
    losses = [-math.log(max(1e-15, clipped(one) if other else 1 - clipped(one))) for one, other in forecasts]
    assert same(told.base_rate, rate)
    assert same(told.brier, brier_by_loop(p, y))
    assert same(told.log_loss, mean(losses))
    base = brier_by_loop([rate] * len(y), y)
    assert same(told.skill, 1 - told.brier / base if len(set(y)) == 2 else math.nan)


@given(FORECASTS.filter(bool), st.randoms(use_true_random=False))
def test_the_order_of_forecasts_does_not_matter(forecasts: list[tuple[float, bool]], random: object):
    shuffled = list(forecasts)
    random.shuffle(shuffled)
    one, two = score(*parts(forecasts)).to_dict(), score(*parts(shuffled)).to_dict()
    assert one == pytest.approx(two)


@given(FORECASTS.filter(bool), st.data())
def test_skill_against_compares_two_forecasts(forecasts: list[tuple[float, bool]], data: st.DataObject):
    p, y = parts(forecasts)
    q = data.draw(st.lists(STEPS, min_size=len(p), max_size=len(p)))
    base = brier_by_loop(q, y)
    assert same(compare_skill(p, q, y), 1 - brier_by_loop(p, y) / base if base else math.nan)


# --- worked by hand -------------------------------------------------------------------------------


def test_scores_of_a_small_example_are_those_worked_by_hand():
    told = score([0.8, 0.6, 0.4, 0.2, 0.2], [1, 0, 1, 0, 0], threshold=0.5)
    assert (told.tp, told.fp, told.fn, told.tn) == (1, 1, 1, 2)
    assert (told.precision, told.recall, told.f1) == (0.5, 0.5, 0.5)
    assert told.mcc == pytest.approx((1 * 2 - 1 * 1) / 6)
    assert told.brier == pytest.approx((0.04 + 0.36 + 0.36 + 0.04 + 0.04) / 5)
    assert told.skill == pytest.approx(1 - 0.168 / 0.24)
    assert told.auc == pytest.approx(5 / 6)
    assert told.log_loss == pytest.approx(-math.log(0.8 * 0.4 * 0.4 * 0.8 * 0.8) / 5)


def test_a_forecast_equal_to_the_threshold_is_no_alarm():
    assert score([0.6], [1], 0.6).fn == 1
    assert score([0.0], [0], 0.0).tn == 1
    assert score([1.3], [1], 1.0).fn == 1


def test_probabilities_above_one_count_as_one():
    told = score([3.28, 1.03, -0.5], [1, 0, 0])
    assert told.clipped == 2 + 1
    assert told.brier == pytest.approx(1 / 3)
    assert told.auc == 0.75  # clipped to the same number: half a pair
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
    told = score([], [])
    assert (told.n, told.tp, told.fp, told.fn, told.tn, told.clipped) == (0, 0, 0, 0, 0, 0)
    for name in ("base_rate", "precision", "recall", "f1", "mcc", "brier", "skill", "log_loss", "auc"):
        assert math.isnan(getattr(told, name)), name
    assert math.isnan(compare_skill([], [], []))


def test_outcomes_of_one_kind_leave_skill_and_auc_undefined():
    none, all_of_them = score([0.1, 0.7], [0, 0]), score([0.1, 0.7], [1, 1])
    assert [none.skill, none.auc, none.recall] == [UNDEFINED] * 3
    assert [all_of_them.skill, all_of_them.auc] == [UNDEFINED] * 2
    assert (none.f1, none.mcc, all_of_them.mcc) == (0, 0, 0)
    assert none.brier == pytest.approx(0.25)


def test_a_model_that_never_fires_has_no_precision_and_an_f1_of_nought():
    told = score([0.1, 0.2], [0, 1])
    assert math.isnan(told.precision)
    assert (told.recall, told.f1, told.mcc) == (0, 0, 0)


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
    told = score([0.1, 0.2], [0, 1])
    lines = str(told).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert [line.split() for line in lines][8] == ["precision", "-"]
    assert json.loads(json.dumps(told.to_dict(), allow_nan=False))["precision"] is None
    both = format_scores({"chain": told, "printed": score([1.4, 0.2], [0, 1])})
    assert both.splitlines()[0].split() == ["chain", "printed"]
    assert both.splitlines()[-1].split() == ["clipped", "0", "1"]


@pytest.mark.parametrize(
    ("p", "y", "threshold", "said"),
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
def test_bad_input_is_refused_with_the_way_out(p: object, y: object, threshold: float, said: str):
    with pytest.raises(BadValue) as refused:
        score(p, y, threshold)
    assert said in str(refused.value)
    assert isinstance(refused.value, TidingsError)


def test_skill_against_names_the_forecast_that_does_not_fit():
    with pytest.raises(BadValue, match="`q` has 1 values"):
        compare_skill([0.5, 0.5], [0.5], [1, 0])
    with pytest.raises(BadValue, match="`q` is not a row of numbers"):
        compare_skill([0.5], "0.5", [1])


# --- warnings -------------------------------------------------------------------------------------


def test_leads_and_false_alarms_of_a_small_stream_are_those_worked_by_hand():
    told = Warnings((2, 3, None), alarms=3, false=1, undecided=1, judged=7)
    assert (told.matches, told.warned_count, told.lead) == (3, 2, 2.5)
    assert told.share == pytest.approx(2 / 3)
    assert told.false_per_1000 == pytest.approx(1000 / 7)


def test_warnings_of_two_streams_add_up():
    one = Warnings((1,), alarms=1, false=0, undecided=0, judged=2)
    two = Warnings((), alarms=1, false=1, undecided=0, judged=2)
    assert one + two == Warnings((1,), alarms=2, false=1, undecided=0, judged=4)


def test_warnings_without_matches_or_events_are_not_defined():
    told = Warnings((), 0, 0, 0, 0)
    assert [told.share, told.lead, told.false_per_1000] == [UNDEFINED] * 3


# --- reliability ----------------------------------------------------------------------------------


@given(FORECASTS, st.integers(1, 12))
def test_bins_of_equal_width_are_those_of_a_loop(forecasts: list[tuple[float, bool]], bins: int):
    told = measure_reliability(*parts(forecasts), bins)
    limits = [at / bins for at in range(bins + 1)]
    expected = []
    for at in range(bins):
        last = at == bins - 1
        held = [(q, y) for p, y in forecasts if limits[at] <= (q := clipped(p)) and (last or q < limits[at + 1])]
        if held:
            expected.append((limits[at], len(held), mean([q for q, _ in held]), mean([float(y) for _, y in held])))
    assert len(told.bins) == len(expected)
    for one, (low, count, said, was) in zip(told.bins, expected, strict=True):
        assert (one.low, one.count) == (low, count)
        assert same(one.mean, said)
        assert same(one.observed, was)


@given(FORECASTS, st.integers(1, 12), st.sampled_from(["width", "count"]))
def test_the_parts_make_up_the_brier_score(forecasts: list[tuple[float, bool]], bins: int, by: str):
    p, y = parts(forecasts)
    told = measure_reliability(p, y, bins, by=by)
    assert sum(one.count for one in told.bins) == told.n == len(p)
    assert same(told.brier, score(p, y).brier)
    if p:
        said = [mean([one.mean for one in told.bins if one.low <= clipped(q)][-1:]) for q in p]
        inside = [(clipped(q) - s) * (clipped(q) + s - 2 * o) for q, s, o in zip(p, said, y, strict=True)]
        assert same(told.remainder, mean(inside))  # what bins hide: 0 where all forecasts of a bin are equal
        assert told.reliability >= 0
        assert told.resolution <= told.uncertainty + 1e-12


@given(FORECASTS, st.integers(1, 12))
def test_bins_of_equal_count_keep_equal_forecasts_together(forecasts: list[tuple[float, bool]], bins: int):
    p, y = parts(forecasts)
    told = measure_reliability(p, y, bins, by="count")
    assert len(told.bins) <= bins
    assert all(one.high <= two.low for one, two in zip(told.bins, told.bins[1:], strict=False))
    for one in told.bins:
        held = [clipped(q) for q in p if one.low <= clipped(q) and (clipped(q) < one.high or one is told.bins[-1])]
        assert one.count == len(held)
        assert one.low <= one.mean + 1e-12
        assert one.mean <= one.high + 1e-12


def test_bins_of_equal_count_share_different_forecasts_evenly():
    p = np.linspace(0, 0.2, 100) ** 2
    assert [one.count for one in measure_reliability(p, p > 1, 4, by="count").bins] == [25, 25, 25, 25]


def off(one) -> float:
    """Return how many standard errors an observed share lies from the diagonal; above it is positive."""
    gap = one.observed - one.mean
    return gap / one.error if one.error else math.copysign(math.inf, gap) if gap else 0.0


def test_reliability_of_a_small_example_is_that_worked_by_hand():
    told = measure_reliability([0.2, 0.2, 0.2, 0.2, 0.8, 0.8], [0, 0, 0, 1, 1, 1], bins=5)
    low, high = told.bins
    assert (low.count, low.mean, low.observed, low.low) == (4, pytest.approx(0.2), 0.25, 0.2)
    assert (high.count, high.mean, high.observed, high.high) == (2, pytest.approx(0.8), 1.0, 1.0)
    assert low.error == pytest.approx(math.sqrt(0.2 * 0.8 / 4))
    assert off(low) == pytest.approx(0.05 / low.error)
    assert told.reliability == pytest.approx((4 * 0.05**2 + 2 * 0.2**2) / 6)
    assert told.resolution == pytest.approx((4 * 0.25**2 + 2 * 0.5**2) / 6)
    assert told.uncertainty == 0.25
    assert told.remainder == pytest.approx(0, abs=1e-15)
    assert told.gap == pytest.approx((4 * 0.05 + 2 * 0.2) / 6)


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


def test_a_source_of_known_law_lies_on_the_diagonal_within_its_error():
    rng = np.random.default_rng(8)
    p = rng.random(20_000)
    told = measure_reliability(p, rng.random(20_000) < p)
    assert max(abs(off(one)) for one in told.bins) < 4
    assert max(abs(off(one)) for one in measure_reliability(np.sqrt(p), rng.random(20_000) < p).bins) > 10


def test_sure_forecasts_have_no_error_to_measure_by():
    right, wrong = measure_reliability([0.0], [0]).bins[0], measure_reliability([0.0], [1]).bins[0]
    assert (off(right), off(wrong)) == (0, math.inf)


def test_reliability_without_forecasts_has_no_bins():
    for by in ("width", "count"):
        told = measure_reliability([], [], by=by)
        assert (told.bins, told.n) == ((), 0)
        assert [told.brier, told.reliability, told.remainder, told.gap] == [UNDEFINED] * 4
        assert json.loads(json.dumps(told.to_dict(), allow_nan=False))["gap"] is None


def test_reliability_reads_as_a_table():
    lines = str(measure_reliability([0.1, 0.9], [0, 1])).splitlines()
    assert lines[0].split() == ["bin", "forecasts", "said", "was", "95", "%"]
    assert lines[1].split()[:4] == ["0.100-0.200", "1", "0.100", "0.000"]


@pytest.mark.parametrize(("asked", "said"), [({"bins": 0}, "`bins` is `0`"), ({"by": "depth"}, "`width` or `count`")])
def test_bins_that_cannot_be_made_are_refused(asked: dict[str, object], said: str):
    with pytest.raises(BadValue) as refused:
        measure_reliability([0.5], [1], **asked)
    assert said in str(refused.value)


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
    told = score([0.9, 0.2], [1, 0])
    assert {told, score([0.9, 0.2], [1, 0])} == {told}
    assert not hasattr(told, "__dict__")
