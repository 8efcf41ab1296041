"""Where the rows of CSV end: a line end within quotes is part of a value.

A quote opens a value only where the value begins, as readers of CSV have it: in `5" disk` it is a sign like any other.
The state between two pieces of a file is one small number, so a file may be gone through in pieces of any size.
"""

from __future__ import annotations

from tidings.kernels.jit import jit

BEGIN, PLAIN, QUOTED, CLOSING, ESCAPED, ESCAPED_QUOTED = range(6)
"""Before a value, in one, in one with quotes, after a quote in such a one, after an escape in either."""


@jit
def find_row_ends(signs, state, separator, quote, escape, several_lines, ends):  # type: ignore[no-untyped-def]
    """Write the places of line feeds and carriage returns that end a row to `ends`; return how many, and the state.

    A sign of -1 is none. Without `several_lines` quotes do not keep a row open.
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
