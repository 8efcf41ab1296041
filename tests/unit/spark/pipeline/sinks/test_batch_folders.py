"""Folders of batches have an owner, the checkpoint that numbers them; another one's are set aside, never mixed."""

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tidings.errors import SinkError
from tidings.spark.pipeline.sinks.batch_folders import LocalFolder, set_aside


def open_folder(path, owner):
    return LocalFolder.open(path, "json", options={}, owner=owner)


def test_a_new_checkpoint_begins_anew_where_the_batches_of_another_lie(tmp_path):
    letters = tmp_path / "letters"
    open_folder(letters, "first")
    (letters / "batch=00000003").mkdir()
    with pytest.raises(SinkError, match="holds batches of another checkpoint"):
        open_folder(letters, "second")
    set_aside(letters, "second")
    open_folder(letters, "second")
    (aside,) = tmp_path.glob("letters-*")
    assert sorted(path.name for path in aside.iterdir()) == ["_tidings.json", "batch=00000003"]
    assert [path.name for path in letters.iterdir()] == ["_tidings.json"]


def test_a_folder_of_its_own_and_one_that_is_not_there_stay_as_they_are(tmp_path):
    letters = tmp_path / "letters"
    set_aside(letters, "first")
    open_folder(letters, "first")
    set_aside(letters, "first")
    assert [path.name for path in tmp_path.iterdir()] == ["letters"]
