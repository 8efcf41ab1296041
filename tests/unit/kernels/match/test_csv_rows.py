"""Where rows of CSV end, against a reader of CSV that everybody has, and whatever the pieces."""

import csv
import io

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tidings.kernels.match.csv_rows import BEGIN, find_row_ends

TEXTS = st.text(alphabet='a,"\n ;', max_size=40)


def ends_in_pieces(text, cuts, *, escape=-1, several_lines=True):
    data, row_ends, state, start = text.encode(), [], BEGIN, 0
    for cut in [*sorted(cuts), len(data)]:
        signs = np.frombuffer(data[start:cut], np.uint8)
        ends = np.empty(len(signs), np.int64)
        count, state = find_row_ends(signs, state, ord(","), ord('"'), escape, several_lines, ends)
        row_ends += (ends[:count] + start).tolist()
        start = max(start, cut)
    return row_ends


@given(TEXTS)
@example('1,"a\nb",2\n3,5" disk,4\n')
@example('"say ""no""\n",1\n')
def test_rows_end_where_pythons_reader_of_csv_ends_them(text):
    ends = ends_in_pieces(text + "\n", [])
    starts = [0, *(end + 1 for end in ends[:-1])]
    apart = [(text + "\n")[start : end + 1] for start, end in zip(starts, ends, strict=bool(ends))]
    whole = list(csv.reader(io.StringIO("".join(apart), newline="")))
    assert [row for part in apart for row in csv.reader(io.StringIO(part, newline=""))] == whole
    assert all(len(list(csv.reader(io.StringIO(part, newline="")))) == 1 for part in apart)


@given(TEXTS, st.lists(st.integers(0, 40), max_size=5))
def test_pieces_of_any_size_give_the_same_ends(text, cuts):
    cuts = [cut for cut in cuts if cut <= len(text)]
    assert ends_in_pieces(text, cuts) == ends_in_pieces(text, [])


def test_without_several_lines_every_line_is_a_row():
    assert ends_in_pieces('1,"a\nb"\n', [], several_lines=False) == [4, 7]


def test_an_escaped_quote_neither_opens_nor_closes_a_value():
    assert ends_in_pieces('"a\\"\nb"\n', [], escape=ord("\\")) == [7]
    assert ends_in_pieces("a\\\nb\n", [], escape=ord("\\")) == [4]
