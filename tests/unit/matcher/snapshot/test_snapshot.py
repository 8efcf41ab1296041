"""Snapshots: what was saved comes back, can be changed, and is saved again with little effort."""

import json
import pickle
import re
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from tests.examples import examples

import tidings as td
from tidings.matcher.registry import ENGINE
from tidings.testing.strategies import cases

NOW = datetime(2024, 1, 1, tzinfo=UTC)
OLDER = Path(__file__).parents[3] / "older" / "snapshot_formats"
"""The same subscriptions as versions before formats 4 and 5 wrote them."""


@pytest.fixture
def snapshot(tmp_path):
    searches = td.Matcher(schema=td.Schema({"a": "number", "t": "time"}), now=NOW)
    searches.add_many([("s1", "a = 1"), ("s2", "age(t) < 7 days or not (a in [1 .. 5))")])
    searches.save(tmp_path / "snap")
    return tmp_path / "snap"


def manifest_in(folder):
    return json.loads((folder / "manifest.json").read_text())


def list_named_files(folder):
    manifest = manifest_in(folder)
    entries = [*manifest["files"].values(), *manifest.get("segments", []), manifest.get("dead")]
    return {entry["name"] for entry in entries if entry} | {"manifest.json"}


def list_files(folder):
    return {path.name for path in folder.iterdir()}


# Round trips ---------------------------------------------------------------------------------------


def test_a_snapshot_comes_back_with_its_schema_and_time(snapshot):
    searches = td.Matcher.open(snapshot)
    assert list(searches) == ["s1", "s2"]
    assert searches.schema == td.Schema({"a": "number", "t": "time"})
    assert searches.match({"a": 1, "t": "2023-12-31"}) == ["s1", "s2"]
    searches.add("s3", "a = 1")
    searches.remove("s1")
    assert sorted(searches.match({"a": 1})) == ["s3"]


@examples(40)
@given(cases(filters=4, events=3))
def test_saved_and_pickled_matchers_answer_as_the_first(tmp_path_factory, case):
    around = case.world.keywords
    first = td.Matcher(**around)
    first.add_many([(f"s{at}", tree) for at, tree in enumerate(case.filters)], on_error="collect")
    folder = tmp_path_factory.mktemp("snapshot")
    first.save(folder)
    for again in (td.Matcher.open(folder, verify=True), pickle.loads(pickle.dumps(first))):
        assert {id: again[id] for id in again} == {id: first[id] for id in first}
        assert again.needs() == first.needs()
        assert (again.schema, again.regions, again.now) == (first.schema, first.regions, first.now)
        for event in case.events:
            assert sorted(again.match(event)) == sorted(first.match(event))
        again.remove_many(list(again))
        again.add_many([(f"t{at}", tree) for at, tree in enumerate(case.filters)], on_error="collect")
        for event in case.events:
            assert sorted(id[1:] for id in again.match(event)) == sorted(id[1:] for id in first.match(event))


def test_integer_ids_and_empty_matchers_come_back(tmp_path):
    searches = td.Matcher()
    searches.save(tmp_path / "empty")
    empty = td.Matcher.open(tmp_path / "empty")
    assert len(empty) == 0
    empty.add("text", "a = 1")
    searches.add(7, "a = 'line\\nbreak \\u2028 and unicode'")
    searches.save(tmp_path / "one")
    assert list(td.Matcher.open(tmp_path / "one")) == [7]


def test_kinds_and_units_that_filters_ask_for_are_known_after_opening(tmp_path):
    searches = td.Matcher()
    searches.add_many([("s1", "a = 1"), ("s2", "a = 'text'"), ("s3", "a > 5 GB"), *((at, "b = 1") for at in "xyz")])
    searches.save(tmp_path)
    opened = td.Matcher.open(tmp_path)
    assert opened.needs() == searches.needs()
    assert [opened.match({"a": value}) for value in (1, "text", "6 GB", 6)] == [["s1"], ["s2"], ["s3"], []]
    opened.remove("s3")
    assert opened.match({"a": "6 GB"}) == []


@pytest.mark.parametrize("form", ["arrays", "filters", "versions"])
def test_snapshots_of_older_formats_mean_what_the_law_says_now(form):
    opened = td.Matcher.open(OLDER / form)
    again = td.Matcher(opened.kind, schema=opened.schema, ontology=opened.ontology)
    again.add_many([(id, opened[id]) for id in opened])
    assert len(opened) > 20
    values = (1, 2, "2", "ford", "x", "6 GB", "1 km", True, None, [1, "ford"], {"b": 1}, [8.5, 47.4], "2024-06-01")
    events = [{name: value, "b": 2, "c": "7"} for name in ("a", "size", "name", "spot") for value in values]
    matches, expected = opened.match_many(events), again.match_many(events)
    assert [sorted(ids) for ids in matches.by_event()] == [sorted(ids) for ids in expected.by_event()]
    assert opened.needs().keys() == again.needs().keys()
    for id in list(opened):
        opened.remove(id)
    assert opened.needs().keys() <= set(opened.schema or ())


