"""The study of forecasts at tiny sizes: temperatures are cleaned and counted, chains and scores are what they say."""

import math
from datetime import date
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidings as td
from benchmarks.papers.p_topss import chains, figure_10, figure_11, folds, forecasts_logins, heat, ours, predicting
from benchmarks.papers.p_topss.heat import CityTemperatures
from benchmarks.papers.p_topss.logins import Login
from tidings.model.patterns import Mode

MODES = pytest.mark.parametrize("mode", [Mode.OVERLAP, Mode.RESTART])
temperatures = st.lists(st.sampled_from([35.0, 31.0, 25.0, 15.0, 5.0, math.nan]), min_size=1, max_size=60)
hot_often = st.lists(st.sampled_from([35.0, 35.0, 35.0, 35.0, 30.0, math.nan]), min_size=1, max_size=60)


def _build_city(celsius, code="A", group="US"):
    return CityTemperatures(code, group, np.datetime64("2000-01-01"), np.array(celsius, np.float64))


# Cleaning --------------------------------------------------------------------------------------


def _build_rows(*rows):
    codes, days, degrees = zip(*rows, strict=True)
    return pa.table(
        {
            "code": pa.array(codes).dictionary_encode(),
            "date": pa.array(days, pa.date32()),
            "avg_f": pa.array(degrees, pa.float32()),
        }
    )


def test_fahrenheit_becomes_celsius_and_thirty_degrees_are_not_hot():
    (city,), _ = heat.clean_rows(_build_rows(("A", date(2000, 1, 1), 86.0), ("A", date(2000, 1, 2), 86.1)), {"A": "US"})
    assert city.celsius[0] == 30.0
    assert city.hot.tolist() == [False, True]


def test_a_day_without_a_reading_and_a_day_that_no_row_has_are_events_that_are_not_hot():
    rows = _build_rows(("A", date(2000, 1, 1), 90.0), ("A", date(2000, 1, 2), -99.0), ("A", date(2000, 1, 4), 90.0))
    (city,), cleaning = heat.clean_rows(rows, {})
    assert city.hot.tolist() == [True, False, False, True]
    assert (cleaning.missing, cleaning.absent, cleaning.days) == (1, 1, 4)
    assert city.table()["temp"].null_count == 2


def test_rows_without_a_date_and_of_impossible_years_are_dropped_and_counted():
    rows = _build_rows(("A", None, 90.0), ("A", date(200, 12, 1), 90.0), ("A", date(2000, 1, 1), 90.0))
    (city,), cleaning = heat.clean_rows(rows, {})
    assert (cleaning.rows, cleaning.no_date, cleaning.impossible_year, len(city.celsius)) == (3, 1, 1, 1)


def test_of_a_day_that_comes_twice_the_first_reading_is_kept_and_the_others_are_counted_by_what_they_are():
    day = date(2000, 1, 1)
    rows = _build_rows(
        *(("A", day, reading) for reading in (-99.0, 90.0, 90.0, 50.0)), ("B", day, -99.0), ("B", day, -99.0)
    )
    (first, second), cleaning = heat.clean_rows(rows, {"A": "US"})
    assert (first.group, second.group) == ("US", "INTL")
    assert first.hot.tolist() == [True]
    assert np.isnan(second.celsius).tolist() == [True]
    assert (cleaning.repeated, cleaning.repeated_missing, cleaning.repeated_other) == (2, 1, 1)


def test_cities_come_by_code_and_their_days_in_order():
    rows = _build_rows(("B", date(2000, 1, 2), 50.0), ("A", date(2000, 1, 2), 32.0), ("B", date(2000, 1, 1), 90.0))
    cities, _ = heat.clean_rows(rows, {})
    assert [(city.code, city.hot.tolist()) for city in cities] == [("A", [False]), ("B", [True, False])]


def test_without_the_archive_it_is_said_what_to_set(monkeypatch, tmp_path):
    monkeypatch.setenv("TIDINGS_DATA", str(tmp_path))
    assert not heat.is_present()
    with pytest.raises(td.TidingsError, match="TIDINGS_DATA"):
        heat.read()


@pytest.mark.skipif(not heat.is_present(), reason="needs the temperatures (TIDINGS_DATA)")
def test_the_archive_has_the_hot_days_and_matches_that_are_known_of_it():
    cities, cleaning = heat.read()
    assert heat.count_hot(cities) == heat.Hot(days=76_586, runs=3_111, overlap=39_450, restart=9_454, cities=134)
    assert [sum(city.group == group for city in cities) for group in ("US", "INTL")] == [157, 167]
    assert cleaning.no_date + cleaning.impossible_year == 214
    dropped = cleaning.repeated + cleaning.repeated_missing + cleaning.repeated_other
    assert cleaning.days == cleaning.rows - 214 - dropped + cleaning.absent


