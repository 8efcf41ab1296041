"""More matches than one call writes down: the batch comes in pieces, and nothing is lost."""

import numpy as np
import pyarrow as pa
import pytest

import tidings as td
from tidings.engine.segment import TooManyPairs
from tidings.kernels.match.exact_check import MOST

EVENTS = 20_000


@pytest.fixture(scope="module")
def wide():
    """Return a matcher of which every event matches everything."""
    matcher = td.Matcher()
    matcher.add_many(pa.table({"id": pa.array(range(2_000)), "x_from": pa.array([0] * 2_000)}))
    matcher.add(2_000, "x = 7")
    return matcher


def test_a_crowded_batch_comes_in_pieces_that_hold_all_of_it(wide):
    table = pa.table({"x": np.arange(EVENTS) % 10})
    first, total, sevens = 0, 0, 0
    pieces = 0
    for piece in wide.match_in_pieces(table):
        assert piece.first == first
        assert len(piece.matches) <= MOST
        counts = np.bincount(piece.matches.event_index, minlength=piece.matches.events)
        expected = np.where((np.arange(first, first + piece.matches.events) % 10) == 7, 2_001, 2_000)
        assert np.array_equal(counts, expected)
        sevens += int((np.asarray(piece.matches.id_array()) == 2_000).sum())
        first, total, pieces = first + piece.matches.events, total + len(piece.matches), pieces + 1
    assert (first, total, sevens) == (EVENTS, 2_000 * EVENTS + EVENTS // 10, EVENTS // 10)
    assert pieces > 1


def test_match_many_joins_the_pieces_and_their_dead_letters(wide):
    rows = [*({"x": "1"} for _ in range(EVENTS - 1)), "no mapping"]
    matches = wide.match_many(rows, on_error="collect")
    assert matches.events == EVENTS
    assert len(matches) == 2_000 * (EVENTS - 1)
    assert [letter.index for letter in matches.dead_letters] == [EVENTS - 1]
    assert matches.event_index.max() == EVENTS - 2


def test_the_next_try_asks_about_fewer_events():
    assert TooManyPairs(10 * MOST, 1000).batch_size == 50
    assert TooManyPairs(MOST + 1, 1000).batch_size == 499
    assert TooManyPairs(MOST * MOST, 2).batch_size == 1