def test_many_segments_with_their_dead_come_back(tmp_path):
    searches = td.Matcher()
    searches.add_many((f"a{n}", f"a = {n % 50}") for n in range(3000))
    searches.add_many((f"b{n}", f"b = {n % 50}") for n in range(400))
    searches.add_many((f"c{n}", f"c = {n}") for n in range(9))
    searches.remove_many([f"a{n}" for n in range(0, 500, 3)])
    searches.remove("b7")
    searches.save(tmp_path)
    opened = td.Matcher.open(tmp_path)
    assert set(opened) == set(searches)
    assert len(manifest_in(tmp_path)["segments"]) >= 2
    for value in range(60):
        event = {"a": value, "b": value, "c": value}
        assert sorted(opened.match(event)) == sorted(searches.match(event))
    assert opened["b8"] == td.parse("b = 8")
    assert "b7" not in opened


def test_what_was_loaded_from_columns_comes_back(tmp_path):
    box = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"
    table = pa.table({"id": ["s1", "s2"], "price_to": [9000.0, None], "spot_within": [None, box]})
    searches = td.Matcher()
    searches.add_many(table)
    searches.save(tmp_path)
    for again in (td.Matcher.open(tmp_path), pickle.loads(pickle.dumps(searches))):
        assert {id: again[id] for id in again} == {id: searches[id] for id in searches}
        assert sorted(again.match({"price": 1, "spot": {"lon": 1, "lat": 1}})) == ["s1", "s2"]
        assert again.match({"price": 9001, "spot": {"lon": 9, "lat": 1}}) == []


# Saving again --------------------------------------------------------------------------------------


def test_saving_again_replaces_and_leaves_nothing_behind(snapshot):
    searches = td.Matcher.open(snapshot)
    searches.remove("s1")
    searches.save(snapshot)
    assert list(td.Matcher.open(snapshot)) == ["s2"]
    assert list_files(snapshot) == list_named_files(snapshot)
    searches.remove("s2")
    searches.save(snapshot)
    assert len(td.Matcher.open(snapshot)) == 0
    assert list_files(snapshot) == list_named_files(snapshot)


def test_a_removal_rewrites_nothing_but_the_dead(tmp_path):
    searches = td.Matcher()
    searches.add_many((n, f"a = {n}") for n in range(200))
    searches.save(tmp_path)
    (segment,) = [entry["name"] for entry in manifest_in(tmp_path)["segments"]]
    assert manifest_in(tmp_path)["dead"] is None
    before = (tmp_path / segment).stat()
    for matcher in (searches, td.Matcher.open(tmp_path)):
        matcher.remove(next(iter(matcher)))
        matcher.save(tmp_path)
        assert [entry["name"] for entry in manifest_in(tmp_path)["segments"]] == [segment]
        assert (tmp_path / segment).stat().st_mtime_ns == before.st_mtime_ns
        assert len(td.Matcher.open(tmp_path, verify=True)) == 199
        assert list_files(tmp_path) == list_named_files(tmp_path)


def test_an_opened_matcher_can_be_saved_elsewhere(snapshot, tmp_path):
    opened = td.Matcher.open(snapshot)
    opened.save(tmp_path / "other")
    assert list_files(tmp_path / "other") == list_files(snapshot)
    other = td.Matcher.open(tmp_path / "other", verify=True)
    assert {id: other[id] for id in other} == {id: opened[id] for id in opened}


def test_a_reader_keeps_the_files_it_has_mapped(snapshot):
    reader = td.Matcher.open(snapshot)
    writer = td.Matcher.open(snapshot)
    writer.remove_many(["s1", "s2"])
    writer.add("s9", "a = 9")
    writer.save(snapshot)
    assert list_files(snapshot) == list_named_files(snapshot)
    assert sorted(reader.match({"a": 1, "t": "2023-12-31"})) == ["s1", "s2"]
    assert reader["s2"] == td.parse("age(t) < 7 days or not (a in [1 .. 5))")
    assert td.Matcher.open(snapshot).match({"a": 9, "t": "2000-01-01"}) == ["s9"]


def test_readers_see_the_old_or_the_new_while_others_save(tmp_path):
    folder = tmp_path / "snap"
    versions = []
    for version in range(4):
        made = td.Matcher()
        made.add_many((n, f"a = {n} and v = {version}") for n in range(version, version + 100))
        versions.append(made)
    versions[0].save(folder)
    done, problems = threading.Event(), []

    def read():
        while not done.is_set():
            try:
                seen = td.Matcher.open(folder, verify=True)
                ids = list(seen)
                if ids != list(range(ids[0], ids[0] + 100)) or seen.match({"a": 50, "v": ids[0]}) != [50]:
                    problems.append(ids)
            except td.TidingsError as problem:
                problems.append(problem)

    def write(first):
        for turn in range(12):
            versions[(first + turn) % 4].save(folder)

    readers = [threading.Thread(target=read) for _ in range(2)]
    writers = [threading.Thread(target=write, args=(first,)) for first in (1, 2)]
    for thread in readers + writers:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert not problems
    assert list_files(folder) == list_named_files(folder)


