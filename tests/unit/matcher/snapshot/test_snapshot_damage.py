"""Snapshots that are damaged, foreign, newer or half written are refused by name; the old one stays in force."""

import json
import os
import pickle
from pathlib import Path

import pytest

import tidings as td
from tidings.engine.persist import checksums
from tidings.errors import SnapshotError
from tidings.matcher.snapshot.snapshot_folder import sign


@pytest.fixture
def snapshot_dir(tmp_path):
    searches = td.Matcher(schema=td.Schema({"a": "number", "t": "text"}))
    searches.add_many((f"s{n}", f"a = {n} and t contains 'x{n}'") for n in range(100))
    searches.save(tmp_path / "snap")
    searches.remove("s7")
    searches.save(tmp_path / "snap")
    return tmp_path / "snap"


def _manifest(folder):
    return json.loads((folder / "manifest.json").read_text())


def _file(folder, kind="segments"):
    manifest = _manifest(folder)
    entry = {"segments": manifest["segments"][0], "dead": manifest["dead"], "schema": manifest["files"]["schema"]}[kind]
    return folder / entry["name"]


def _rewrite(folder, **changes):
    """Change the manifest as somebody would who knows about its checksum."""
    (folder / "manifest.json").write_text(json.dumps(sign({**_manifest(folder), **changes})))


def _without(folder, name):
    (folder / "manifest.json").write_text(
        json.dumps(sign({key: value for key, value in _manifest(folder).items() if key != name}))
    )


def _segment_without(folder, name):
    first = {key: value for key, value in _manifest(folder)["segments"][0].items() if key != name}
    _rewrite(folder, segments=[first])


def _arrays_without(folder, name):
    first = _manifest(folder)["segments"][0]
    arrays = {key: value for key, value in first["arrays"].items() if key != name}
    _rewrite(folder, segments=[{**first, "arrays": arrays}])


def _cut(path):
    path.write_bytes(path.read_bytes()[:-5])


def _flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))


