"""A pipeline in a folder of its own, run in the tests' session until all is read; and what it made of the events.

A hook is a `python` sink: it is called in mid-batch, so what it changes is in force in the next batch.
"""

import io
import json
import os
from dataclasses import replace

from rich.console import Console

COLUMNS = "id BIGINT, make STRING, price DOUBLE, posted TIMESTAMP"

_steps = {}
"""What is done in the midst of a batch, by its number, and then not again."""


def step(frame, batch):
    """Do what the test has put down for this batch, or for any; a pipeline's TOML names this function."""
    for number in (batch, None):
        if number in _steps:
            _steps.pop(number)()


def jsonl(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def filters(subscriptions):
    return [{"id": id, "filter": filter} for id, filter in subscriptions.items()]


class Pipe:
    """A pipeline's folder."""

    def __init__(self, folder):
        self.folder = folder
        self.output, self.reports, self.warnings = "", [], []
        self._files = 0
        for name in ("ads", "searches"):
            (folder / name).mkdir()
        _steps.clear()

    def toml(self, *, subscriptions='directory = "searches"', source=None, sink=None, options="", top="", more=""):
        """Write the pipeline's file; each file of events is a batch."""
        source = source or f'kind = "json"\npath = "ads"\ncolumns = "{COLUMNS}"\nid = "id"\ntime = "posted"'
        if 'path = "ads"' in source:
            options = f"[source.options]\nmaxFilesPerTrigger = 1\n{options}"
        sink = sink or 'kind = "json"\npath = "matches"'
        text = f"""
checkpoint = "state"
trigger = "available now"
{top}
[source]
{source}
{options}
[subscriptions]
{subscriptions}
[[sink]]
{sink}
[[sink]]
kind = "python"
function = "{__name__}:step"
[shown]
view = "off"
lines = "lines.jsonl"
{more}
"""
        (self.folder / "pipeline.toml").write_text(text)
        return self

    def events(self, *rows, name="json"):
        """Write a file of events; what is text already is written as it is."""
        path = self.folder / "ads" / f"{self._files}.{name}"
        path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
        os.utime(path, (1.7e9 + self._files, 1.7e9 + self._files))
        self._files += 1

    def searches(self, name, **subscriptions):
        """Write a change file."""
        (self.folder / "searches" / f"{name}.jsonl").write_text(jsonl(filters(subscriptions)))

    def during(self, batch, action):
        """Do something in the midst of a batch; None is the next one that has matches."""
        _steps[batch] = action

    def run(self, **changes):
        """Run until all is read, or something stops it."""
        from tidings.spark.pipeline.config import load
        from tidings.spark.pipeline.run import runner

        out, lines = io.StringIO(), self.folder / "lines.jsonl"
        lines.unlink(missing_ok=True)
        pipeline = replace(load.load(self.folder / "pipeline.toml"), **changes)
        try:
            return runner.run(pipeline, console=Console(file=out, highlight=False, width=500, stderr=True))
        finally:
            self.output = out.getvalue()
            records = [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
            self.reports = [record for record in records if record["kind"] == "batch"]
            self.warnings = [record["text"] for record in records if record["kind"] == "warning"]

    def rows(self, path="matches"):
        """Return the rows of a folder of batches, each with its batch's number."""
        rows = []
        for part in sorted((self.folder / path).glob("batch=*/part-*.json")):
            batch = int(part.parent.name.partition("=")[2])
            rows += [{"batch": batch, **json.loads(line)} for line in part.read_text().splitlines()]
        return rows

    def matches(self):
        """Return batch, event and subscription of all matches, sorted."""
        return sorted((row["batch"], row["event"], row["subscription"]) for row in self.rows())

    def letters(self):
        """Return the dead letters, by batch and raw row."""
        return sorted(self.rows("state/dead_letters"), key=lambda row: (row["batch"], row["row"]))

    def read_refused(self):
        """Return the changes of subscriptions that were refused."""
        path = self.folder / "state" / "refused_subscriptions.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def claims(self):
        """Return the version of the subscriptions that each batch used, and what else was settled."""
        claims = {}
        for path in self.folder.glob("**/claims/*/*.json"):
            claims[int(path.stem)] = json.loads(path.read_text())
        return claims
