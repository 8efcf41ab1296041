"""What is acknowledged is in a finished file, whatever happens; many requests share one flush."""

import asyncio
import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("orjson", reason="needs tidings[service]")

from tidings.service.events import event_files, folder_writer
from tidings.service.events.backlog import EventBacklog
from tidings.service.events.event_files import EventFile, get_number, list_files, make_name
from tidings.service.events.event_writer import EventsDelayed
from tidings.service.events.folder_writer import FolderWriter
from tidings.service.events.intake import ReadyEvents

SOURCE = Path(__file__).resolve().parents[4] / "src"


def make_backlog(tmp_path, **bounds):
    return EventBacklog(tmp_path / "events", **({"most": 10**9, "least_free": 0} | bounds))


def make_events(*ids):
    return ReadyEvents([json.dumps({"id": id}).encode() for id in ids], list(map(str, ids)))


def read_ids(folder):
    lines = [line for path in sorted(folder.glob("[0-9]*.jsonl")) for line in path.read_bytes().split(b"\n")]
    return [json.loads(line)["id"] for line in lines if line]


def test_events_are_lines_of_a_file_whose_name_is_its_time(tmp_path):
    backlog = make_backlog(tmp_path)
    writer = FolderWriter(backlog, clock=lambda: 17)
    asyncio.run(writer.write(make_events(1, 2)))
    asyncio.run(writer.write(make_events(3)))
    asyncio.run(writer.write(ReadyEvents()))
    writer.close()
    first, second = sorted(list_files(backlog.folder))
    assert (first.number, second.number) == (17, 18)
    assert read_ids(backlog.folder) == [1, 2, 3]
    assert backlog.waiting == first.size + second.size == backlog.measure(0)
    assert backlog.measure(17) == second.size


def test_a_file_is_numbered_after_what_was_read_wherever_the_clock_is(tmp_path):
    (tmp_path / "events").mkdir()
    make_backlog(tmp_path).measure(1000)
    backlog = make_backlog(tmp_path)  # another process, or the same after a start
    writer = FolderWriter(backlog, clock=lambda: 17)
    asyncio.run(writer.write(make_events(1)))
    backlog.measure(2000)
    asyncio.run(writer.write(make_events(2)))
    writer.close()
    assert sorted(file.number for file in list_files(backlog.folder)) == [1001, 2001]


def test_requests_that_come_during_a_flush_share_the_next_one(tmp_path, monkeypatch):
    backlog, flushes = make_backlog(tmp_path), []

    async def post_many():
        writer = FolderWriter(backlog)
        gate = asyncio.Event()
        loop = asyncio.get_running_loop()
        write_file = folder_writer.write_file

        def write_slowly(folder, name, lines):
            flushes.append(len(lines))
            if len(flushes) == 1:
                loop.call_soon_threadsafe(gate.set)
                asyncio.run_coroutine_threadsafe(asyncio.wait_for(others_wait.wait(), 30), loop).result(30)
            write_file(folder, name, lines)

        monkeypatch.setattr(folder_writer, "write_file", write_slowly)
        others_wait = asyncio.Event()
        first = asyncio.create_task(writer.write(make_events(0)))
        await gate.wait()
        others = [asyncio.create_task(writer.write(make_events(n))) for n in range(1, 101)]
        await asyncio.sleep(0)
        others_wait.set()
        await asyncio.gather(first, *others)
        writer.close()

    asyncio.run(post_many())
    assert flushes == [1, 100]
    assert read_ids(backlog.folder) == list(range(101))


