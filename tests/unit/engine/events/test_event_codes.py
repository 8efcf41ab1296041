"""Cells: the codes of one value, of several, and of ranges with every kind of end."""

import numpy as np
import pytest

from tidings.engine.compile.code_spaces import RankedSpace
from tidings.engine.compile.columns import Column, EventColumn, Numbers, View
from tidings.engine.events.event_codes import encode_events
from tidings.kernels.match.literals import ABSENT, SEVERAL

A, B = Column("a", View.NUMBER), Column("b", View.NUMBER)
SPACE = RankedSpace(np.array([1.0, 2.0, 3.0]))


def numbers(*values):
    return Numbers(np.array(values, np.float64))


def spans(cells, event, column=0):
    """Return the values of a cell as intervals of codes."""
    cell = cells.cell[event, column]
    if cell == ABSENT:
        return []
    if cell < SEVERAL:
        return [(int(cell), int(cell))]
    place = int(cell) & 0x7FFFFFFF
    inside = slice(cells.many_start[place], cells.many_start[place + 1])
    return list(zip(cells.many_low[inside].tolist(), cells.many_high[inside].tolist(), strict=True))


def test_one_value_is_its_code_and_none_is_absent():
    cells = encode_events({A: EventColumn(numbers(2, np.nan, 9))}, {A: 0}, [SPACE], 3)
    assert [spans(cells, event) for event in range(3)] == [[(3, 3)], [], [(6, 6)]]
    assert cells.plain.all()


def test_several_values_are_kept_in_a_list():
    column = EventColumn(numbers(1, 3, 2), starts=np.array([0, 2, 2, 3]))
    cells = encode_events({A: column}, {A: 0}, [SPACE], 3)
    assert [spans(cells, event) for event in range(3)] == [[(1, 1), (5, 5)], [], [(3, 3)]]
    assert cells.plain.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [(0, (1, 5)), (1, (2, 5)), (2, (1, 4)), (3, (2, 4)), (4, (0, 5)), (8, (1, 6)), (12, (0, 6)), (5, (0, 5))],
)
def test_a_range_is_the_codes_between_its_ends(flags, wanted):
    column = EventColumn(numbers(1), numbers(3), np.array([flags], np.uint8))
    assert spans(encode_events({A: column}, {A: 0}, [SPACE], 1), 0) == [wanted]


def test_an_open_end_between_end_points_stays_where_it_is():
    column = EventColumn(numbers(1.5), numbers(2.5), np.array([3], np.uint8))
    assert spans(encode_events({A: column}, {A: 0}, [SPACE], 1), 0) == [(2, 4)]


def test_a_range_within_one_gap_is_a_plain_value():
    cells = encode_events({A: EventColumn(numbers(1.2), numbers(1.8), np.array([0], np.uint8))}, {A: 0}, [SPACE], 1)
    assert spans(cells, 0) == [(2, 2)]
    assert cells.plain.all()


def test_lists_of_several_columns_do_not_mix():
    batch = {
        A: EventColumn(numbers(1, 2, 3), starts=np.array([0, 2, 3])),
        B: EventColumn(numbers(3, 2, 1, 1), numbers(3, 3, 1, 1), np.zeros(4, np.uint8), np.array([0, 2, 4])),
    }
    cells = encode_events(batch, {B: 0, A: 1}, [SPACE, SPACE], 2)
    assert (spans(cells, 0, 1), spans(cells, 1, 1)) == ([(1, 1), (3, 3)], [(5, 5)])
    assert (spans(cells, 0, 0), spans(cells, 1, 0)) == ([(5, 5), (3, 5)], [(1, 1), (1, 1)])


def test_columns_that_nobody_asks_for_are_passed_over():
    cells = encode_events({B: EventColumn(numbers(1))}, {A: 0}, [SPACE], 1)
    assert spans(cells, 0) == []


def test_no_values_at_all_are_absent():
    column = EventColumn(numbers(), starts=np.array([0, 0]))
    assert spans(encode_events({A: column}, {A: 0}, [SPACE], 1), 0) == []
