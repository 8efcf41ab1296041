"""Planning: every choice is one by which the row can be found, and every key of a row is filed."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.kernels.match.random_rows import build_of, draw_table, get_spans

from tidings.engine.index.planner import EventStatistics, plan_rows
from tidings.engine.tuning import IndexTuning
from tidings.kernels.match import access_choice as kernel
from tidings.kernels.match import selectivity
from tidings.kernels.match.layout import OP_BITS

COSTS = {
    "measured": IndexTuning(),
    "keys are free": IndexTuning(look_ns=0.0, tile_ns=1e9),
    "hulls are free": IndexTuning(look_ns=1e9, tile_rows=2),
    "scanning is dear": IndexTuning(scan_ns=1e9),
}
few = examples(25)


def column_of(table, at):
    return int(table.literals.head[at]) >> OP_BITS


@pytest.mark.parametrize("costs", COSTS)
@given(st.integers(0, 2**32), st.sampled_from((1, 40, 200)))
@few
def test_every_choice_can_find_its_row(costs, seed, rows):
    table = draw_table(seed, rows=rows)
    choice = plan_rows(table, EventStatistics(), COSTS[costs])
    for row, (kind, first, second) in enumerate(zip(choice.kind, choice.first, choice.second, strict=True)):
        inside = range(table.start[row], table.start[row + 1])
        wanted = (0, 1, 2, 1, 2)[kind]
        literals_taken = [int(at) for at in (first, second) if at >= 0]
        assert len(literals_taken) == wanted
        assert all(at in inside and table.literals.head[at] & 7 == 0 for at in literals_taken), (
            "only `any` says where values are"
        )
        assert sorted({column_of(table, at) for at in literals_taken}) == [
            column_of(table, at) for at in literals_taken
        ]
        if kind >= kernel.KEYED:
            assert all(choice.use[at] >= kernel.POINT for at in literals_taken)
            assert np.prod([len(get_spans(table.literals, at)) for at in literals_taken]) <= kernel.MOST_COPIES


@given(st.integers(0, 2**32))
@few
def test_points_are_points_and_alone_on_their_column(seed):
    table = draw_table(seed)
    use = kernel.classify_uses(build_of(table))
    for row in range(len(table.start) - 1):
        inside = list(range(table.start[row], table.start[row + 1]))
        for at in inside:
            spans = get_spans(table.literals, at)
            if use[at] >= kernel.POINT:
                assert all(low == high and low % 2 for low, high in spans)
                assert [column_of(table, other) for other in inside].count(column_of(table, at)) == 1
            assert (use[at] == kernel.NO_USE) == (table.literals.head[at] & 7 != 0)


@given(st.integers(0, 2**32))
@few
def test_a_row_is_filed_under_all_its_keys(seed):
    table = draw_table(seed, rows=60)
    choice = plan_rows(table, EventStatistics(), IndexTuning(look_ns=0.0, tile_ns=1e9))
    lits = table.literals
    owner, first, second = kernel.file_rows(build_of(table), choice.use, choice.kind, choice.first, choice.second)
    assert sorted(set(owner.tolist())) == sorted({*range(len(choice.kind))} - list_unfiled(choice, lits))
    for row in np.flatnonzero(choice.kind >= kernel.KEYED):
        sides = [
            [low >> 1 for low, _ in get_spans(lits, at)] if at >= 0 else [0]
            for at in (choice.first[row], choice.second[row])
        ]
        mine = owner == row
        assert sorted(zip(first[mine], second[mine], strict=True)) == sorted(product(*sides))


def list_unfiled(choice, literals):
    """Rows that accept nothing have no key to be filed under."""
    keys_taken = [
        (row, at)
        for row in np.flatnonzero(choice.kind >= kernel.KEYED)
        for at in (choice.first[row], choice.second[row])
    ]
    return {int(row) for row, at in keys_taken if at >= 0 and not get_spans(literals, at)}


@given(st.integers(0, 2**32))
@few
def test_rates_are_shares_of_the_sample(seed):
    table = draw_table(seed)
    rng = np.random.default_rng(seed)
    samples = [np.sort(rng.integers(0, 13, size)).astype(np.uint32) for size in (0, 5, 40, 100)]
    bounds = np.cumsum([0, *map(len, samples)])
    rate, _ = selectivity.estimate_rates(*table.literals, bounds, np.concatenate(samples))
    for at in range(len(rate)):
        codes = samples[column_of(table, at)]
        inside = sum(np.sum((codes >= low) & (codes <= high)) for low, high in get_spans(table.literals, at))
        wanted = min(1.0, (inside + 0.5) / (len(codes) + 1)) if len(codes) else 1.0
        assert rate[at] == pytest.approx(wanted, rel=1e-6)
