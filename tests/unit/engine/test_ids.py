"""Ids by slot and slots by id, against a list."""

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.engine.ids import Ids, TextLimits
from tidings.errors import TidingsError

numbers = st.lists(st.one_of(st.integers(-2, 8), st.integers(-(2**63), 2**63 - 1)), max_size=40)
texts = st.lists(st.one_of(st.sampled_from(["", "a", "ab", "é", "日本"]), st.text(max_size=12)), max_size=40)
several = st.one_of(numbers, texts)


@given(several)
def test_slots_hold_what_was_given(values):
    ids = Ids.build(values)
    assert len(ids) == len(values)
    assert list(ids) == [ids[slot] for slot in range(len(ids))] == values
    assert all(type(id) in (str, int) for id in ids)


@given(several, several)
def test_ids_are_found_at_their_last_slot(values, others):
    ids = Ids.build(values)
    slot_by_id = {id: slot for slot, id in enumerate(values)}
    expected = [slot_by_id.get(id, -1) for id in values + others]
    assert [ids.find(id) for id in values + others] == expected
    assert ids.find_many(values + others).tolist() == expected
    assert ids.find_many(values).tolist() == expected[: len(values)]
    assert ids.find_many(others).tolist() == expected[len(values) :]


@given(several)
def test_duplicates_are_the_slots_whose_id_comes_again(values):
    expected = [slot for slot, id in enumerate(values) if id in values[slot + 1 :]]
    assert Ids.build(values).find_duplicates().tolist() == expected


@given(several, st.data())
def test_taking_reordering_and_joining_keep_the_ids(values, data):
    ids = Ids.build(values)
    slots = st.lists(st.integers(0, len(values) - 1), max_size=20) if values else st.just([])
    first, second = data.draw(slots), data.draw(slots)
    assert ids.to_list(first * 40) == [values[slot] for slot in first * 40]
    assert ids.to_list(first) == ids.take(np.array(first, np.int32)).to_pylist() == [values[slot] for slot in first]
    assert list(Ids.concatenate([ids], [first])) == [values[slot] for slot in first]
    both = Ids.concatenate([ids, Ids.build([]), ids], [first, [], second])
    assert list(both) == [values[slot] for slot in first + second]
    assert all(both[both.find(id)] == id for id in both)


@pytest.mark.parametrize(("arrow_text", "wide"), [(5, 2**32), (5, 5), (2**31 - 1, 5)])
def test_long_text_has_wide_offsets(arrow_text, wide):
    ids = Ids.build(["abc", "", "defg", "é"], TextLimits(arrow_text, wide))
    assert ids.to_arrays()["offsets"].dtype == (np.int64 if wide == 5 else np.uint32)
    assert list(ids) == ["abc", "", "defg", "é"]
    assert ids.take([0]).type == pa.string()
    assert ids.take([0, 2]).type == (pa.large_string() if arrow_text == 5 else pa.string())
    assert ids.to_list([3, 2, 0]) == ["é", "defg", "abc"]
    assert [ids.find(id) for id in ("é", "defg", "x")] == [3, 2, -1]
    assert list(Ids.concatenate([ids, ids], [[0, 2], [3]])) == ["abc", "defg", "é"]


@given(several)
def test_arrays_open_read_only_as_they_are(values):
    ids = Ids.build(values)
    stored = {name: array.copy() for name, array in ids.to_arrays().items()}
    for array in stored.values():
        array.flags.writeable = False
    again = Ids.from_arrays(stored)
    assert list(again) == values
    assert again.find_many(values).tolist() == ids.find_many(values).tolist()
    assert all(np.shares_memory(array, stored[name]) for name, array in again.to_arrays().items() if array.size)
    assert list(pickle.loads(pickle.dumps(ids))) == values


