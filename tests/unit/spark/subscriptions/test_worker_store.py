"""What workers open: compared with its checksums there too, once for each version."""

import pickle
import sys

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

import tidings as td
from tidings.engine.persist import checksums
from tidings.errors import SnapshotError
from tidings.spark.subscriptions import worker_store
from tidings.spark.subscriptions.worker_store import PackedStore, SnapshotStore, VersionStore


def searches(*filters):
    matcher = td.Matcher()
    matcher.add_many(enumerate(filters))
    return matcher


@pytest.fixture
def fresh_worker(monkeypatch):
    """A process that has opened nothing yet."""
    worker_store.open_matcher.cache_clear()
    monkeypatch.setattr(checksums, "compared_files", checksums.ComparedFiles())


def damage(folder):
    for path in folder.glob("*.bin"):
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(bytes(data))


def snapshot(folder):
    matcher = td.Matcher()
    matcher.add_many((f"s{n}", f"a = {n}") for n in range(50))
    matcher.save(folder)
    return worker_store.SnapshotStore.of(str(folder))


def version(folder):
    live = td.Live(folder, shards=2)
    live.add_many((f"s{n}", f"a = {n}") for n in range(50))
    return worker_store.VersionStore.of(str(folder))


@pytest.mark.parametrize("made", [snapshot, version])
def test_a_worker_refuses_a_damaged_file_and_reads_a_whole_one_once(made, tmp_path, fresh_worker, monkeypatch):
    place, read, real = made(tmp_path / "kept"), [], checksums.compute_checksum
    monkeypatch.setattr(checksums, "compute_checksum", lambda whole, name: read.append(name) or real(whole, name))
    for _ in range(3):
        assert sum(len(place.open(shard)) for shard in range(place.shards)) == 50
    assert len(read) == place.shards
    damage(tmp_path / "kept")
    worker_store.open_matcher.cache_clear()
    with pytest.raises(SnapshotError, match="its checksum is another"):
        place.open(0)


def test_a_worker_unpacks_a_matcher_once():
    packed = PackedStore.of(searches("a = 1"))
    again = pickle.loads(pickle.dumps(packed))
    assert packed.open(0) is again.open(0)


def test_a_worker_does_not_keep_the_bytes_beside_the_matcher():
    worker_store.open_matcher.cache_clear()
    packed = PackedStore.of(searches("a = 1"))
    before = sys.getrefcount(packed.payload)
    packed.open(0)
    after = sys.getrefcount(packed.payload)  # not in the assertion: pytest holds its parts
    assert after == before


def test_packed_bytes_do_not_follow_later_changes():
    matcher = searches("a = 1")
    packed = PackedStore.of(matcher)
    matcher.remove(0)
    assert list(packed.open(0)) == [0]


def test_a_worker_keeps_a_few_matchers_and_forgets_the_longest_unused():
    worker_store.open_matcher.cache_clear()
    packed = [PackedStore.of(searches(f"a = {n}")) for n in range(worker_store.open_matcher.cache_info().maxsize + 1)]
    opened = [packed_matcher.open(0) for packed_matcher in packed]
    assert packed[1].open(0) is opened[1]
    assert packed[0].open(0) is not opened[0]


def test_a_snapshot_that_was_replaced_is_refused_by_name(tmp_path):
    searches("a = 1").save(tmp_path / "s")
    place = SnapshotStore.of(str(tmp_path / "s"))
    searches("a = 2").save(tmp_path / "s")
    with pytest.raises(SnapshotError, match="was replaced after the job began"):
        place.open(0)


def test_a_version_stays_what_it_is(tmp_path):
    live = td.Live(tmp_path / "s")
    live.add("x", "a = 1")
    place = VersionStore.of(str(tmp_path / "s"))
    live.add("y", "a = 1")
    assert list(place.open(0)) == ["x"]
    assert sorted(VersionStore.of(str(tmp_path / "s")).open(0)) == ["x", "y"]