@MODES
@given(hot_often)
def test_runs_of_hot_days_are_counted_as_the_detector_finds_them(mode, celsius):
    city = _build_city(celsius)
    watch = td.Detector()
    watch.add("heat", heat.TEXT, mode=mode)
    assert len(watch.detect_many(city.table())) == getattr(heat.count_hot([city]), mode)


# Chains ----------------------------------------------------------------------------------------


def test_the_generated_model_has_six_states_and_the_hand_made_one_1365():
    assert len(chains.generate_space(Mode.RESTART)) == len(chains.generate_space(Mode.OVERLAP)) == 6
    assert len(chains.build_hand_made(Mode.RESTART)) == 1 + 4 + 16 + 64 + 256 + 1024


@MODES
@given(temperatures | hot_often)
def test_both_models_are_in_their_final_state_where_the_pattern_is_reported(mode, celsius):
    city = _build_city(celsius)
    for space, symbols in (
        (chains.generate_space(mode), folds.find_hot_days(city)),
        (HAND_MADE[mode], chains.find_bands(city.celsius)),
    ):
        final = space.final[space.walk(symbols)]
        run = heat.count_lengths(city.hot)
        right = run >= 5 if mode is Mode.OVERLAP else (run > 0) & (run % 5 == 0)
        assert final.tolist() == right.tolist()


HAND_MADE = {mode: chains.build_hand_made(mode) for mode in (Mode.OVERLAP, Mode.RESTART)}


@MODES
@given(hot_often)
def test_the_sum_of_powers_is_that_of_the_whole_matrix(mode, celsius):
    space, symbols = chains.generate_space(mode), folds.find_hot_days(_build_city(celsius))
    moves = space.count_moves(symbols, space.walk(symbols))
    matrix = chains.to_dense(space, moves)
    powers = np.cumsum([np.linalg.matrix_power(matrix, n) @ space.final for n in range(1, 7)], axis=0)
    assert np.allclose(chains.compute_printed(space, moves, 6), powers)


@MODES
@given(st.floats(0.05, 0.95))
def test_first_passage_is_the_share_of_all_futures_that_hold_a_match(mode, hot):
    space = chains.generate_space(mode)
    moves = np.rint(np.tile([1 - hot, hot], (6, 1)) * 1e6).astype(np.int64)
    chance = moves[0, 1] / moves[0].sum()
    for state in range(6):
        whole = sum(
            _compute_likelihood(word, chance) for word in product((0, 1), repeat=7) if _matches(space, state, word)
        )
        assert chains.compute_first_passage(space, moves, 7)[-1, state] == pytest.approx(whole, abs=1e-9)


def _compute_likelihood(word, chance):
    return math.prod(chance if symbol else 1 - chance for symbol in word)


def _matches(space, state, word):
    for symbol in word:
        state = space.after[state, symbol]
        if space.final[state]:
            return True
    return False


def test_a_state_that_was_never_seen_is_given_no_chance_and_the_printed_sum_may_exceed_one():
    space = chains.generate_space(Mode.OVERLAP)
    symbols = np.ones(100, np.int64)
    moves = space.count_moves(symbols, space.walk(symbols))
    assert chains.compute_printed(space, moves, 10)[-1].max() > 5
    assert chains.compute_first_passage(space, moves, 10).max() == 1.0
    assert chains.compute_first_passage(space, np.zeros((6, 2), np.int64), 10).max() == 0.0


# Scores ----------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=40), st.data())
def test_alarms_and_squared_errors_by_state_are_those_of_each_event(events, data):
    states, matched = (np.array(column) for column in zip(*events, strict=True))
    p = np.array(data.draw(st.lists(st.floats(0, 1.5), min_size=30, max_size=30))).reshape(10, 3)
    outcomes = predicting.count_outcomes(states, matched, 3)
    alarms, errors = predicting.count_alarms(p, outcomes), predicting.sum_square_errors(p, outcomes)
    for row, n in enumerate(predicting.LOOKAHEADS):
        ripe = range(len(states) - n)
        truth = [bool(matched[at + 1 : at + n + 1].any()) for at in ripe]
        each = [p[row, states[at]] for at in ripe]
        assert outcomes.hits[row].sum() == sum(truth)
        for place in (0, 7, 19):
            right = td.score(each, truth, predicting.THRESHOLDS[place])
            assert (alarms.true[row, place], alarms.false[row, place]) == (right.tp, right.fp)
        if truth:
            assert errors[row] / len(truth) == pytest.approx(right.brier)


def test_precision_without_an_alarm_is_not_a_number():
    outcomes = predicting.count_outcomes(np.zeros(20, np.int64), np.ones(20, np.bool_), 1)
    none = predicting.count_alarms(np.zeros((10, 1)), outcomes)
    assert np.isnan(none.precision).all()
    assert none.all.sum() == 0


def test_every_city_is_in_one_fold_of_its_group():
    cities = [_build_city([31.0], str(number), "US" if number % 3 else "INTL") for number in range(31)]
    parts = folds.deal_cities(cities, seed=1)
    assert sorted(city.code for some in parts.values() for city in some) == sorted(city.code for city in cities)
    assert all(city.group == group for (group, _), some in parts.items() for city in some)
    assert len(parts) == 10


