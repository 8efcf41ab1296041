"""What workers open: compared with its checksums there too, once for each version."""

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

import tidings as td
from tidings.engine.persist import checksums
from tidings.errors import SnapshotError
from tidings.spark.subscriptions import worker_store


@pytest.fixture
def fresh_worker(monkeypatch):
    """A process that has opened nothing yet."""
    monkeypatch.setattr(worker_store, "_open", type(worker_store._open)())
    monkeypatch.setattr(checksums, "_compared", set())


def damage(folder):
    for path in folder.glob("*.bin"):
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(bytes(data))


def snapshot(folder):
    matcher = td.Matcher()
    matcher.add_many((f"s{n}", f"a = {n}") for n in range(50))
    matcher.save(folder)
    return worker_store.Snapshot.of(str(folder))


def version(folder):
    live = td.Live(folder, shards=2)
    live.add_many((f"s{n}", f"a = {n}") for n in range(50))
    return worker_store.Versioned.of(str(folder))


@pytest.mark.parametrize("made", [snapshot, version])
def test_a_worker_refuses_a_damaged_file_and_reads_a_whole_one_once(made, tmp_path, fresh_worker, monkeypatch):
    place, read, real = made(tmp_path / "kept"), [], checksums._checksum
    monkeypatch.setattr(checksums, "_checksum", lambda whole, name: read.append(name) or real(whole, name))
    for _ in range(3):
        assert sum(len(place.open(shard)) for shard in range(place.shards)) == 50
    assert len(read) == place.shards
    damage(tmp_path / "kept")
    worker_store._open.clear()
    with pytest.raises(SnapshotError, match="its checksum is another"):
        place.open(0)
