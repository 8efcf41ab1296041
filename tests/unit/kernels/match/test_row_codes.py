"""Rows as such: equal ones share a leader, and ends keep their meaning in a larger space."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.kernels.match.random_rows import accepts, build_of, draw_table, get_spans

from tidings.kernels.match import row_codes
from tidings.kernels.match.layout import OP_BITS
from tidings.kernels.match.literals import UNION

few = examples(25)


def content(table, row):
    places = range(table.start[row], table.start[row + 1])
    return tuple((int(table.literals.head[at]), tuple(get_spans(table.literals, at))) for at in places)


@given(st.integers(0, 2**32), st.booleans())
@few
def test_equal_rows_share_the_first_of_them(seed, collide):
    table = draw_table(seed, rows=80, columns=1, ends=2)
    alone = np.array([row % 11 == 0 for row in range(80)], np.uint8)
    hashed = row_codes.hash_rows(build_of(table))
    contents = [content(table, row) for row in range(80)]
    assert all(
        hashed[first] == hashed[second]
        for first in range(80)
        for second in range(first)
        if contents[first] == contents[second]
    )
    if collide:
        hashed[:] = 7
    order = np.argsort(hashed, kind="stable")
    leader = row_codes.find_leaders(order, hashed, alone, build_of(table))
    for row, chief in enumerate(leader.tolist()):
        assert contents[chief] == contents[row]
        assert leader[chief] == chief
        assert chief == row or not (alone[row] or alone[chief])
    if not collide:  # each kind of row is one, but for those that stay alone and break its run
        apart = {contents[row] for row in range(80) if alone[row]}
        for row in range(80):
            if contents[row] not in apart:
                assert leader[row] == contents.index(contents[row])


@given(st.integers(0, 2**32), st.data())
@few
def test_ends_accept_the_same_values_in_a_larger_space(seed, data):
    table = draw_table(seed, rows=30, columns=2, ends=4)
    new_ends = 9
    ranks = [sorted(data.draw(st.sets(st.integers(0, new_ends - 1), min_size=4, max_size=4))) for _ in range(2)]
    lits = table.literals
    low, high, union_low, union_high = (
        array.copy() for array in (lits.low, lits.high, lits.union_low, lits.union_high)
    )
    arrays = ([4, 4], ranks[0] + ranks[1], [0, 4, 8], [new_ends] * 2)
    ends = row_codes.MovedEnds(*(np.array(array, np.int64) for array in arrays))
    row_codes.remap(lits.head, low, high, ends)
    row_codes.remap_unions(lits.head, lits.low, lits.union_start, union_low, union_high, ends)
    moved = type(lits)(lits.head, low, high, lits.union_start, union_low, union_high)
    for at in range(len(lits.head)):
        rank = ranks[int(lits.head[at]) >> OP_BITS]
        for code in range(2 * new_ends + 1):
            below = sum(2 * array + 1 < code for array in rank)
            old = 2 * below + ((code - 1) // 2 in rank if code % 2 else 0)
            op = int(lits.head[at]) & ~UNION & 7
            assert accepts(op, get_spans(moved, at), [(code, code)]) == accepts(op, get_spans(lits, at), [(old, old)])
