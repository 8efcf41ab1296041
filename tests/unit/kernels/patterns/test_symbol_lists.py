"""Lists of symbols against loops over lists; compiled and as plain Python."""

import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.kernels.patterns import symbol_lists as kernel

lists = st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=6)


def pack_rows(rows):
    ends = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    return ends, np.array([symbol for row in rows for symbol in row], np.int64)


def unpack_rows(ends, symbols):
    return [symbols[low:high].tolist() for low, high in pairwise(ends)]


@given(lists, st.randoms(use_true_random=False))
def test_pairs_are_put_in_the_order_of_events(rows, rng):
    pairs = [(event, symbol) for event, row in enumerate(rows) for symbol in row]
    rng.shuffle(pairs)
    matches = kernel.group_by_event(
        np.array([event for event, _ in pairs], np.int64),
        np.array([symbol for _, symbol in pairs], np.int64),
        len(rows),
    )
    expected = [[symbol for event, symbol in pairs if event == place] for place in range(len(rows))]
    assert unpack_rows(*matches) == expected


@given(lists.filter(len), st.data())
def test_events_take_the_symbols_of_their_kinds(rows, data):
    kinds = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8))
    assert unpack_rows(*kernel.take_lists(*pack_rows(rows), np.array(kinds, np.int64))) == [
        rows[kind] for kind in kinds
    ]


@given(lists, st.lists(st.integers(-1, 9), min_size=6, max_size=6))
def test_symbols_without_a_name_are_left_out(rows, names):
    new_rows = kernel.rename_symbols(*pack_rows(rows), np.array(names, np.int64))
    assert unpack_rows(*new_rows) == [[names[symbol] for symbol in row if names[symbol] >= 0] for row in rows]


def test_all_of_this_without_compiled_kernels():
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        return
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(
        command, env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
