"""`make demo`: car ads stream in while people save, change and drop searches; the matches come out.

It writes a `pipeline.toml`, runs it as `tidings run` does, and simulates the outside world in a thread (`demo_world`)
that drops files of ads into one folder and changes of searches into another. When all of them are read it stops the
query, and the results are read back from the files (`summary`). A few ads are damaged on purpose.
"""

from __future__ import annotations

import shutil
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from tidings.bench import workloads
from tidings.errors import TidingsError
from tidings.spark.demo import summary
from tidings.spark.demo.demo_world import DemoWorld, publish, publish_changes
from tidings.spark.pipeline.config.load import load
from tidings.spark.pipeline.run.failures import SPARK_ERRORS
from tidings.spark.pipeline.run.runner import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ADS = """
    id BIGINT, make STRING, model STRING, year INT, price STRING, odometer BIGINT, fuel STRING, color STRING,
    tags ARRAY<STRING>, posted TIMESTAMP, spot STRUCT<lon: DOUBLE, lat: DOUBLE>,
    seller STRUCT<kind: STRING, name: STRING, rating: DOUBLE>
"""
"""The stream's columns. A price comes as text, since sellers write anything; the schema declares it as a number."""

NAME = "car ads"

PIPELINE = f'''\
# Written by `make demo`; `tidings run` goes on with it.
name = "{NAME}"
checkpoint = "state"
trigger = "300 ms"

[source]
kind = "json"
path = "ads"
columns = """{ADS}"""
id = "id"

[schema]                              # what searches may ask for, and as what
make = "text"
model = "text"
year = "number"
price = "number"                      # a column of text: what cannot be read as a number is a dead letter
odometer = "number"
fuel = "text"
color = "text"
tags = "several text"
posted = "time"
spot = "place"
seller.kind = "text"
seller.name = "text"
seller.rating = "number"

[subscriptions]
directory = "searches"                # a new file here changes the searches

[matching]
keep = ["make", "model", "year", "price"]
now = {workloads.NOW:%Y-%m-%dT%H:%M:%SZ}            # when the searches were saved; real ones leave it out

[[sink]]
kind = "json"
path = "matches"

[dead_letters]
kind = "json"
path = "dead_letters"

[shown]
lines = "progress.jsonl"

[spark]
# Java's second compiler only pays in programs that run for longer than a minute.
spark.driver.extraJavaOptions = "-XX:TieredStopAtLevel=1"
'''

PAUSE = 0.4
"""Seconds between two files of ads."""

MADE = ("ads", "searches", "matches", "dead_letters", "state", "pipeline.toml", "progress.jsonl")
"""The files and folders that a run leaves, and the next run replaces."""


def demo(
    ads: Annotated[int, typer.Option(min=1, help="How many car ads.")] = 1500,
    searches: Annotated[int, typer.Option(min=1, help="How many saved searches.")] = 3000,
    out: Annotated[Path, typer.Option(help="Where the pipeline, its ads and its matches are.")] = Path("out/demo"),
    seed: Annotated[int, typer.Option(help="The same seed gives the same ads, searches and matches.")] = 7,
) -> None:
    """Match a stream of car ads against saved searches that change meanwhile, on Spark."""
    console = Console(highlight=False)
    start = time.monotonic()
    try:
        world = _prepare_folder(out, ads, searches, seed)
        console.print(Text(f"wrote {out}/pipeline.toml and {searches:,} saved searches"), soft_wrap=True)
        stopped = _run(console, world, out)
    except TidingsError as problem:
        Console(stderr=True, highlight=False).print(Text(f"error: {problem}"))
        raise typer.Exit(1) from None
    if stopped:
        console.print(Text(f"stopped; tidings run {out}/pipeline.toml goes on from here"), soft_wrap=True)
        raise typer.Exit(130)
    console.print()
    summary.print_summary(console, world, out, seconds=time.monotonic() - start)


def _prepare_folder(out: Path, ads: int, searches: int, seed: int) -> DemoWorld:
    """Clear the folder, and write the pipeline and the searches that exist from the start."""
    for name in MADE:
        shutil.rmtree(out / name) if (out / name).is_dir() else (out / name).unlink(missing_ok=True)
    for name in ("ads", "searches"):
        (out / name).mkdir(parents=True)
    (out / "pipeline.toml").write_text(PIPELINE, encoding="utf-8")
    world = DemoWorld.generate(ads, searches, seed=seed)
    publish_changes(world, 0, out)
    return world


def _run(console: Console, world: DemoWorld, out: Path) -> bool:
    """Run the pipeline while the world changes; return whether a user stopped it."""
    pipeline = load(out / "pipeline.toml")
    player = Player(console, world, out)
    try:
        outcome = run(pipeline, console=console, started=player.begin)
    finally:
        player.end()
    if player.problem is not None:
        raise player.problem
    return outcome.stopped


class Player:
    """Runs the world in a thread of its own, and stops the query when everything is read."""

    def __init__(self, console: Console, world: DemoWorld, folder: Path) -> None:
        self._console, self._world, self._folder = console, world, folder
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.problem: Exception | None = None

    def begin(self, session: SparkSession) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._play, args=(session,), name="tidings-demo", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop the thread, wherever it is, and wait for it."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _play(self, session: SparkSession) -> None:
        try:
            self._run_acts(session)
        except Exception as problem:  # noqa: BLE001 - raised again by the thread that waits
            self.problem = problem
        with suppress(*SPARK_ERRORS):
            if (query := self._wait_for_query(session)) is not None:
                query.stop()

    def _run_acts(self, session: SparkSession) -> None:
        """Publish the changes and the ads of each act, until all of them are read or the thread is to stop."""
        for number, act in enumerate(self._world.acts):
            if number:  # the searches of the first act are there from the start
                publish_changes(self._world, number, self._folder)
                self._console.print(Text(f"{act.title}: searches/{number:03}.jsonl"), soft_wrap=True)
            for part, lines in enumerate(self._world.split_files(act)):
                publish(self._folder / "ads" / f"ads-{number}-{part}.json", lines)
                if self._stop.wait(PAUSE):
                    return
            if not self._wait_until_read(session):
                return

    def _wait_until_read(self, session: SparkSession) -> bool:
        """Wait until every file is read and every sink has its rows; return whether the query still runs."""
        query = self._wait_for_query(session)
        if query is None:
            return False
        with suppress(*SPARK_ERRORS):  # the query has ended: its runner reports why
            query.processAllAvailable()
            return query.isActive
        return False

    def _wait_for_query(self, session: SparkSession) -> StreamingQuery | None:
        """Return the running query once it has started, or nothing when the thread is to stop."""
        while not self._stop.wait(0.05):
            for query in session.streams.active:
                if query.name == NAME:
                    return query
        return None


if __name__ == "__main__":
    typer.run(demo)  # Ctrl-C ends it without a trace