def test_a_memory_map_is_opened_without_a_copy(tmp_path):
    for name, array in Ids.build([f"sub-{i}" for i in range(1000)]).to_arrays().items():
        np.save(tmp_path / f"{name}.npy", array)
    mapped = Ids.from_arrays({path.stem: np.load(path, mmap_mode="r") for path in tmp_path.iterdir()})
    assert mapped.find("sub-999") == 999
    assert mapped.find_many(["sub-7", "sub-x"]).tolist() == [7, -1]
    assert mapped.take([3]).to_pylist() == ["sub-3"]


TEXT = ["b", "", "aé", "b2"]
NUMBERS = [5, -1, 2**40]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array(TEXT), TEXT),
        (pa.array(["x", *TEXT, "y"])[1:-1], TEXT),
        (pa.array(TEXT, pa.large_string()), TEXT),
        (pa.array(TEXT, pa.string_view()), TEXT),
        (pa.array(TEXT).dictionary_encode(), TEXT),
        (pa.chunked_array([TEXT[:1], TEXT[1:]]), TEXT),
        (np.array(TEXT), TEXT),
        (np.array(TEXT, object), TEXT),
        (tuple(TEXT), TEXT),
        (pa.array(NUMBERS), NUMBERS),
        (pa.array([0, *NUMBERS])[1:], NUMBERS),
        (pa.array(NUMBERS).dictionary_encode(), NUMBERS),
        (pa.array([1, 2], pa.uint8()), [1, 2]),
        (pa.array([1, 2], pa.uint64()), [1, 2]),
        (np.array(NUMBERS), NUMBERS),
        (np.array([9, 1, 7, 2, 5])[::2], [9, 7, 5]),
        ([np.int32(1), 2], [1, 2]),
        (pa.array([], pa.string()), []),
        (pa.array([], pa.int32()), []),
        (pa.array([""]), [""]),
    ],
)
def test_ids_come_from_lists_arrow_and_numpy(values, expected):
    ids = Ids.build(values)
    assert list(ids) == expected
    assert ids.find_many(values).tolist() == list(range(len(expected)))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([1, 2**63], f"`{2**63}` does not fit 64 bits"),
        ([-(2**63) - 1], "does not fit 64 bits"),
        (np.array([2**63], np.uint64), f"`{2**63}` does not fit 64 bits"),
        (pa.array([2**63], pa.uint64()), f"`{2**63}` does not fit 64 bits"),
        ([1, "a"], "`'a'` comes after `1`"),
        (["a", 1], "`1` comes after `'a'`"),
        ([1, True], "not `True`"),
        ([b"a"], "not `b'a'`"),
        ([1, 2.0], "not `2.0`"),
        ([None], "not `None`"),
        (["\ud800"], "half a character"),
        (pa.array(["a", None]), "at `1` is null"),
        (pa.array([1.5]), "not Arrow's `double`"),
        (np.array([True]), "not `True`"),
    ],
)
def test_what_cannot_be_an_id_is_refused_by_name(value, words):
    with pytest.raises(TidingsError, match=words):
        Ids.build(value)


def test_what_cannot_be_an_id_is_never_found():
    names, numbers = Ids.build(["1", "True"]), Ids.build([1, 0])
    assert [names.find(odd) for odd in (1, None, b"1", "\ud800")] == [-1] * 4
    assert [numbers.find(odd) for odd in ("1", True, 1.0, 2**64, None)] == [-1] * 5
    assert names.find_many(["1", 1, None]).tolist() == [0, -1, -1]
    assert names.find_many([1, 0]).tolist() == [-1, -1]
    assert numbers.find_many(pa.array([1, None])).tolist() == [0, -1]
    assert numbers.find_many([0, 2**64]).tolist() == [1, -1]


def test_text_and_numbers_do_not_join():
    with pytest.raises(TidingsError, match="all text or all integers"):
        Ids.concatenate([Ids.build([1]), Ids.build(["a"])], [[0], [0]])


def test_a_slot_that_is_not_there_is_refused():
    for slot in (-1, 1):
        with pytest.raises(IndexError, match=f"`{slot}`"):
            Ids.build(["a"])[slot]
