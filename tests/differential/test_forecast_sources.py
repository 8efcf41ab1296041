"""Forecasts of simulated sources of known law: as often right as they say, and as good as the law itself."""

from __future__ import annotations

import numpy as np
import pytest
from forecast_worlds import Chain, SymbolSource, build_pattern, compute_truth, list_outcomes, train_model, watch_pattern

import tidings as td

INDEPENDENT = SymbolSource({(): (0.4, 0.25, 0.2, 0.15)})
FIRST = SymbolSource({(0,): (0.1, 0.8, 0.1), (1,): (0.3, 0.1, 0.6), (2,): (0.6, 0.2, 0.2)})
SECOND = SymbolSource(
    {
        (place, two): ((0.1, 0.7, 0.2), (0.5, 0.25, 0.25), (0.2, 0.1, 0.7))[(place + 2 * two) % 3]
        for place in range(3)
        for two in range(3)
    }
)

CASES = [
    pytest.param(INDEPENDENT, "a ; b , c", "overlap", 5, id="independent"),
    pytest.param(INDEPENDENT, "(a and b) ; not d ; c", "restart", 6, id="independent-and"),
    pytest.param(FIRST, "a , b ; c", "restart", 4, id="first order"),
    pytest.param(FIRST, "b , b or c , c , a", "overlap", 5, id="first order-or"),
    pytest.param(SECOND, "a , b , c", "restart", 4, id="second order"),
    pytest.param(SECOND, "a ; c , c", "overlap", 3, id="second order-overlap"),
]

TRAINED, JUDGED = 40_000, 40_000


def to_arrow(word):
    import pyarrow as pa

    return pa.table({"kind": word, "id": range(len(word))})


@pytest.fixture(scope="module")
def histories():
    return {id(source): (source.word(TRAINED, 1), source.word(JUDGED, 2)) for source in (INDEPENDENT, FIRST, SECOND)}


def judge_forecasts(source, body, mode, count, histories, **settings):
    """Return forecasts at every event of a fresh word, what came of them, and what the law says."""
    pattern, (old, new) = build_pattern(body), histories[id(source)]
    model = train_model(pattern, to_arrow(old), mode, **settings)
    watch = watch_pattern(pattern, mode, model=model, horizon=count, tell="every")
    detections = watch.detect_many(to_arrow(new))
    p = detections.forecasts.probabilities
    y = list_outcomes([max(detection.events) for detection in detections], len(new), count)
    exact = compute_truth(source, Chain(pattern, mode, new[:50]), new, count)
    whole = slice(source.order, len(new) - count)
    return p[whole], y[whole].astype(float), exact[whole]


@pytest.mark.parametrize(("source", "body", "mode", "count"), CASES)
def test_forecasts_come_true_as_often_as_they_say(source, body, mode, count, histories):
    """Every n-th event alone, so that no two outcomes hang on one match; bins within four standard errors."""
    p, y, _ = judge_forecasts(source, body, mode, count, histories)
    p, y = p[:: 4 * count], y[:: 4 * count]
    bins = np.minimum((p * 10).astype(int), 9)
    for number in np.unique(bins):
        mine = bins == number
        error = np.sqrt((p[mine] * (1 - p[mine])).sum()) / mine.sum()
        assert abs(y[mine].mean() - p[mine].mean()) <= 4 * error + 1e-9, (number, mine.sum())


@pytest.mark.parametrize("estimator", ["both", "chain", "direct"])
@pytest.mark.parametrize(("source", "body", "mode", "count"), CASES)
def test_with_enough_context_the_score_is_that_of_the_true_law(source, body, mode, count, estimator, histories):
    p, y, exact = judge_forecasts(source, body, mode, count, histories, estimator=estimator)
    brier, least = ((p - y) ** 2).mean(), ((exact - y) ** 2).mean()
    assert brier == pytest.approx(least, rel=0.02)


@pytest.mark.parametrize(("source", "body", "mode", "count"), CASES)
def test_the_true_law_is_what_happens(source, body, mode, count, histories):
    """The twin itself: exact probabilities come true as often as they say."""
    _, y, exact = judge_forecasts(source, body, mode, count, histories, estimator="chain", context=0)
    y, exact = y[:: 4 * count], exact[:: 4 * count]
    error = np.sqrt((exact * (1 - exact)).sum()) / len(y)
    assert abs(y.mean() - exact.mean()) <= 4 * error


def test_without_the_context_a_source_with_memory_is_told_worse(histories):
    case = (SECOND, "a , b , c", "restart", 4, histories)
    p, y, exact = judge_forecasts(*case, context=0)
    near, *_ = judge_forecasts(*case, context=2)
    assert ((near - y) ** 2).mean() < 0.98 * ((p - y) ** 2).mean()
    assert ((near - exact) ** 2).mean() < 0.1 * ((p - exact) ** 2).mean()


def test_probabilities_converge_to_the_law(histories):
    _, _, exact = judge_forecasts(FIRST, "a , b ; c", "restart", 4, histories)
    p, *_ = judge_forecasts(FIRST, "a , b ; c", "restart", 4, histories)
    assert np.abs(p - exact).mean() < 0.01
    assert np.abs(p - exact).max() < 0.15


def test_what_is_printed_in_the_paper_is_no_probability(histories):
    p, y, exact = judge_forecasts(INDEPENDENT, "a or b", "overlap", 5, histories, estimator="printed")
    assert p.max() > 1
    assert ((np.clip(p, 0, 1) - y) ** 2).mean() >= ((exact - y) ** 2).mean()


def test_a_keys_own_share_of_the_stream_thins_what_is_expected(histories):
    """Keys of very different shares; a horizon in events of the whole stream comes true as often as it says."""
    rng = np.random.default_rng(3)
    shares = [0.5, 0.3, 0.15, 0.05]
    old, new = histories[id(INDEPENDENT)]
    keys = rng.choice(4, (2, len(old)), p=shares)
    pattern = build_pattern("a ; b , c", key=" and key = $x")
    model = td.train(watch_pattern(pattern), to_arrow(old).append_column("key", [keys[0]]))
    watch = watch_pattern(pattern, model=model, horizon=20, tell="every")
    detections = watch.detect_many(to_arrow(new).append_column("key", [keys[1]]))
    p, hits = detections.forecasts.probabilities, np.zeros((4, len(new)))
    for detection in detections:
        hits[detection.bindings["x"], max(detection.events)] = 1
    ahead = np.concatenate([np.zeros((4, 1)), np.cumsum(hits, axis=1)], axis=1)
    for key, own in enumerate(shares):
        mine = np.flatnonzero(keys[1] == key)
        mine = mine[(mine > 2000) & (mine < len(new) - 21)][:: max(1, int(80 * own))]
        y = ahead[key, mine + 21] - ahead[key, mine + 1] > 0
        error = np.sqrt((p[mine] * (1 - p[mine])).sum()) / len(mine)
        assert abs(y.mean() - p[mine].mean()) <= 4 * error
