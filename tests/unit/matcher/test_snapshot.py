"""Snapshots: what was saved comes back, and what was damaged is refused by name."""

import json
import shutil
from datetime import UTC, datetime

import pytest

import tidings as td
from tidings.errors import SnapshotError


@pytest.fixture
def saved(tmp_path):
    searches = td.Matcher(schema=td.Schema({"a": "number", "t": "time"}), now=datetime(2024, 1, 1, tzinfo=UTC))
    searches.add_many([("s1", "a = 1"), ("s2", "age(t) < 7 days or not (a in [1 .. 5))")])
    searches.save(tmp_path / "snap")
    return tmp_path / "snap"


def test_a_snapshot_comes_back_with_its_schema_and_time(saved):
    searches = td.Matcher.open(saved)
    assert list(searches) == ["s1", "s2"]
    assert searches.schema == td.Schema({"a": "number", "t": "time"})
    assert searches.match({"a": 1, "t": "2023-12-31"}) == ["s1", "s2"]
    searches.add("s3", "a = 1")
    searches.remove("s1")
    assert sorted(searches.match({"a": 1})) == ["s3"]


def test_saving_again_replaces_and_leaves_nothing_behind(saved):
    searches = td.Matcher.open(saved)
    searches.remove("s1")
    searches.save(saved)
    assert list(td.Matcher.open(saved)) == ["s2"]
    named = {entry["name"] for entry in json.loads((saved / "manifest.json").read_text())["files"].values()}
    assert {path.name for path in saved.iterdir()} == named | {"manifest.json"}


def test_integer_ids_and_empty_matchers_come_back(tmp_path):
    searches = td.Matcher()
    searches.save(tmp_path / "empty")
    assert len(td.Matcher.open(tmp_path / "empty")) == 0
    searches.add(7, "a = 'line\\nbreak \\u2028 and unicode'")
    searches.save(tmp_path / "one")
    assert list(td.Matcher.open(tmp_path / "one")) == [7]


def damaged(change):
    def damage(folder):
        manifest = json.loads((folder / "manifest.json").read_text())
        change(folder, manifest)

    return damage


def _data(folder, manifest):
    return folder / manifest["files"]["subscriptions"]["name"]


def _rewrite(folder, manifest, **changes):
    (folder / "manifest.json").write_text(json.dumps({**manifest, **changes}))


DAMAGE = {
    "no manifest": lambda f, _: (f / "manifest.json").unlink(),
    "torn manifest": lambda f, _: (f / "manifest.json").write_text("{"),
    "foreign manifest": lambda f, _: (f / "manifest.json").write_text("[]"),
    "newer format": lambda f, m: _rewrite(f, m, format=99, tidings="9.9"),
    "missing file": lambda f, m: _data(f, m).unlink(),
    "cut short": lambda f, m: _data(f, m).write_bytes(_data(f, m).read_bytes()[:-5]),
    "altered": lambda f, m: _data(f, m).write_bytes(_data(f, m).read_bytes().replace(b"s1", b"s9")),
    "wrong count": lambda f, m: _rewrite(f, m, count=5),
    "unknown matcher": lambda f, m: _rewrite(f, m, kind="magic"),
    "no files": lambda f, m: _rewrite(f, m, files={}),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_snapshot_is_refused(saved, name):
    damaged(DAMAGE[name])(saved)
    with pytest.raises(SnapshotError, match=r"\S") as refused:
        td.Matcher.open(saved)
    assert str(saved) in str(refused.value)


def test_a_newer_format_is_refused_by_name(saved):
    damaged(DAMAGE["newer format"])(saved)
    with pytest.raises(SnapshotError, match=r"format 99 \(by tidings 9\.9\)"):
        td.Matcher.open(saved)


def test_other_peoples_directories_are_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(SnapshotError, match="other files"):
        td.Matcher().save(tmp_path)
    with pytest.raises(SnapshotError, match="is a file"):
        td.Matcher().save(tmp_path / "mine.txt")
    with pytest.raises(SnapshotError, match="no manifest"):
        td.Matcher.open(tmp_path / "nowhere")
    shutil.rmtree(tmp_path / "nowhere", ignore_errors=True)