DAMAGE = {
    "no manifest": lambda f: (f / "manifest.json").unlink(),
    "torn manifest": lambda f: (f / "manifest.json").write_text("{"),
    "manifest of bytes": lambda f: (f / "manifest.json").write_bytes(b"\xff\xfe\x00"),
    "foreign manifest": lambda f: (f / "manifest.json").write_text("[]"),
    "foreign object": lambda f: (f / "manifest.json").write_text('{"name": "an app", "version": 2}'),
    "format of another type": lambda f: _rewrite(f, format="2"),
    "newer format": lambda f: _rewrite(f, format=99, tidings="9.9"),
    "flipped in the manifest": lambda f: (f / "manifest.json").write_text(
        (f / "manifest.json").read_text().replace('"count": 99', '"count": 98')
    ),
    "no checksum": lambda f: (f / "manifest.json").write_text(
        json.dumps({name: value for name, value in _manifest(f).items() if name != "checksum"})
    ),
    "missing segment": lambda f: _file(f).unlink(),
    "cut segment": lambda f: _cut(_file(f)),
    "empty segment": lambda f: _file(f).write_bytes(b""),
    "foreign segment": lambda f: _file(f).write_bytes(b"GIF89a" + bytes(_file(f).stat().st_size - 6)),
    "missing dead": lambda f: _file(f, "dead").unlink(),
    "cut dead": lambda f: _cut(_file(f, "dead")),
    "missing schema": lambda f: _file(f, "schema").unlink(),
    "altered schema": lambda f: _flip(_file(f, "schema"), 30),
    "wrong count": lambda f: _rewrite(f, count=5),
    "unknown matcher": lambda f: _rewrite(f, kind="magic"),
    "arrays for brute force": lambda f: _rewrite(f, kind="brute"),
    "segments of another type": lambda f: _rewrite(f, segments=7),
    "an unknown view": lambda f: _rewrite(
        f, segments=[{**_manifest(f)["segments"][0], "columns": [["a", "smell", None, None, "number"]]}]
    ),
    **{
        f"manifest without {name}": (lambda f, name=name: _without(f, name))
        for name in ("format", "kind", "count", "needs", "files", "segments", "dead")
    },
    **{
        f"segment without {name}": (lambda f, name=name: _segment_without(f, name))
        for name in ("name", "bytes", "arrays", "columns", "places", "patterns", "choice")
    },
    **{
        f"no array {name}": (lambda f, name=name: _arrays_without(f, name))
        for name in ("rows.literal", "tiles.words", "space.0.ends", "ids.table", "automaton.0.nodes", "second.row")
    },
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_snapshot_is_refused(snapshot_dir, name):
    DAMAGE[name](snapshot_dir)
    with pytest.raises(SnapshotError, match=r"\S") as refused:
        td.Matcher.open(snapshot_dir)
    assert str(snapshot_dir) in str(refused.value)


@pytest.mark.parametrize("kind", ["segments", "dead"])
@pytest.mark.parametrize("at", [70, -1])
def test_a_flipped_bit_is_found_unless_nobody_looks(snapshot_dir, kind, at):
    td.Matcher.open(snapshot_dir)
    path = _file(snapshot_dir, kind)
    _flip(path, at)
    with pytest.raises(SnapshotError, match="its checksum is another; save the subscriptions again") as refused:
        td.Matcher.open(snapshot_dir)
    assert str(path) in str(refused.value)
    assert isinstance(td.Matcher.open(snapshot_dir, verify=False), td.Matcher)


@pytest.mark.parametrize("kind", ["segments", "dead", "schema"])
def test_saving_again_mends_a_damaged_file(snapshot_dir, kind):
    """Though the damaged one has the right name and length."""
    opened = td.Matcher.open(snapshot_dir)
    kept = pickle.loads(pickle.dumps(opened))  # its segments were never in a file, as far as it knows
    for whole in (kept, kept, pickle.loads(pickle.dumps(kept))):
        _flip(_file(snapshot_dir, kind), 30 if kind == "schema" else 70)
        with pytest.raises(SnapshotError):
            td.Matcher.open(snapshot_dir)
        whole.save(snapshot_dir)
        assert td.Matcher.open(snapshot_dir).match({"a": 3, "t": "x3"}) == ["s3"]


def test_a_snapshot_with_the_old_checksums_alone_is_compared_with_those_and_saved_with_new_ones(snapshot_dir):
    manifest = _manifest(snapshot_dir)
    old = [{name: value for name, value in entry.items() if name != "xxh3"} for entry in manifest["segments"]]
    dead = {name: value for name, value in manifest["dead"].items() if name != "xxh3"}
    _rewrite(snapshot_dir, segments=old, dead=dead)
    opened = td.Matcher.open(snapshot_dir)
    assert opened.match({"a": 3, "t": "x3"}) == ["s3"]
    opened.save(snapshot_dir)
    assert all("xxh3" in entry for entry in [*_manifest(snapshot_dir)["segments"], _manifest(snapshot_dir)["dead"]])
    _rewrite(snapshot_dir, segments=old, dead=dead)
    _flip(_file(snapshot_dir), 70)
    with pytest.raises(SnapshotError, match="its checksum is another"):
        td.Matcher.open(snapshot_dir)


def test_a_file_is_compared_once_in_a_process_and_again_when_it_has_changed(snapshot_dir, monkeypatch):
    compared = checksums.ComparedFiles(racy_ns=-1)
    monkeypatch.setattr(checksums, "compared_files", compared)
    read, real = [], checksums.compute_checksum
    monkeypatch.setattr(checksums, "compute_checksum", lambda whole, name: read.append(name) or real(whole, name))
    for _ in range(3):
        td.Matcher.open(snapshot_dir)
    assert read == ["xxh3", "xxh3"]
    _flip(_file(snapshot_dir), 70)
    os.utime(_file(snapshot_dir), ns=(0, 0))  # another time, however coarse the clock
    with pytest.raises(SnapshotError):
        td.Matcher.open(snapshot_dir)
    compared.most = 1
    _flip(_file(snapshot_dir), 70)
    td.Matcher.open(snapshot_dir)
    assert len(compared.keys) <= 2


def test_a_missing_file_is_named(snapshot_dir):
    path = _file(snapshot_dir)
    path.unlink()
    with pytest.raises(SnapshotError) as refused:
        td.Matcher.open(snapshot_dir)
    assert str(path) in str(refused.value)


def test_a_newer_format_is_refused_by_name(snapshot_dir):
    DAMAGE["newer format"](snapshot_dir)
    with pytest.raises(SnapshotError, match=r"format 99 \(by tidings 9\.9\)"):
        td.Matcher.open(snapshot_dir)


def test_other_peoples_directories_are_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(SnapshotError, match="other files"):
        td.Matcher().save(tmp_path)
    with pytest.raises(SnapshotError, match="is a file"):
        td.Matcher().save(tmp_path / "mine.txt")
    with pytest.raises(SnapshotError, match="no manifest"):
        td.Matcher.open(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_files_that_are_not_ours_stay_in_a_snapshot_that_is_replaced(snapshot_dir):
    (snapshot_dir / "README.txt").write_text("whose snapshot this is")
    td.Matcher().save(snapshot_dir)
    assert {path.name for path in snapshot_dir.iterdir()} == {"README.txt", "manifest.json"}


# Crashes -------------------------------------------------------------------------------------------


class Crash(BaseException):
    """The end of a process, as far as code can tell."""


@pytest.mark.parametrize("step", range(3))
@pytest.mark.parametrize("how", [Crash("power"), OSError("no space left")])
def test_a_save_that_breaks_leaves_the_old_snapshot(snapshot_dir, monkeypatch, step, how):
    replacement = td.Matcher(schema=td.Schema({"b": "number"}))
    replacement.add("new", "b = 1")
    steps = iter(range(10))
    real = Path.replace

    def breaks(self, target):
        if next(steps) == step:
            raise how
        return real(self, target)

    monkeypatch.setattr(Path, "replace", breaks)
    with pytest.raises(Crash if isinstance(how, Crash) else SnapshotError):
        replacement.save(snapshot_dir)
    monkeypatch.undo()
    assert len(td.Matcher.open(snapshot_dir, verify=True)) == 99
    assert not [path for path in snapshot_dir.iterdir() if path.suffix == ".tmp"]
    replacement.save(snapshot_dir)
    assert list(td.Matcher.open(snapshot_dir)) == ["new"]
    assert (
        len(list(snapshot_dir.iterdir())) == 3
    )  # the manifest, the schema and a segment: nothing is left of the broken save


def test_a_first_save_that_breaks_can_be_done_again(tmp_path, monkeypatch):
    searches = td.Matcher()
    searches.add("s1", "a = 1")
    real = Path.replace

    def breaks(self, target):
        if target.name == "manifest.json":
            raise Crash
        return real(self, target)

    monkeypatch.setattr(Path, "replace", breaks)
    with pytest.raises(Crash):
        searches.save(tmp_path / "snap")
    monkeypatch.undo()
    with pytest.raises(SnapshotError, match="no manifest"):
        td.Matcher.open(tmp_path / "snap")
    (tmp_path / "snap" / f"segment-{0:016x}.bin.{os.getpid()}.tmp").write_bytes(b"half")
    searches.save(tmp_path / "snap")
    assert td.Matcher.open(tmp_path / "snap").match({"a": 1}) == ["s1"]
    assert len(list((tmp_path / "snap").iterdir())) == 2


def test_a_break_before_old_files_are_removed_leaves_the_new_snapshot(snapshot_dir, monkeypatch):
    def breaks(self, *, missing_ok=False):
        raise Crash

    monkeypatch.setattr(Path, "unlink", breaks)
    with pytest.raises(Crash):
        td.Matcher().save(snapshot_dir)
    monkeypatch.undo()
    assert len(td.Matcher.open(snapshot_dir)) == 0
    td.Matcher().save(snapshot_dir)
    assert [path.name for path in snapshot_dir.iterdir()] == ["manifest.json"]