def test_a_file_has_a_bounded_size(tmp_path):
    async def post_many():
        writer = FolderWriter(make_backlog(tmp_path), file_bytes=20)
        await asyncio.gather(*(writer.write(make_events(n)) for n in range(40)))
        writer.close()

    asyncio.run(post_many())
    assert sorted(read_ids(tmp_path / "events")) == list(range(40))
    assert max(file.size for file in list_files(tmp_path / "events")) <= 40


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENOSPC, "the disk of the service is full"),
        (errno.EIO, "the service cannot write events: input/output error"),
    ],
)
def test_a_disk_that_fails_is_told_and_leaves_nothing_behind(tmp_path, monkeypatch, number, reason):
    backlog = make_backlog(tmp_path)
    writer = FolderWriter(backlog)

    def fail(descriptor):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(event_files.os, "fsync", fail)
    with pytest.raises(EventsDelayed) as refusal:
        asyncio.run(writer.write(make_events(1)))
    assert str(refusal.value) == reason
    assert list(backlog.folder.iterdir()) == []
    monkeypatch.undo()
    asyncio.run(writer.write(make_events(2)))
    writer.close()
    assert read_ids(backlog.folder) == [2]


def test_publishers_wait_while_the_pipeline_is_behind_or_the_disk_full(tmp_path):
    backlog = make_backlog(tmp_path, most=25)
    writer = FolderWriter(backlog)
    asyncio.run(writer.write(make_events(1, 2)))
    with pytest.raises(EventsDelayed, match="the pipeline is behind") as refusal:
        asyncio.run(writer.write(make_events(3)))
    assert refusal.value.retry_after > 0
    backlog.measure(max(file.number for file in list_files(backlog.folder)))
    asyncio.run(writer.write(make_events(3)))
    writer.close()
    full = make_backlog(tmp_path, least_free=2**62)
    with pytest.raises(EventsDelayed, match="disk of the service is full"):
        asyncio.run(FolderWriter(full).write(make_events(4)))


def test_how_far_the_pipeline_has_read_is_remembered(tmp_path):
    backlog = make_backlog(tmp_path)
    writer = FolderWriter(backlog, clock=lambda: 17)
    for id in range(3):
        asyncio.run(writer.write(make_events(id)))
    writer.close()
    assert [backlog.measure(read) for read in (0, 17, 18, 0)] == [30, 20, 10, 10]
    assert make_backlog(tmp_path).measure(0) == 10
    assert make_backlog(tmp_path / "missing").measure(5) == 0


def test_other_files_are_no_events(tmp_path):
    name = make_name(5)
    for other in (f".{name}", "notes.txt", f"{name}.tmp", "5-0.jsonl"):
        (tmp_path / other).write_bytes(b"x")
    (tmp_path / name).write_bytes(b"{}\n")
    assert list(list_files(tmp_path)) == [EventFile(5, name, 3)]
    assert get_number(f".{name}") is None
    assert list(list_files(tmp_path / "missing")) == []


KILLED = textwrap.dedent("""
    import asyncio, sys
    from pathlib import Path
    from tidings.service.events.backlog import EventBacklog
    from tidings.service.events.folder_writer import FolderWriter
    from tidings.service.events.intake import ReadyEvents

    async def post(writer, client):
        number = 0
        while True:
            ids = [f"{client}-{number + n}" for n in range(50)]
            await writer.write(ReadyEvents([b'{"id": "%s"}' % id.encode() for id in ids], ids))
            print(*ids, flush=True)
            number += 50

    async def main():
        writer = FolderWriter(EventBacklog(Path(sys.argv[1]), most=10**9, least_free=0))
        await asyncio.gather(*(post(writer, client) for client in range(4)))

    asyncio.run(main())
""")


def test_what_was_acknowledged_before_a_kill_is_in_whole_lines(tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path / "events")]
    writing = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(SOURCE)})
    acknowledged = []
    for line in writing.stdout:
        acknowledged += line.split()
        newest = max((tmp_path / "events").glob("[0-9]*.jsonl"))
        assert newest.read_bytes().count(b"}\n") % 50 == 0  # what is visible is whole
        if len(acknowledged) == 50 * 40:
            writing.send_signal(signal.SIGKILL)  # in the middle of whatever it does
    writing.stdout.close()
    writing.wait()
    whole = acknowledged[: len(acknowledged) // 50 * 50]  # the pipe may have cut the last word
    ids = read_ids(tmp_path / "events")  # each line is JSON, or this fails
    assert {id.decode() for id in whole} <= set(ids)
    assert len(ids) == len(set(ids))
