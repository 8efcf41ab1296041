"""Segments as arrays: what comes back matches, tells and merges as what was taken apart."""

import json
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from tests.examples import examples

import tidings as td
from tidings.engine.arrays import freeze
from tidings.engine.engine import Engine
from tidings.engine.persist.mapped_arrays import ALIGNED, MAGIC, map_arrays, write_arrays
from tidings.engine.persist.segment_arrays import (
    build_parts,
    collect_deleted,
    describe_segment,
    open_segment,
    segment_to_arrays,
)
from tidings.errors import SnapshotError
from tidings.testing.strategies import cases

NOW = datetime(2026, 1, 1, tzinfo=UTC)

FILTERS = {
    "number": "a in [1 .. 5) and b = 7",
    "text": "t starts with 'fo' or t contains 'x' ignoring case",
    "pattern": "t like 'f*d' and u matches /^[ab]+$/",
    "set": "t in ('ford', 'vw', 'bmw')",
    "place": "p near (13.4, 52.5) 3 km",
    "area": "not (p within POLYGON((0 0, 4 0, 4 4, 0 4, 0 0)))",
    "law": "a < b and items has (sku = 'x' and qty > 2)",
    "time": "age(at) < 7 days or at > 2025-12-31",
    "absent": "not (a exists) and t is null",
    "tree": " and ".join(f"(a = {n} or b = {n} or c = {n} or t = '{n}')" for n in range(4)),
}

EVENTS = [
    {"a": 1, "b": 7, "t": "ford", "u": "ab", "p": {"lon": 13.4, "lat": 52.5}, "at": "2025-12-30"},
    {"a": 2, "b": 3, "t": None, "items": [{"sku": "x", "qty": 3}, {"sku": "y", "qty": 1}]},
    {"a": [0, 1, 2, 3], "b": [0, 1, 2, 3], "t": ["X", "vw"], "p": [{"lon": 2, "lat": 2}, {"lon": 9, "lat": 9}]},
    {"t": None},
]


def fill_matcher(filters=FILTERS):
    made = td.Matcher(now=NOW)
    made.add_many(filters.items())
    return made


def parts_in(matcher):
    assert isinstance(matcher.backend, Engine)
    return matcher.backend.seal().parts


def rebuilt(matcher, parts, **around):
    """Return a matcher over other parts, with the same demands."""
    made = td.Matcher(**around)
    made.admission.needs.restore(matcher.admission.needs.to_dict())
    made.backend.restore(parts)
    return made


def take_apart_and_back(matcher, **around):
    parts = parts_in(matcher)
    bind = matcher.admission.bind_filter
    descriptions = [json.loads(json.dumps(describe_segment(part.segment))) for part in parts]
    segments = [
        open_segment(description, segment_to_arrays(part.segment), bind)
        for description, part in zip(descriptions, parts, strict=True)
    ]
    return rebuilt(matcher, build_parts(segments, collect_deleted(parts)), **around)


@examples(60)
@given(cases(filters=4, events=3))
def test_what_is_taken_apart_comes_back(case):
    around = case.world.keywords
    first = td.Matcher(**around)
    given_filters = {f"s{at}": tree for at, tree in enumerate(case.filters)}
    first.add_many(given_filters.items(), on_error="collect")
    again = take_apart_and_back(first, **around)
    assert list(again) == list(first)
    assert {id: again[id] for id in again} == {id: given_filters[id] for id in first}
    assert again.needs() == first.needs()
    for event in case.events:
        assert sorted(again.match(event)) == sorted(first.match(event))


def test_every_kind_of_filter_comes_back():
    first = fill_matcher()
    again = take_apart_and_back(first, now=NOW)
    assert {id: again[id] for id in again} == {id: td.parse(text) for id, text in FILTERS.items()}
    brute = td.Matcher("brute", now=NOW)
    brute.add_many(FILTERS.items())
    for event in EVENTS:
        assert sorted(again.match(event)) == sorted(brute.match(event))


def test_what_came_back_merges_with_what_is_new():
    again = take_apart_and_back(fill_matcher(), now=NOW)
    again.add_many((f"new {id}", text) for id, text in FILTERS.items())
    again.remove("number")
    again.compact()
    assert len(parts_in(again)) == 1
    brute = td.Matcher("brute", now=NOW)
    brute.add_many((id, again[id]) for id in again)
    for event in EVENTS:
        assert sorted(again.match(event)) == sorted(brute.match(event))
    # Equal items are one, whether they were restored or compiled.
    assert len(parts_in(again)[0].segment.exact_checks.items) == len(
        parts_in(fill_matcher())[0].segment.exact_checks.items
    )


