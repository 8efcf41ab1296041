"""Feeds: where changes of subscriptions come from, as files, and what becomes of files that are none."""

import gzip
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidings as td


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def put(folder, name, content):
    """Write as the docs say: beside, then renamed into place."""
    folder.mkdir(exist_ok=True)
    beside = folder / f".{name}"
    beside.write_bytes(content if isinstance(content, bytes) else content.encode())
    beside.rename(folder / name)


def as_parquet(rows):
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


ROWS = [{"id": "s1", "filter": "a = 1"}, {"id": "s2", "filter": "price <= 9"}]


def in_force(live):
    opened = live.open()
    return {id: td.render(opened[id]) for id in opened}


@pytest.fixture
def live_and_folder(tmp_path):
    (tmp_path / "changes").mkdir()
    return td.Live(tmp_path / "live", follow=tmp_path / "changes"), tmp_path / "changes"


def test_change_files_are_applied_once_in_the_order_of_their_names_and_later_rows_win(live_and_folder):
    live, folder = live_and_folder
    put(folder, "02.jsonl", lines({"id": "s1", "filter": "a = 2"}, {"id": "s2", "filter": "a = 1"}))
    put(folder, "01.jsonl", lines({"id": "s1", "filter": "a = 1"}, {"id": "s3", "filter": "a = 1"}))
    put(folder, "03.jsonl", lines({"id": "s2", "filter": None}, {"id": "s3"}, {"id": "s3", "filter": "b = 3"}))
    change = live.sync()
    assert (change.version, change.added, change.refused) == (2, 2, [])
    assert in_force(live) == {"s1": "a = 2", "s3": "b = 3"}
    assert live.sync().version == 2
    live.remove("s3")
    put(folder, "00.jsonl", lines({"id": "s4", "filter": "a = 4"}, {"id": "s1", "filter": ""}))
    assert (live.sync().added, in_force(live)) == (1, {"s4": "a = 4"})  # new, whatever its name; nothing is read twice
    (folder / "01.jsonl").unlink()
    assert in_force(td.Live(live.folder, follow=folder)) == {"s4": "a = 4"}
    assert td.Live(live.folder, follow=folder).sync().added == 0


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("1.csv", b"id,filter,notation\ns1,a = 1,\ns2,price_to=9,url\ns3,,\n"),
        ("1.parquet", as_parquet([*ROWS, {"id": "s3"}])),
        ("1.jsonl.gz", gzip.compress(lines(*ROWS).encode())),
        ("1.json", lines({"id": "s1", "filter": "a = 1"}, {"id": "s2", "filter": "price_to=9", "notation": "url"})),
    ],
)
def test_change_files_of_every_form(live_and_folder, name, content):
    live, folder = live_and_folder
    live.add("s3", "c exists")
    put(folder, name, content)
    put(folder, "2.jsonl", lines({"id": "s3", "filter": None}))
    assert live.sync().refused == []
    assert in_force(live) == {"s1": "a = 1", "s2": "price <= 9"}


def test_what_is_not_a_change_file_is_left_alone(live_and_folder):
    live, folder = live_and_folder
    (folder / ".half.jsonl").write_text("{")
    (folder / "_SUCCESS").write_text("")
    (folder / "notes.txt").write_text("hello")
    (folder / "below.jsonl").mkdir()
    assert live.sync().version == 1


def test_bad_rows_are_listed_by_file_and_line_while_the_others_are_in_force(live_and_folder):
    live, folder = live_and_folder
    rows = lines({"id": "s1", "filter": "a = 1"}, {"filter": "a = 1"}, {"id": "s2", "filter": "a ="}, {"id": 1.5})
    put(folder, "1.jsonl", rows + "{\n" + lines({"id": "s3", "filter": "a = 3"}))
    put(folder, "2.jsonl", lines({"id": "s4", "filter": "a = 'x"}, {"id": 5, "filter": "a = 5"}))
    put(folder, "3.parquet", b"PAR1 no")
    put(folder, "4.jsonl.gz", b"\x1f\x8b broken")
    put(folder, "5.jsonl", b'{"id": "s\xff", "filter": "a = 1"}\n')
    put(folder, "6.csv", "name,price\nx,1\n")
    put(folder, "7.jsonl", lines({"id": "s7", "filter": "a = 7"}))
    change = live.sync()
    refusals = [(id, str(problem).split("\n")[0]) for id, problem in change.refused]
    for name, line in (("1.jsonl", "line 2"), ("1.jsonl", "line 4"), ("1.jsonl", "line 5"), ("5.jsonl", "line 1")):
        assert any(id is None and name in message and line in message for id, message in refusals), (
            name,
            line,
            refusals,
        )
    for name in ("3.parquet", "4.jsonl.gz", "6.csv"):
        assert any(name in message for _, message in refusals), (name, refusals)
    assert {id for id, _ in refusals if id is not None} == {"s2", "s4", 5}
    assert in_force(live) == {"s1": "a = 1", "s3": "a = 3", "s7": "a = 7"}
    assert live.sync() == type(change)(change.version)  # a file is read once