# Ours, and the figures -------------------------------------------------------------------------


def _draw_cities(count, days=300):
    rng = np.random.default_rng(1)
    return [
        _build_city(
            np.where(
                rng.random(days) < 0.02, np.nan, 26 + 8 * np.sin(np.arange(days) / 9 + number) + rng.normal(size=days)
            ),
            str(number),
            "US" if number % 2 else "INTL",
        )
        for number in range(count)
    ]


@MODES
def test_the_forecast_of_a_cell_is_what_the_detector_tells_at_every_event_there(mode):
    cities = _draw_cities(4)
    events = ours.stream_of(cities)
    model = ours.train_model([ours.parse_pattern(ours.HEAT)], events, mode)
    watch = td.Detector(model=model)
    watch.add("heat", ours.HEAT, mode=mode, horizon="4 own events", tell="every")
    forecasts = watch.detect_many(events).forecasts.to_arrow()
    space, p = ours.build_cells(model, "0"), ours.compute_chances(model, "0", 4)[-1]
    for city in cities:
        probabilities = forecasts.filter(pc.equal(forecasts["key"], city.code))["probability"].to_numpy()
        assert np.allclose(probabilities, p[space.walk(folds.find_hot_days(city))])


def test_our_printed_chain_and_the_library_agree():
    city = _draw_cities(1, 2_000)[0]
    for mode in folds.MODES:
        model = ours.train_model([ours.parse_pattern(heat.TEXT)], city.table(), mode, context=0, estimator="printed")
        space = chains.generate_space(mode)
        moves = space.count_moves(folds.find_hot_days(city), space.walk(folds.find_hot_days(city)))
        for mine, other in ((chains.compute_printed, "printed"), (chains.compute_first_passage, "chain")):
            right = model.using(estimator=other, smoothing=0.0)
            assert np.allclose(mine(space, moves, 10), ours.compute_chances(right, "0", 10))


def test_a_tiny_figure_11_has_every_fact_and_without_the_archive_none_is_a_number(monkeypatch):
    monkeypatch.setattr(heat, "is_present", lambda: True)
    monkeypatch.setattr(heat, "read", lambda: (_draw_cities(24), heat.Cleaning(*range(9))))
    study = figure_11.measure_figure_11(seed=1, say=lambda _: None)
    assert set(study.facts) == set(figure_11.FACTS)
    assert all(math.isfinite(value) for value in study.facts.values())
    assert study.facts["heat_overlap_skill_of_base"] > 0
    assert all(line.points for chart in study.charts for line in chart.lines)
    none = figure_11.measure_figure_11(seed=1, say=lambda _: None, real=False)
    assert set(none.facts) == set(figure_11.FACTS)
    assert all(math.isnan(value) for value in none.facts.values())


def test_a_tiny_figure_10_has_every_fact():
    study = figure_10.measure_figure_10(3, seed=1, say=lambda _: None)
    assert set(study.facts) == set(figure_10.FACTS)
    assert len({chart.key for chart in study.charts}) == len(study.charts) == 14


# Logins ----------------------------------------------------------------------------------------

logs = st.lists(st.tuples(st.integers(0, 200), st.sampled_from("ab"), st.booleans()), min_size=1, max_size=40)


@given(logs, st.sampled_from(["3 own events", "5 events", "1 min"]))
def test_what_lies_ahead_of_a_login_is_what_a_loop_finds(log, horizon):
    log = sorted(log, key=lambda login: login[0])
    login_list = [Login(at, "denied", "root", ip) for at, ip, _ in log]
    matches = [place for place, (_, _, matched) in enumerate(log) if matched]
    is_known, came = forecasts_logins.Ahead(login_list).find_outcomes(matches, horizon)
    for place, login in enumerate(login_list):
        own = [later for later in range(place + 1, len(login_list)) if login_list[later].ip == login.ip]
        if "own" in horizon:
            whole, within = len(own) >= 3, own[:3]
        elif "min" in horizon:
            whole, within = (
                login_list[-1].at - login.at >= 60,
                [later for later in own if login_list[later].at - login.at <= 60],
            )
        else:
            whole, within = len(login_list) - 1 - place >= 5, [later for later in own if later - place <= 5]
        assert is_known[place] == whole
        assert came[place] == any(later in matches for later in within)


def test_logins_are_forecast_before_they_are_learned_and_told(monkeypatch):
    login_list = [Login(7 * number, "denied", "root", f"10.0.0.{number // 60 % 7}") for number in range(1_200)]
    monkeypatch.setattr(forecasts_logins, "read", lambda _: login_list)
    monkeypatch.setattr(forecasts_logins, "HORIZONS", ("10 own events",))
    lines = forecasts_logins.format_report(("log",))
    assert len(lines) == 4
    assert "it came 0 times" in lines[0]
    assert "skill" in lines[-1]
