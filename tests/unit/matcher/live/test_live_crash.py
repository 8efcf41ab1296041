"""Writers that die at any moment, and writers that write at once: the version before stands, nothing is lost."""

import multiprocessing
import os
import tempfile
from itertools import count
from pathlib import Path

import pytest
from tests.unit.matcher.live.test_live import QUICK, START, build_fresh, list_answers, list_data_files, list_named_files

import tidings as td
from tidings.matcher.live import versions
from tidings.matcher.tuning import LiveTuning


@pytest.fixture
def quick():
    with tempfile.TemporaryDirectory(dir=QUICK) as folder:
        yield Path(folder)


class Died(BaseException):
    """What ends a writer."""


class CountedSteps:
    """Lets file operations through until the one at which the writer dies; `dead` lets none through after it."""

    def __init__(self, monkeypatch, last, *, dead, after):
        self.last, self.dead, self.after, self.count = last, dead, after, 0
        for owner, name in (
            (Path, "replace"), (Path, "unlink"), (Path, "mkdir"), (Path, "open"), (os, "fsync"), (os, "link"),
        ):  # fmt: skip
            monkeypatch.setattr(owner, name, self._guard_step(getattr(owner, name), name))

    def _guard_step(self, real, name):
        def step(*arguments, **named):
            if name == "open" and "wb" not in arguments:
                return real(*arguments, **named)
            self.count += 1
            if self.count == self.last or (self.dead and self.count > self.last):
                if self.after and self.count == self.last:
                    real(*arguments, **named)
                raise Died
            return real(*arguments, **named)

        return step


NEXT = {"s1": "a = 2", "s4": "b = 1"}


@pytest.mark.parametrize("dead", [True, False], ids=["killed", "failed"])
@pytest.mark.parametrize("after", [True, False], ids=["after", "before"])
def test_whenever_a_writer_dies_the_version_before_stands_and_the_next_goes_on(quick, monkeypatch, dead, after):
    tuning = LiveTuning(versions_kept=2)
    for last in count(1):
        folder = quick / str(last)
        live = td.Live(folder, shards=2, tuning=tuning)
        live.add_many({"s0": "c exists"})
        before = live.add_many(START).version
        live.remove("s0")
        with monkeypatch.context() as patch:
            steps = CountedSteps(patch, last, dead=dead, after=after)
            try:
                live.change(NEXT.items(), ["s2"])
            except Died:
                pass
            else:
                break
        newest = versions.find_newest(folder)
        filters = START if newest == before + 1 else {"s1": "a = 2", "s3": "a in [0 .. 3)", "s4": "b = 1"}
        assert newest - before in (1, 2)
        assert list_answers(live.open()) == list_answers(build_fresh(filters))
        assert list_answers(live.open(before + 1)) == list_answers(build_fresh(START))
        writer = td.Live(folder, tuning=tuning) if dead else live
        writer.add("s9", "b is null")
        assert list_answers(writer.open()) == list_answers(build_fresh({**filters, "s9": "b is null"}))
        for number in range(3):
            writer.add("s9", f"b = {number}")
        assert list_data_files(folder) == list_named_files(folder)
        assert not [path.name for path in folder.rglob("*.tmp")]
    assert steps.count > 10  # the files, the version, what is removed


def test_a_first_writer_that_dies_leaves_a_folder_that_the_next_makes(tmp_path, monkeypatch):
    for last in range(1, 6):
        folder = tmp_path / str(last)
        with monkeypatch.context() as patch:
            CountedSteps(patch, last, dead=True, after=False)
            try:
                td.Live(folder, schema=td.Schema({"a": "number"}))
            except Died:
                pass
            else:
                break
        live = td.Live(folder)
        live.add("s1", "a = 1")
        assert live.open().match({"a": 1}) == ["s1"]
    assert last > 2


def test_a_batch_that_died_while_it_claimed_claims_again(tmp_path, monkeypatch):
    live = td.Live(tmp_path / "live")
    for last in count(1):
        with monkeypatch.context() as patch:
            CountedSteps(patch, last, dead=True, after=True)
            try:
                live.claim("q", last)
            except Died:
                pass
            else:
                break
        version = live.add("s1", f"a = {last}")
        assert td.Live(live.folder).claim("q", last).version in (version - 1, version)
    assert last > 3


def _adds(folder, name, number, ready):
    live = td.Live(folder)
    ready.wait(timeout=60)
    for at in range(number):
        live.add(f"{name}{at}", f"a = {at}")


def test_two_processes_that_write_at_once_lose_nothing(quick):
    live = td.Live(quick / "live", shards=2)
    spawning = multiprocessing.get_context("spawn")
    ready = spawning.Barrier(2)
    writers = [spawning.Process(target=_adds, args=(str(live.folder), name, 50, ready)) for name in "xy"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(timeout=120)
        assert writer.exitcode == 0
    assert set(live) == {f"{name}{at}" for name in "xy" for at in range(50)}
    assert live.version.number == 101
    assert sorted(live.open().match({"a": 7})) == ["x7", "y7"]
