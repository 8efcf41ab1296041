"""Old dead letters go, a whole batch at a time; what is young, or is being written, stays."""

import os
import threading
from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("sqlalchemy", reason="needs tidings[service]")

from tidings.service.checking import SubscriptionChecker
from tidings.service.events.dead_letters import trim_letters
from tidings.service.housekeeping import Housekeeper
from tidings.service.settings import HousekeepingSettings, ServiceSettings
from tidings.service.store.memory.store import MemoryStore

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)


@pytest.fixture
def settings(tmp_path):
    return ServiceSettings(data=tmp_path, housekeeping=HousekeepingSettings(dead_letters=timedelta(days=2)))


def make_batch(folder, name, *, days):
    """Make a folder of letters that was written so many days ago."""
    path = folder / name
    path.mkdir(parents=True)
    (path / "part-0.json").write_text("{}\n")
    (path / "_SUCCESS").touch()
    seconds = (NOW - timedelta(days=days)).timestamp()
    os.utime(path, (seconds, seconds))
    return path


def list_names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_batches_that_are_older_than_the_settings_say_go_with_housekeeping(settings):
    for folder in (settings.letters_folder, settings.data / "dead_letters_of_patterns"):
        make_batch(folder, "batch=00000007", days=3)
        make_batch(folder, "batch=00000012", days=2.1)
        make_batch(folder, "batch=00000013", days=1.9)
        (folder / "_tidings.json").touch()
    keeper = Housekeeper(settings, MemoryStore(), SubscriptionChecker.of(settings))
    assert keeper.tidy(NOW).letters == 4
    for folder in (settings.letters_folder, settings.data / "dead_letters_of_patterns"):
        assert list_names(folder) == ["_tidings.json", "batch=00000013"]
        assert list_names(folder / "batch=00000013") == ["_SUCCESS", "part-0.json"]
    assert keeper.tidy(NOW).letters == 0


def test_a_batch_that_is_being_written_stays_however_old_it_is(settings):
    make_batch(settings.letters_folder, "_staging-3-0123abcd", days=9)
    assert trim_letters(settings, NOW) == 0
    assert list_names(settings.letters_folder) == ["_staging-3-0123abcd"]


def test_batches_are_taken_by_number_also_beyond_eight_digits(settings):
    make_batch(settings.letters_folder, "batch=99999999", days=3)
    make_batch(settings.letters_folder, "batch=100000000", days=1)
    assert trim_letters(settings, NOW) == 1
    assert list_names(settings.letters_folder) == ["batch=100000000"]


def test_what_a_killed_process_left_half_removed_goes_too(settings):
    make_batch(settings.letters_folder, "_going-00000001", days=0)
    assert trim_letters(settings, NOW) == 0
    assert list_names(settings.letters_folder) == []


def test_a_service_without_dead_letters_has_none_to_remove(settings):
    assert trim_letters(settings, NOW) == 0
    assert not settings.letters_folder.exists()


def test_batches_of_a_checkpoint_that_is_gone_go_with_their_folder(settings):
    for name, days in (("dead_letters-0123abcd", 3), ("dead_letters_of_patterns-89abcdef", 1)):
        make_batch(settings.data / name, "batch=00000001", days=days)
        (settings.data / name / "_tidings.json").touch()
    assert trim_letters(settings, NOW) == 1
    assert list_names(settings.data) == ["dead_letters_of_patterns-89abcdef"]


def test_two_processes_remove_each_batch_once(settings):
    for number in range(40):
        make_batch(settings.letters_folder, f"batch={number:08}", days=3)
    counts = []
    threads = [threading.Thread(target=lambda: counts.append(trim_letters(settings, NOW))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) == 40
    assert list_names(settings.letters_folder) == []