def test_a_refused_change_leaves_the_one_before_it_in_force_though_both_are_seen_together(live_and_folder):
    live, folder = live_and_folder
    live.add_many({"gone": "a = 1", "edited": "a = 1", "back": "a = 1"})
    put(folder, "1.jsonl", lines({"id": "gone"}, {"id": "edited", "filter": "a = 2"}, {"id": "back"}))
    put(folder, "2.jsonl", lines({"id": "gone", "filter": "a ="}, {"id": "edited", "filter": "a ="}))
    put(folder, "3.jsonl", lines({"id": "back", "filter": "a = 3"}, {"id": "brief", "filter": "a = 4"}))
    put(folder, "4.jsonl", lines({"id": "brief", "filter": None}))
    change = live.sync()
    assert in_force(live) == {"edited": "a = 2", "back": "a = 3"}
    assert (change.added, change.removed, [id for id, _ in change.refused]) == (2, 1, ["gone", "edited"])


def test_a_file_of_all_that_has_an_id_twice_keeps_its_last_good_filter(tmp_path):
    path = tmp_path / "all.jsonl"
    path.write_text(
        lines({"id": "s1", "filter": "a = 1"}, {"id": "s1", "filter": "a = 2"}, {"id": "s1", "filter": "a"})
    )
    live = td.Live(tmp_path / "live", follow=path)
    assert [id for id, _ in live.sync().refused] == ["s1"]
    assert in_force(live) == {"s1": "a = 2"}


def test_a_file_that_holds_all_subscriptions_removes_what_it_lacks(tmp_path):
    path = tmp_path / "all.jsonl"
    path.write_text(lines({"id": "s1", "filter": "a = 1"}, {"id": "s2", "filter": "a = 2"}))
    live = td.Live(tmp_path / "live", shards=2, follow=path)
    assert live.sync().added == 2
    assert live.sync().version == 2
    put(tmp_path, "all.jsonl", lines({"id": "s2", "filter": "a = 3"}, {"id": "s3", "filter": "b = 1"}))
    change = live.sync()
    assert (change.added, change.removed, in_force(live)) == (2, 1, {"s2": "a = 3", "s3": "b = 1"})
    put(tmp_path, "all.jsonl", "not such a file")
    assert len(live.sync().refused) == 1
    assert in_force(live) == {"s2": "a = 3", "s3": "b = 1"}
    path.unlink()
    assert "cannot read" in str(live.sync().refused[0][1])
    assert len(live) == 2
    put(tmp_path, "all.jsonl", lines({"id": 1, "filter": "b = 'x'"}, {"id": 2, "filter": "b = 'y'"}))
    assert live.sync().refused == []  # other ids, another kind: all that was there has gone before
    assert in_force(live) == {1: "b = 'x'", 2: "b = 'y'"}
    put(tmp_path, "all.jsonl", "")
    assert "holds no subscription" in str(live.sync().refused[0][1])  # somebody may be writing it
    assert len(live) == 2
    put(tmp_path, "all.jsonl", lines({"id": 2, "filter": "b = 'z'"}) + '{"id": 1, "filt')
    change = live.sync()
    assert (len(change.refused), change.removed) == (1, 0)  # what cannot be read may be any of them
    assert in_force(live) == {1: "b = 'x'", 2: "b = 'z'"}


def test_a_claim_takes_in_what_was_written_before_and_nothing_after(live_and_folder):
    live, folder = live_and_folder
    put(folder, "1.jsonl", lines({"id": "s1", "filter": "a = 1"}))
    first = live.claim("q", 0)
    put(folder, "2.jsonl", lines({"id": "s2", "filter": "a = 2"}))
    other = td.Live(live.folder, follow=folder)
    assert set(other.open(other.claim("q", 0).version)) == {"s1"}
    assert set(other.open(other.claim("q", 1).version)) == {"s1", "s2"}
    assert live.claim("q", 0) == first
