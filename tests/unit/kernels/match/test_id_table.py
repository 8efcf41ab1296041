"""The table of ids against a dictionary, and its hash: fixed and evenly spread."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.kernels.match import id_table as kernel

numbers = st.lists(st.one_of(st.integers(-3, 12), st.integers(-(2**63), 2**63 - 1)), max_size=200)
texts = st.lists(st.one_of(st.text(max_size=3), st.text("ab\0", max_size=20)), max_size=200)

# Stored tables depend on these: another hash is another format.
HASHES = [0x7B0A498BE3F74F85, 0xB8934DED98102914, 0xF3247F04F90425F9, 0x1A741515AB27F644]
NUMBER_HASH = 0xAB54501F4383C748


def bits(values):
    return np.array(values, np.int64).view(np.uint64)


def flat(values):
    written = [value.encode() for value in values]
    offsets = np.concatenate(([0], np.cumsum([len(text) for text in written], dtype=np.int64))).astype(np.int64)
    return np.frombuffer(b"".join(written), np.uint8), offsets


def empty(count, room):
    return np.full(count + room, kernel.EMPTY, np.uint32)


def slots(values, asked):
    slot_by_value = {value: slot for slot, value in enumerate(values)}
    return [slot_by_value.get(value, -1) for value in asked]


@given(numbers, numbers, st.integers(1, 50))
def test_numbers_are_found_as_in_a_dictionary(values, others, room):
    table = empty(len(values), room)
    assert kernel.build_numbers(bits(values), table) == len(set(values))
    slots_found = kernel.find_numbers(bits(values), table, bits(values + others))
    assert slots_found.tolist() == slots(values, values + others)


@given(texts, texts, st.integers(1, 50), st.sampled_from([np.uint32, np.int64]))
def test_texts_are_found_as_in_a_dictionary(values, others, room, width):
    data, offsets = flat(values)
    table = empty(len(values), room)
    assert kernel.build_text(data, offsets.astype(width), table) == len(set(values))
    slots_found = kernel.find_text(data, offsets.astype(width), table, *flat(values + others))
    assert slots_found.tolist() == slots(values, values + others)


def test_the_hash_is_the_same_on_every_machine():
    hashes = [int(kernel.hash_text(*flat([text])[:1], 0, len(text))) for text in ("", "a", "abcd", "subscription-1")]
    assert hashes == HASHES
    assert int(kernel.hash_number(np.uint64(1))) == NUMBER_HASH


@pytest.mark.parametrize("step", [1, 1024, 2**32, 2**32 + 1, -7])
def test_numbers_in_a_row_spread_over_the_table(step):
    values = bits(np.arange(2000) * step)
    hashes = np.array([int(kernel.hash_number(value)) for value in values], np.uint64)
    assert_even(hashes)


@pytest.mark.parametrize("form", ["{}", "sub-{:09d}", "{0}-{0}-aaaaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaa{}"])
def test_texts_in_a_row_spread_over_the_table(form):
    data, offsets = flat([form.format(number) for number in range(2000)])
    hashes = [int(kernel.hash_text(data, low, high)) for low, high in pairwise(offsets)]
    assert_even(np.array(hashes, np.uint64))


def assert_even(hashes):
    """Both halves of 2000 hashes fall evenly into 100 bins: chi-squared, far beyond what chance does."""
    for half in (hashes >> np.uint64(32), hashes & kernel.LOW, (hashes & kernel.LOW) << np.uint64(12) & kernel.LOW):
        counts = np.bincount((half.astype(np.float64) / 2**32 * 100).astype(np.int64), minlength=100)
        assert ((counts - 20.0) ** 2 / 20).sum() < 180
