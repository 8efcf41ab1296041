"""Tables: ends in codes, and equal conjunctions in one row."""

import numpy as np
import pytest

import tidings as td
from tidings.concepts import Ontology
from tidings.engine.compile.draft import FilterDraft
from tidings.engine.compile.encoders import HIGH_OPEN, LOW_OPEN, NO_HIGH, NO_LOW
from tidings.engine.compile.row_table import RowTable, encode_intervals, mask_multi_row
from tidings.kernels.match.row_codes import EMPTY_LOW


def table_of(*texts):
    draft = FilterDraft(Ontology())
    for slot, text in enumerate(texts):
        draft.add(slot, td.parse(text))
    return RowTable.from_draft(draft)


def slots_of(table):
    return [
        sorted(table.slot[first:last].tolist()) for first, last in zip(table.entry[:-1], table.entry[1:], strict=True)
    ]


@pytest.mark.parametrize(
    ("low", "high", "flags", "wanted"),
    [
        (0, 1, 0, (1, 3)),
        (0, 1, LOW_OPEN, (2, 3)),
        (0, 1, HIGH_OPEN, (1, 2)),
        (0, 1, LOW_OPEN | HIGH_OPEN, (2, 2)),
        (1, 1, NO_LOW, (0, 3)),
        (1, 1, NO_LOW | HIGH_OPEN, (0, 2)),
        (1, 1, NO_HIGH, (3, 6)),
        (1, 1, NO_LOW | NO_HIGH, (0, 6)),
        (1, 1, LOW_OPEN, (EMPTY_LOW, 0)),
        (1, 1, LOW_OPEN | HIGH_OPEN, (EMPTY_LOW, 0)),
    ],
)
def test_an_interval_is_a_closed_one_of_codes(low, high, flags, wanted):
    first, last = encode_intervals(np.array([low]), np.array([high]), np.array([flags]), 3)
    assert (int(first[0]), int(last[0])) == wanted


def test_equal_conjunctions_are_one_row_with_several_subscriptions():
    table = table_of("a = 1 and b = 2", "a = 2", "a = 1 and b = 2", "a = 1 and b = 2", "b = 2 and a = 1").share_rows()
    assert slots_of(table) == [[0, 2, 3], [1], [4]]


def test_equal_sets_are_one_row():
    assert slots_of(table_of("a in (1, 2, 3)", "a in (1, 2)", "a in (1, 2, 3)").share_rows()) == [[0, 2], [1]]


def test_rows_with_a_second_phase_stay_apart():
    table = table_of("p near (1, 2) 3 km", "p near (1, 2) 4 km", "x < y", "x > y").share_rows()
    assert sorted(map(tuple, slots_of(table))) == [(0,), (1,), (2,), (3,)]
    assert sorted(table.item_row.tolist()) == [0, 1, 2, 3]


def test_rows_of_subscriptions_with_several_stay_apart():
    table = table_of("a = 1 or b = 2", "a = 1", "a = 1")
    assert mask_multi_row(table.entry, table.slot).tolist() == [True, True, False, False]
    assert sorted(map(tuple, slots_of(table.share_rows()))) == [(0,), (0,), (1, 2)]


def test_sharing_what_is_shared_changes_nothing():
    table = table_of("a = 1", "a = 1", "a = 2").share_rows()
    assert slots_of(table.share_rows()) == slots_of(table)


def test_an_empty_table_is_a_table():
    table = table_of().share_rows()
    assert (len(table.start), len(table.slot), table.columns) == (1, 0, ())