def test_the_dead_stay_dead():
    first = fill_matcher()
    parts_in(first)
    first.remove_many(["text", "law"])
    again = take_apart_and_back(first, now=NOW)
    assert set(again) == set(FILTERS) - {"text", "law"}
    again.remove("tree")
    assert set(again) == set(FILTERS) - {"text", "law", "tree"}


def test_restoring_makes_no_filter_and_no_area():
    again = take_apart_and_back(fill_matcher(), now=NOW)
    checks = parts_in(again)[0].segment.exact_checks
    assert not checks.items.decoded
    again.match({"p": {"lon": 2, "lat": 2}})
    assert all(checks.place_of[at] < 0 for at in checks.items.decoded)
    assert not checks.places.decoded
    assert len(list(checks.items)) == len(checks.items) == 4


def test_what_came_back_is_taken_apart_into_the_same_arrays():
    (part,) = parts_in(fill_matcher())
    arrays = segment_to_arrays(part.segment)
    (again,) = parts_in(take_apart_and_back(fill_matcher(), now=NOW))
    other = segment_to_arrays(again.segment)
    assert arrays.keys() == other.keys()
    for name, array in arrays.items():
        assert np.array_equal(array, other[name]), name
        assert (array.dtype, array.shape) == (other[name].dtype, other[name].shape)


def test_built_and_mapped_segments_share_their_kernels(tmp_path):
    kernel = pytest.importorskip("tidings.kernels.match.batch").match
    if not hasattr(kernel, "signatures"):
        pytest.skip("kernels are not compiled")
    first = fill_matcher()
    first.match_many(EVENTS)
    (part,) = parts_in(first)
    first.match_many(EVENTS)
    signatures = list(kernel.signatures)
    arrays = map_arrays(tmp_path, write_arrays(tmp_path, "segment", segment_to_arrays(part.segment)))
    segment = open_segment(describe_segment(part.segment), arrays, first.admission.bind_filter)
    rebuilt(first, build_parts([segment], {}), now=NOW).match_many(EVENTS)
    assert kernel.signatures == signatures
    for segment_ in (part.segment, segment):
        groups = (segment_.index.rows, segment_.index.paths, segment_.index.tiles)
        assert not any(array.flags.writeable for group in groups for array in group)


# Files of arrays -----------------------------------------------------------------------------------

SAMPLE = {
    "bytes": np.arange(3, dtype=np.uint8),
    "none": np.zeros((0, 4)),
    "square": np.arange(6, dtype=np.int64).reshape(2, 3),
    "every other": np.arange(10, dtype=np.uint32)[::2],
    "truth": np.array([True, False]),
}


def test_arrays_come_back_from_a_file_aligned_and_read_only(tmp_path):
    entry = write_arrays(tmp_path, "some", SAMPLE)
    assert (tmp_path / entry["name"]).read_bytes().startswith(MAGIC)
    back = map_arrays(tmp_path, entry, verify=True)
    assert back.keys() == SAMPLE.keys()
    for name, array in SAMPLE.items():
        assert np.array_equal(back[name], array)
        assert (back[name].dtype, back[name].shape) == (array.dtype, array.shape)
        assert not back[name].flags.writeable
        assert entry["arrays"][name][2] % ALIGNED == 0


def test_a_file_that_is_there_is_not_written_again(tmp_path):
    entry = write_arrays(tmp_path, "some", SAMPLE)
    before = (tmp_path / entry["name"]).stat()
    assert write_arrays(tmp_path, "some", SAMPLE) == entry
    assert (tmp_path / entry["name"]).stat().st_ino == before.st_ino


@pytest.mark.parametrize(
    "place", [["<u4", [2], 0], ["<u4", [2], 65], ["<u4", [1 << 40], 64], ["|O", [1], 64], ["<u4", [-1], 64]]
)
def test_a_layout_that_does_not_fit_the_file_is_refused(tmp_path, place):
    entry = write_arrays(tmp_path, "some", SAMPLE)
    with pytest.raises(SnapshotError, match="do not agree"):
        map_arrays(tmp_path, {**entry, "arrays": {"odd": place}})


def test_a_file_outside_the_folder_is_refused(tmp_path):
    entry = write_arrays(tmp_path, "some", SAMPLE)
    with pytest.raises(SnapshotError, match="not in it"):
        map_arrays(tmp_path / "inner", {**entry, "name": f"../{entry['name']}"})


def test_a_frozen_array_is_a_view_and_leaves_the_array_as_it_is():
    array = np.arange(4)
    view = freeze(array)
    assert view.base is array
    assert array.flags.writeable
    assert not view.flags.writeable
    assert freeze(view) is view
