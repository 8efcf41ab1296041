"""Pipelines that version 0.1.0 left at commit f057d71 go on: with what they have not read, and exactly."""

import os
import runpy
import sys

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tests.older.forms import read, read_pipeline_rows, sum_totals, unpack


class Older:
    """The folder of a pipeline as it was left, at another place, and what must come of it."""

    def __init__(self, name, folder):
        self.expected = read(f"checkpoints/{name}.json.gz")
        self.folder = unpack(f"checkpoints/{name}.tar.gz", folder, root=self.expected["root"])
        self.before = read_pipeline_rows(folder)

    def put(self):
        """Let the next files come, and the subscriptions change."""
        for place, text in enumerate(self.expected["files"], 4):
            path = self.folder / "ads" / f"{place}.json"
            path.write_text(text)
            os.utime(path, (1.72e9 + place, 1.72e9 + place))
        if self.expected["searches"] is not None:
            (self.folder / "searches.jsonl").write_text(self.expected["searches"])

    def rows(self):
        """Return what was written since it goes on, by sink."""
        rows_by_sink = read_pipeline_rows(self.folder)
        return {
            path: [row for row in rows if row not in self.before.get(path, ())] for path, rows in rows_by_sink.items()
        }


@pytest.fixture
def older(spark, tmp_path, monkeypatch):
    """Unpack a pipeline and run it until all is read, in the session of the tests."""

    def resume(name):
        made = Older(name, tmp_path / name)
        made.put()
        monkeypatch.setattr(sys, "argv", ["tidings", "run", str(made.folder / "pipeline.toml"), "--once"])
        monkeypatch.setattr(sys, "path", [*sys.path])
        with pytest.raises(SystemExit) as ended:
            runpy.run_module("tidings", run_name="__main__")
        assert not ended.value.code
        return made

    return resume


def drop_numbers(rows):
    """Return rows in an order, without their batches: how often Spark lets time pass between them is its own."""
    unordered = [{name: value for name, value in row.items() if name != "batch"} for row in rows]
    return sorted(unordered, key=lambda row: str({**row, "probability": None}))


def same(actual, expected):
    """Compare rows; the last digits of a probability are the processor's."""
    actual, expected = drop_numbers(actual), drop_numbers(expected)
    shares = [[row.pop("probability", None) or 0.0 for row in rows] for rows in (actual, expected)]
    assert actual == expected
    assert shares[0] == pytest.approx(shares[1], rel=1e-12)


@pytest.mark.parametrize("name", ["watching", "foretelling"])
def test_a_pipeline_goes_on_where_an_older_version_left_it(older, name):
    pipeline = older(name)
    rows_by_sink, expected = pipeline.rows(), pipeline.expected
    assert pipeline.before == expected["before"]
    assert rows_by_sink["matches"] == expected["after"]["matches"]  # batch for batch
    for path, rows in expected["after"].items():
        same(rows_by_sink.pop(path), rows)
    assert not any(rows_by_sink.values())
    assert sum_totals(pipeline.folder) == expected["totals"]  # files that were read are not read again
    assert len([*pipeline.folder.glob("state/subscriptions/*")]) <= 1  # nor are subscriptions
    again = read_pipeline_rows(pipeline.folder)
    assert all(row in again[path] for path, rows in pipeline.before.items() for row in rows)