def test_another_process_opens_it(snapshot):
    program = f"import tidings as td; print(td.Matcher.open({str(snapshot)!r}).match({{'a': 1, 't': '2000-01-01'}}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['s1']"


# Format 1, and other matchers ----------------------------------------------------------------------


def test_other_matchers_are_kept_as_their_filters(tmp_path):
    searches = td.Matcher("brute")
    searches.add("s1", "a = 1")
    searches.save(tmp_path)
    assert manifest_in(tmp_path)["format"] == 1
    opened = td.Matcher.open(tmp_path)
    assert opened.kind == "brute"
    assert opened.match({"a": 1}) == ["s1"]
    engine = td.Matcher()
    engine.add("s2", "a = 1")
    engine.save(tmp_path)
    assert td.Matcher.open(tmp_path).match({"a": 1}) == ["s2"]
    assert list_files(tmp_path) == list_named_files(tmp_path)


@pytest.mark.parametrize("kind", ["brute", ENGINE])
def test_format_1_is_still_read(tmp_path, kind):
    searches = td.Matcher("brute", schema=td.Schema({"a": "number"}))
    searches.add_many([("s1", "a = 1"), ("s2", "not (a in [1 .. 5))")])
    searches.save(tmp_path)
    old = {name: value for name, value in manifest_in(tmp_path).items() if name != "checksum"}
    (tmp_path / "manifest.json").write_text(json.dumps({**old, "kind": kind}))
    opened = td.Matcher.open(tmp_path, verify=True)
    assert opened.kind == kind
    assert sorted(opened.match({"a": 1})) == ["s1"]
    opened.save(tmp_path)
    assert manifest_in(tmp_path)["format"] == (4 if kind == ENGINE else 1)
    assert td.Matcher.open(tmp_path).match({"a": 7}) == ["s2"]
    assert list_files(tmp_path) == list_named_files(tmp_path)


# Pickles -------------------------------------------------------------------------------------------


def test_a_pickle_ships_arrays_and_no_filters():
    searches = td.Matcher()
    searches.add_many((f"s{n}", f"make = 'ford' and price < {n}") for n in range(2000))
    sent = pickle.dumps(searches)
    assert b"tidings.model" not in sent
    assert b"Lock" not in sent
    assert b"Thread" not in sent
    again = pickle.loads(sent)
    assert sorted(again.match({"make": "ford", "price": 1990})) == sorted(
        searches.match({"make": "ford", "price": 1990})
    )
    assert again["s7"] == searches["s7"]


def test_a_pickle_of_an_opened_matcher_needs_no_files(snapshot):
    opened = td.Matcher.open(snapshot)
    opened.remove("s1")
    sent = pickle.dumps(opened)
    for path in snapshot.iterdir():
        path.unlink()
    again = pickle.loads(sent)
    assert list(again) == ["s2"]
    assert again.match({"a": 9, "t": "2000-01-01"}) == ["s2"]


# The page ------------------------------------------------------------------------------------------

PAGE = (Path(__file__).parents[4] / "docs" / "snapshot.md").read_text(encoding="utf-8")


def test_the_page_shows_a_manifest_as_it_is_written(tmp_path):
    for attempt in range(20):  # on a busy machine a merge in the background may be done with `s2` before it is saved
        searches = td.Matcher(schema=td.Schema({"make": "text", "price": "number"}))
        searches.add_many([("s1", "make = 'ford' and price < 9000"), ("s2", "price in [2000 .. 5000)")])
        searches.save(tmp_path / str(attempt))
        searches.remove("s2")
        searches.save(tmp_path / str(attempt))
        real = manifest_in(tmp_path / str(attempt))
        if real["dead"] is not None:
            break
    (block,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    shown = json.loads(block)
    assert shown.keys() == real.keys()
    assert shown["segments"][0].keys() == real["segments"][0].keys()
    assert shown["dead"].keys() == real["dead"].keys()
    for name in ("format", "kind", "count", "now", "needs"):
        assert shown[name] == real[name]
    assert shown["segments"][0]["columns"] == real["segments"][0]["columns"]
    assert shown["files"]["schema"]["bytes"] == real["files"]["schema"]["bytes"]


def test_the_page_names_every_array(tmp_path):
    searches = td.Matcher()
    whole = " and ".join(f"(a = {n} or b = {n} or t = '{n}')" for n in range(5))
    filters = ["a = 1", "t like '*x*'", "p near (1, 2) 3 km", "a < b", whole, f"c in ({2**53 + 1}, {2**53})"]
    searches.add_many((f"s{n}", text) for n, text in enumerate(filters))
    searches.save(tmp_path / "text ids")
    numbered = td.Matcher()
    numbered.add(1, "a = 1")
    numbered.save(tmp_path / "integer ids")
    written = set()
    for folder in tmp_path.iterdir():
        for segment in manifest_in(folder)["segments"]:
            written |= {re.sub(r"\.\d+\.", ".N.", name) for name in segment["arrays"]}
    shown = set(re.findall(r"`([a-z]+(?:\.N)?\.[a-z_]+)`", PAGE)) - {"manifest.json"}
    assert shown - {"space.N.line"} == written
