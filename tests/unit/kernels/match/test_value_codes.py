"""Codes say where a value stands among end points: odd on one of them, even between two."""

import math
from bisect import bisect_left

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.kernels.match import value_codes
from tidings.kernels.match.literals import ABSENT

numbers = st.one_of(st.integers(-5, 5).map(float), st.floats(allow_nan=False, allow_infinity=False))


def code_of(value, ends):
    at = bisect_left(ends, value)
    return 2 * at + (at < len(ends) and ends[at] == value)


@given(st.lists(st.one_of(numbers, st.just(math.nan))), st.sets(numbers))
def test_numbers_are_coded_by_rank(values, ends):
    ends = sorted({end + 0.0 for end in ends})
    out = np.empty(len(values), np.uint32)
    value_codes.rank_numbers(np.array(values, np.float64), np.array(ends, np.float64), out)
    assert out.tolist() == [int(ABSENT) if value != value else code_of(value, ends) for value in values]  # noqa: PLR0124


@given(
    st.lists(st.one_of(numbers, st.just(math.nan), st.integers(-40, 40).map(lambda n: n / 2))),
    st.integers(-9, 9),
    st.integers(1, 9),
)
def test_integers_without_a_list_have_the_codes_of_their_list(values, base, count):
    ends = [float(base + at) for at in range(count)]
    out = np.empty(len(values), np.uint32)
    value_codes.rank_integers(np.array(values, np.float64), float(base), count, out)
    assert out.tolist() == [int(ABSENT) if value != value else code_of(value, ends) for value in values]  # noqa: PLR0124


@given(st.lists(st.binary(max_size=4)), st.sets(st.binary(max_size=4)))
def test_bytes_are_coded_by_rank(values, ends):
    def pack_texts(texts):
        return np.frombuffer(b"".join(texts), np.uint8), np.cumsum([0, *map(len, texts)])

    ends = sorted(ends)
    assert value_codes.rank_bytes(*pack_texts(values), *pack_texts(ends)).tolist() == [
        code_of(value, ends) for value in values
    ]
