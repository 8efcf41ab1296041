"""The files of a service's events: which of them a batch takes, and their lines: each is an event, or refused."""

import json

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tidings.spark.pipeline.sources.event_folder import EventFolderReader, gather_lines

START = {"n": 0, "newest": ""}


def write(folder, number, *lines):
    name = f"{number:020}-0123abcd.jsonl"
    (folder / name).write_bytes(b"".join(line + b"\n" for line in lines))
    return name


@pytest.fixture
def open_reader(tmp_path):
    (tmp_path / "events").mkdir()

    def build(**options):
        values = {"id": "id", "time": "", "largest": 100, "files": 2, "bytes": 1000, "tasks": 2} | options
        places = {"folder": tmp_path / "events", "log": tmp_path / "files.jsonl"}
        return EventFolderReader({name: str(value) for name, value in (values | places).items()}, list("abcd"))

    return build


def test_the_oldest_files_come_first_and_each_once_also_after_a_crash(tmp_path, open_reader):
    folder = tmp_path / "events"
    names = [write(folder, number, b'{"id": 1}') for number in (5, 3, 4)]
    write(folder, 9, b"{}")
    (folder / f".{names[0]}").write_text("being written")
    reader = open_reader()
    first = reader.latestOffset(START, None)
    assert first == {"n": 1, "newest": names[2]}
    assert open_reader().latestOffset(START, None) == first, "Spark did not hear of it: it is told again"
    second = open_reader().latestOffset(first, None)
    assert second["n"] == 2
    paths = [path for part in open_reader().partitions(START, second) for path in part.paths]
    assert [path.rpartition("/")[2] for path in paths] == [*sorted(names), write(folder, 9, b"{}")]
    for name in names:
        (folder / name).unlink()
    reader = open_reader()
    assert reader.latestOffset(START, None) == first
    reader.commit(second)
    assert reader.latestOffset(second, None) == second
    late = write(folder, 1, b"{}")
    third = reader.latestOffset(second, None)
    assert third == {"n": 3, "newest": second["newest"]}, "a file that was begun long ago is read all the same"
    assert [part.paths[0].rpartition("/")[2] for part in reader.partitions(second, third)] == [late]


def test_a_file_that_somebody_put_there_is_read_and_says_nothing_of_how_far_reading_came(tmp_path, open_reader):
    folder, reader = tmp_path / "events", open_reader()
    (folder / "mine.jsonl").write_text('{"id": 1}\n')
    first = reader.latestOffset(START, None)
    assert first == {"n": 1, "newest": ""}
    assert [part.paths[0].rpartition("/")[2] for part in reader.partitions(START, first)] == ["mine.jsonl"]
    name = write(folder, 5, b"{}")
    assert reader.latestOffset(first, None) == {"n": 2, "newest": name}


def test_a_batch_is_bounded_by_bytes_and_split_by_size(tmp_path, open_reader):
    for number in range(4):
        write(tmp_path / "events", number, b"x" * 600)
    reader = open_reader(files=10)
    assert reader.latestOffset(START, None)["n"] == 1
    assert sum(len(part.paths) for part in reader.partitions(START, {"n": 1, "newest": ""})) == 1
    reader.prepareForTriggerAvailableNow()
    write(tmp_path / "events", 9, b"{}")
    assert reader.latestOffset({"n": 4, "newest": "9"}, None) == {"n": 4, "newest": "9"}, "it came later"


def test_lines_are_events_or_say_why_not(tmp_path):
    write(tmp_path, 1, b'{"a": 1}', b"", b'{"b":\r2}', b"y" * 40, b"z" * 21)
    (tmp_path / "torn.jsonl").write_bytes(b'{"c": 3}')
    paths = [str(path) for path in sorted(tmp_path.iterdir())] + [str(tmp_path / "gone.jsonl")]
    rows = [row for batch in gather_lines(paths, 20, piece_bytes=10) for row in batch.to_pylist()]
    assert [row["_text"] for row in rows if row["_text"]] == [b'{"a": 1}', b'{"b":\r2}', b'{"c": 3}']
    refused = [(row["_broken"].partition(" bytes")[0], row["_file"]) for row in rows if row["_broken"]]
    assert refused[:2] == [("40", "y" * 21), ("21", "z" * 21)]
    assert refused[2][0] == "the file cannot be read: No such file or directory"
    assert json.loads(refused[2][1])["file"].endswith("gone.jsonl")


def test_a_start_that_finds_nothing_takes_an_empty_batch_once_and_one_that_finds_events_takes_none(
    tmp_path, open_reader
):
    reader = open_reader()
    first = reader.latestOffset(START, None)
    assert first == {"n": 1, "newest": ""}
    assert [part.paths for part in reader.partitions(START, first)] == [()], "a task, so that a worker starts"
    assert sum(batch.num_rows for part in reader.partitions(START, first) for batch in reader.read(part)) == 0
    assert reader.latestOffset(first, None) == first
    name = write(tmp_path / "events", 5, b"{}")
    second = reader.latestOffset(first, None)
    assert second == {"n": 2, "newest": name}
    again = open_reader()
    third = again.latestOffset(second, None)
    assert third == {"n": 3, "newest": name}, "a start again has an empty batch of its own"
    write(tmp_path / "events", 6, b"{}")
    last = open_reader()
    assert [len(part.paths) for part in last.partitions(third, last.latestOffset(third, None))] == [1]


def test_a_run_that_ends_when_all_is_read_takes_no_empty_batch(open_reader):
    reader = open_reader()
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset(START, None) == START
