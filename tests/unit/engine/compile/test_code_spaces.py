"""Code spaces: exact for every number and every text, and the same values after they are joined or kept."""

from bisect import bisect_left
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.engine.arrays import pack_bytes
from tidings.engine.compile.code_spaces import (
    ByteSpace,
    LinearSpace,
    RankedSpace,
    build_space,
    merge_spaces,
    open_space,
)
from tidings.engine.compile.columns import Numbers, Texts, split_number
from tidings.engine.tuning import EngineTuning
from tidings.kernels.match.literals import ABSENT

LARGE = (2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1, 2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1)
numbers = st.one_of(
    st.sampled_from((0, 1, -0.0, 0.5, 5e-324, 1e300, float(2**53))),
    st.sampled_from(LARGE),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
)


def points(values):
    """Return numbers as columns have them."""
    parts = [split_number(value) for value in values]
    return Numbers(np.array([near for near, _ in parts], np.float64), np.array([rest for _, rest in parts], np.int16))


def code_of(value, ends):
    exact = [Fraction(end) for end in ends]
    at = bisect_left(exact, Fraction(value))
    return 2 * at + (at < len(exact) and exact[at] == Fraction(value))


@given(st.lists(numbers, min_size=1), st.lists(numbers))
def test_numbers_stand_where_exact_arithmetic_puts_them(ends, values):
    space = build_space(points(ends))
    order = sorted({Fraction(end) for end in ends})
    assert len(space) == len(order)
    assert space.encode(points([*values, *ends])).tolist() == [code_of(value, order) for value in [*values, *ends]]
    assert space.decode(np.arange(len(space))) == order


@given(st.lists(st.text(max_size=5), min_size=1), st.lists(st.text(max_size=5)))
def test_text_stands_where_code_points_put_it(ends, values):
    def texts(words):
        distinct = list(dict.fromkeys(words))
        return Texts(np.array([distinct.index(word) for word in words], np.int32), [word.encode() for word in distinct])

    space, order = build_space(texts(ends)), sorted(set(ends))
    codes = space.encode(texts([*values, *ends])).tolist()
    assert codes == [
        2 * (at := bisect_left(order, word)) + (at < len(order) and order[at] == word) for word in [*values, *ends]
    ]


def test_what_is_not_there_is_absent():
    assert RankedSpace(np.array([1.0])).encode(Numbers(np.array([np.nan, 1.0]))).tolist() == [ABSENT, 1]
    assert LinearSpace(0, 3).encode(Numbers(np.array([np.nan, 1.0]))).tolist() == [ABSENT, 3]
    assert ByteSpace(*pack_bytes([b"a"])).encode(Texts(np.array([-1, 0], np.int32), [b"a"])).tolist() == [ABSENT, 1]


@given(st.lists(st.integers(-30, 30), min_size=1), st.lists(st.integers(-80, 80).map(lambda n: n / 2)))
def test_dense_integers_have_the_codes_of_their_list(ends, values):
    space = build_space(points(ends), EngineTuning(listed_ends=0, sparsity=1000))
    assert isinstance(space, LinearSpace)
    every = list(range(min(ends), max(ends) + 1))
    assert space.encode(points(values)).tolist() == [code_of(value, every) for value in values]
    assert space.decode(np.arange(len(space))) == every


@given(st.lists(st.lists(numbers, min_size=1), min_size=1, max_size=3))
def test_joined_spaces_keep_every_end_point(lists):
    parts = [build_space(points(ends)) for ends in lists]
    joint, ranks = merge_spaces(parts)
    for part, new in zip(parts, ranks, strict=True):
        assert joint.decode(new) == part.decode(np.arange(len(part)))
    assert joint.decode(np.arange(len(joint))) == sorted({Fraction(end) for ends in lists for end in ends})


@pytest.mark.parametrize(("first", "second"), [((0, 5), (3, 9)), ((0, 5), (10**9, 5)), ((-3, 2), (0, 1))])
def test_joined_lines_keep_every_integer(first, second):
    joint, ranks = merge_spaces([LinearSpace(*first), LinearSpace(*second)])
    assert joint.decode(ranks[0]) == list(range(first[0], sum(first)))
    assert joint.decode(ranks[1]) == list(range(second[0], sum(second)))
    assert len(joint) < 100


@pytest.mark.parametrize(
    "space",
    [
        RankedSpace(np.array([0.5, 2.0])),
        RankedSpace(np.array([2.0**53] * 2), np.array([0, 1], np.int16)),
        LinearSpace(-4, 9),
        ByteSpace(*pack_bytes([b"", b"a"])),
    ],
)
def test_a_space_is_restored_from_its_arrays(space):
    again = open_space(space.to_arrays())
    assert type(again) is type(space)
    assert again.decode(np.arange(len(again))) == space.decode(np.arange(len(space)))
