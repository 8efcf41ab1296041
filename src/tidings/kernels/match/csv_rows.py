"""Where the rows of CSV end: a line end within quotes is part of a value.

A quote opens a value only where the value begins, as in other readers of CSV: in `5" disk` it is a byte like any other.
A finite automaton; the state is all that is carried over, so a file may be read in pieces of any size. Where a row
ends, the next state is BEGIN:

    state            quote     escape           separator   line end           else
    BEGIN            QUOTED    ESCAPED          BEGIN       the row ends       PLAIN       before a value
    PLAIN            PLAIN     ESCAPED          BEGIN       the row ends       PLAIN       in a value
    QUOTED           CLOSING   ESCAPED_QUOTED   QUOTED      QUOTED             QUOTED      in a quoted value
    CLOSING          QUOTED    ESCAPED          BEGIN       the row ends       PLAIN       after its quote
    ESCAPED          PLAIN, whatever follows                                               after an escape in a value
    ESCAPED_QUOTED   QUOTED, whatever follows                                              after one in quotes
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.kernels.jit import jit

if TYPE_CHECKING:
    from tidings.kernels.array_types import ByteArray, Int, IntArray

BEGIN, PLAIN, QUOTED, CLOSING, ESCAPED, ESCAPED_QUOTED = range(6)
"""The states of the table above."""


@jit
def find_row_ends(
    signs: ByteArray, state: Int, separator: Int, quote: Int, escape: Int, several_lines: bool, ends: IntArray
) -> tuple[Int, Int]:
    """Write the places of line feeds and carriage returns that end a row to `ends`; return how many, and the state.

    A separator, quote or escape of -1 does not exist. Without `several_lines` quotes do not keep a row open.
    """
    count = 0
    for at in range(len(signs)):
        sign = signs[at]
        if state == QUOTED:
            if sign == quote:
                state = CLOSING
            elif sign == escape:
                state = ESCAPED_QUOTED
            elif not several_lines and (sign == 10 or sign == 13):
                # The row ends in spite of the quote: a quote that nobody closes spoils one row and not the file.
                ends[count] = at
                count += 1
                state = BEGIN
        elif state == ESCAPED_QUOTED:
            state = QUOTED
        elif state == ESCAPED:
            state = PLAIN
        elif state == CLOSING and sign == quote:
            state = QUOTED
        elif sign == 10 or sign == 13:
            ends[count] = at
            count += 1
            state = BEGIN
        elif sign == separator:
            state = BEGIN
        elif sign == escape:
            state = ESCAPED
        elif sign == quote and state == BEGIN:
            state = QUOTED
        else:
            state = PLAIN
    return count, state
