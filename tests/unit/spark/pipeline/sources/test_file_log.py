"""Which files belong to which batch: every file to one, whatever crashes in between, and no name for ever."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from tidings.errors import CheckpointError
from tidings.spark.pipeline.sources import file_log
from tidings.spark.pipeline.sources.file_log import FileLog, read_entries

ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3)),
        st.tuples(st.just("forget"), st.integers(0, 9)),
        st.tuples(st.just("tear"), st.binary(min_size=1, max_size=20).filter(lambda rest: b"\n" not in rest)),
        st.tuples(st.just("reopen")),
    ),
    max_size=15,
)


@given(ACTS)
@examples(60)
def test_entries_stay_as_they_were_told_while_a_file_of_theirs_exists(tmp_path_factory, acts):
    path = tmp_path_factory.mktemp("log") / "files.jsonl"
    log, entries, existing = FileLog(path), {}, set()
    for act in acts:
        match act:
            case "append", count:
                names = [f"{len(entries)}-{number}.jsonl" for number in range(count)]
                entries[log.append(names)] = tuple(names)
                existing.update(names)
            case "forget", done:
                existing = {name for name in existing if int(name.partition("-")[0]) >= done}
                log.forget(min(done, log.newest), existing)
            case "tear", rest:  # a crash in the middle of an entry, which nobody heard of
                if path.exists():
                    with path.open("ab") as file:
                        file.write(rest)
                log = FileLog(path)
            case ("reopen",):
                log = FileLog(path)
    assert log.newest == len(entries)
    assert log.collect_names() >= existing
    for number, names in entries.items():
        if existing.intersection(names):
            assert FileLog(path).get(number) == log.get(number) == names
    assert dict(read_entries(path) if path.exists() else ()).items() <= entries.items()


def test_what_was_read_and_removed_is_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(file_log, "SLACK", 3)
    log = FileLog(tmp_path / "files.jsonl")
    for number in range(20):
        log.append([f"{number}.jsonl"])
        log.forget(number, {f"{number}.jsonl"})
    assert len(list(read_entries(tmp_path / "files.jsonl"))) <= 6
    assert FileLog(tmp_path / "files.jsonl").newest == 20


def test_an_entry_that_is_not_there_and_a_newer_format_are_refused(tmp_path):
    path = tmp_path / "files.jsonl"
    FileLog(path).append(["a"])
    with pytest.raises(CheckpointError, match="no entry 7"):
        FileLog(path).get(7)
    path.write_text(json.dumps({"format": 99, "newest": 0}) + "\n")
    with pytest.raises(CheckpointError, match="format 99"):
        FileLog(path)
    path.write_text("nonsense\n")
    with pytest.raises(CheckpointError, match="cannot be read"):
        FileLog(path)
