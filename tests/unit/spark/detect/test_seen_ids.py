"""Ids that came before are left out within the time, whatever the batches, and a batch that runs again is the same."""

import random
from datetime import timedelta

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tidings.spark.detect.followed import seen_ids
from tidings.spark.detect.followed.seen_ids import NewIds, SeenIds

WITHIN = timedelta(seconds=80)


def run_batch(folder, seen, batch, now, tasks):
    """Return the ids of each task that are new."""
    seen.prepare(batch)
    segments, new = seen.list_segments(now), []
    for number, ids in enumerate(tasks):
        task = NewIds(folder, segments, batch, number)
        new += [id for id, is_new in zip(ids, task.find_new(ids), strict=True) if is_new]
        task.write()
    return new


def test_an_id_is_new_if_it_did_not_come_within_the_time(tmp_path):
    rng, seen, came, now = random.Random(1), SeenIds(tmp_path, WITHIN), {}, 0.0
    for batch in range(120):
        now += rng.choice((0.1, 1, 7))
        ids = [str(rng.randrange(60)) for _ in range(rng.randrange(8))]
        new = run_batch(tmp_path, seen, batch, now, [ids])
        if rng.random() < 0.2:
            assert run_batch(tmp_path, seen, batch, now, [ids]) == new  # as after a crash
        for id in new:
            assert id not in came or came[id] < now - WITHIN.total_seconds()
        for id in set(ids) - set(new):
            # Merged segments are of one eighth of the time, so an id may be remembered for so much longer.
            assert id in new or came[id] >= now - WITHIN.total_seconds() * 9 / 8
        came.update(dict.fromkeys(new, now))
        seen.note_batch(batch, now)
        if rng.random() < 0.1:
            seen = SeenIds(tmp_path, WITHIN)
    files = list((tmp_path / "ids").glob("*.npy"))
    assert len(files) < 40


def test_the_first_batch_after_a_start_can_run_again_once_its_segments_are_merged(tmp_path):
    seen = SeenIds(tmp_path, WITHIN)
    for batch in range(3):
        run_batch(tmp_path, seen, batch, 1.0, [[str(batch)]])
        seen.note_batch(batch, 1.0)
    again = SeenIds(tmp_path, WITHIN)
    segments, new = again.list_segments(15.0), run_batch(tmp_path, again, 3, 15.0, [["0", "3"]])
    again.note_batch(3, 15.0)  # the others are of an earlier part of the time, and become one
    assert new == ["3"]
    assert len(again.list_segments(15.0)) == 2
    seen_ids._open_segment.cache_clear()  # noqa: SLF001 - killed before Spark's commit: it runs again as it was claimed
    task = NewIds(tmp_path, segments, 3, 0)
    assert task.find_new(["0", "3"]).tolist() == [False, True]


def test_what_has_no_id_is_always_new_and_one_task_knows_what_came_before_in_it(tmp_path):
    task = NewIds(tmp_path, [], 0, 0)
    assert task.find_new(["a", None, "a", None]).tolist() == [True, True, False, True]
    assert task.find_new(["a", "b"]).tolist() == [False, True]


def test_a_batch_that_was_noted_and_runs_again_is_not_noted_twice(tmp_path):
    seen = SeenIds(tmp_path, WITHIN)
    run_batch(tmp_path, seen, 0, 1.0, [["a"], ["b"]])
    seen.note_batch(0, 1.0)
    before = seen.list_segments(2.0)
    again = SeenIds(tmp_path, WITHIN)
    NewIds(tmp_path, [], 0, 0).write()
    again.note_batch(0, 1.0)
    assert again.list_segments(2.0) == before == ["0000000000"]
