"""Bits of words."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.kernels.bits import count_bits, find_lowest_bit
from tidings.kernels.jit import jit


@jit
def places(word, out):
    """Write the places of all bits, the lowest first; return how many there are."""
    number = 0
    while word != np.uint64(0):
        out[number] = find_lowest_bit(word)
        number += 1
        word &= word - np.uint64(1)
    return number


@given(st.integers(0, 2**64 - 1))
def test_bits_are_found_one_after_the_other(word):
    out = np.zeros(64, np.int64)
    number = places(np.uint64(word), out)
    assert out[:number].tolist() == [at for at in range(64) if word >> at & 1]
    assert count_bits(np.uint64(word)) == number
