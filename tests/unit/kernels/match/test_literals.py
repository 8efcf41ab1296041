"""A literal of every op, of one interval or several, against the words that say what it asks."""

from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.kernels.match import random_rows

from tidings.kernels.match.layout import OP_BITS
from tidings.kernels.match.literals import accepts


@given(st.integers(0, 2**32))
@examples(25)
def test_a_cell_satisfies_a_literal_as_its_values_do(seed):
    lits = random_rows.draw_table(seed, rows=20).literals
    cells, values = random_rows.draw_cells(seed + 1, events=12)
    many = cells.many_start, cells.many_low, cells.many_high
    for at in range(len(lits.head)):
        column, op = int(lits.head[at]) >> OP_BITS, int(lits.head[at]) & 15
        for event in range(12):
            is_accepted = accepts(cells.cell[event, column], op, lits.low[at], lits.high[at], *many, *lits[3:])
            assert is_accepted == random_rows.accepts(op & 7, random_rows.get_spans(lits, at), values[event][column])
