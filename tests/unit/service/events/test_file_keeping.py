"""Files that were read are kept for a while, folded where they are many, and removed; others are never touched."""

import os
import threading
from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("orjson", reason="needs tidings[service]")

from tidings.service.events.event_files import list_files, make_name, write_file
from tidings.service.events.file_keeping import FileKeeper, TidyTuning, find_read
from tidings.service.events.recent import FOLDED, RecentFiles
from tidings.service.store.base import StatusReport
from tidings.service.store.memory.store import MemoryStore

NOW = datetime(2024, 7, 1, 12, tzinfo=UTC)
KEPT = timedelta(days=1)
TUNING = TidyTuning(most=6, left=2, folded_size=50)


def put(folder, **ago):
    number = int((NOW - timedelta(**ago)).timestamp() * 10**9)
    write_file(folder, name := make_name(number), [b'{"id": %d}\n' % (number % 10**6)])
    os.utime(folder / name, (number / 1e9, number / 1e9))
    return number


def list_numbers(folder):
    return sorted(file.number for file in list_files(folder))


def test_only_files_that_were_read_and_are_old_are_removed(tmp_path):
    put(tmp_path, days=3)
    old = put(tmp_path, days=2)
    unread = put(tmp_path, hours=30)
    new = put(tmp_path, hours=1)
    (tmp_path / "notes.txt").write_text("mine")
    assert FileKeeper(tmp_path, kept=KEPT).tidy(old, NOW) == 2
    assert list_numbers(tmp_path) == [unread, new]
    assert FileKeeper(tmp_path, kept=KEPT).tidy(0, NOW) == 0
    assert (tmp_path / "notes.txt").exists()
    assert FileKeeper(tmp_path / "missing", kept=KEPT).tidy(old, NOW) == 0


def test_many_files_are_folded_and_looked_back_at_as_before(tmp_path):
    numbers = [put(tmp_path, minutes=minutes, microseconds=minutes) for minutes in range(30, 20, -1)]
    recent = RecentFiles(tmp_path, kept=KEPT)
    before = recent.sample(NOW)
    FileKeeper(tmp_path, kept=KEPT, tuning=TUNING).tidy(numbers[-2], NOW)
    assert list_numbers(tmp_path) == numbers[-3:]
    assert 1 < len(list_numbers(tmp_path / FOLDED)) < 7
    assert recent.sample(NOW) == before
    later = NOW + timedelta(days=300)
    os.utime(tmp_path / FOLDED, None)
    FileKeeper(tmp_path, kept=KEPT, tuning=TUNING).tidy(numbers[-2], datetime.now(UTC) + timedelta(days=2))
    assert list_numbers(tmp_path / FOLDED) == []
    assert recent.sample(later).events == []


def test_what_a_killed_writer_left_is_swept_after_an_hour(tmp_path):
    put(tmp_path, minutes=1)
    young, old = (tmp_path / f".{make_name(number)}" for number in (1, 2))
    for path, age in ((young, 60), (old, 7200)):
        path.write_bytes(b"{")
        os.utime(path, (NOW.timestamp() - age,) * 2)
    FileKeeper(tmp_path, kept=KEPT).tidy(0, NOW)
    assert (young.exists(), old.exists()) == (True, False)


def test_one_process_at_a_time_tidies(tmp_path):
    number = put(tmp_path, days=2)
    folder = FileKeeper(tmp_path, kept=KEPT)
    with folder._take_turn() as is_ours:  # noqa: SLF001 - as another process would
        assert is_ours
        counts = []
        other = threading.Thread(target=lambda: counts.append(folder.tidy(number, NOW)))
        other.start()
        other.join()
    assert counts == [0]
    assert folder.tidy(number, NOW) == 1


def test_the_pipeline_says_what_it_has_read():
    store = MemoryStore()
    assert find_read(store.statuses) == 0
    store.statuses.write(StatusReport("other", NOW, {"events_read": make_name(5)}))
    for fact, read in ((None, 0), ("nonsense", 0), (make_name(7), 0), (make_name(100 * 10**9), 40 * 10**9)):
        store.statuses.write(StatusReport("pipeline", NOW, {"events_read": fact}))
        assert find_read(store.statuses) == read


def test_a_folder_that_cannot_be_written_to_is_reported_and_left(tmp_path, monkeypatch, caplog):
    old = put(tmp_path, days=2)

    def refuse(self, **_):
        raise PermissionError(13, "Permission denied", str(self))

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.unlink", refuse)
        assert FileKeeper(tmp_path, kept=KEPT).tidy(old, NOW) == 0
    (line,) = caplog.messages
    assert line.startswith(f"cannot tidy the folder of events `{tmp_path}`: Permission denied; let the user")
    assert FileKeeper(tmp_path, kept=KEPT).tidy(old, NOW) == 1
