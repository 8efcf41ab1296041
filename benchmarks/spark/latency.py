"""From an event written to its match readable: `python -m benchmarks.spark.latency`.

`tidings run` in a process of its own, with `ranges` subscriptions from a snapshot. Files of JSON are put into its
source by a rename, so many a second (or records into a Kafka topic: `--kafka`), and the sink's folder is watched. An
event's time is from the rename of its file to the moment when the folder with its rows was there. Events of the first
seconds warm up and do not count. Every pair must be there once, as the engine finds them in this process. The baseline,
in the same run: a stream on Spark from the same files to the same sink that matches nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.spark import ground
from benchmarks.spark.arriving import Late, Rate, Write, count_pairs, watch_folder
from benchmarks.spark.processes import read_cpu_seconds
from benchmarks.spark.producing import Producer
from tidings.bench.workloads import workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

ROOT = Path(__file__).parents[2]
TOPIC = "events"


def main() -> None:
    """Measure and print."""
    options = ground.build_parser(__doc__)
    options.add_argument("--subscriptions", type=int, default=1_000_000)
    options.add_argument("--sink", choices=("json", "parquet"), default="json")
    options.add_argument("--trigger", default="as soon as possible")
    options.add_argument("--seconds", type=float, default=60.0, help="that are measured")
    options.add_argument(
        "--kafka", action="store_true", help="from a topic instead; needs the jars of tools/kafka-jars"
    )
    options.add_argument("--no-baseline", action="store_true")
    arguments = options.parse_args()
    count = 50_000 if arguments.quick else arguments.subscriptions
    rate = (
        Rate(files=5, events=20, warm_up_s=1, measured_s=2) if arguments.quick else Rate(measured_s=arguments.seconds)
    )
    title = f"latency: ranges, {count:,} subscriptions, {rate.files} {'requests' if arguments.kafka else 'files'}/s of"
    print(
        ground.format_heading(f"{title} {rate.events} events, {arguments.sink} sink, trigger {arguments.trigger}"),
        flush=True,
    )
    with ground.open_folder(arguments.folder) as folder, contextlib.ExitStack() as stack:
        snapshot = ground.snapshot("ranges", count, folder)
        servers = stack.enter_context(start_broker()) if arguments.kafka else None
        late = measure_pipeline(snapshot, rate=rate, sink=arguments.sink, trigger=arguments.trigger, servers=servers)
        print(f"  tidings run     {late}", flush=True)
        if not arguments.no_baseline and not arguments.kafka:
            print(f"  nothing matched {measure_bare(rate, sink=arguments.sink)}  (baseline)")


# What runs -------------------------------------------------------------------------------------


def measure_pipeline(snapshot: Path, *, rate: Rate, sink: str, trigger: str, servers: str | None = None) -> Late:
    """Measure `tidings run`."""
    with _place() as folder:
        (folder / "pipeline.toml").write_text(render_pipeline(snapshot, sink=sink, trigger=trigger, servers=servers))
        command = [sys.executable, "-m", "tidings", "run", str(folder / "pipeline.toml")]
        with feed(folder, servers) as write:
            return measure_latency(command, folder, rate, write, count_pairs(snapshot, rate))


def measure_bare(rate: Rate, *, sink: str) -> Late:
    """Measure a stream that matches nothing."""
    with _place() as folder:
        command = [sys.executable, "-m", "benchmarks.spark.bare", str(folder), list_columns(), sink]
        with feed(folder, None) as write:
            return measure_latency(command, folder, rate, write, np.ones(rate.count * rate.events, np.int64))


def measure_latency(command: list[str], folder: Path, rate: Rate, write: Write, pairs: NDArray[np.int64]) -> Late:
    """Measure a program, its processor time too; that includes its start, as the wall's figures do not."""
    with run_program(command, folder) as process:
        late = watch_folder(folder, rate, write, pairs)
        return replace(late, cpu_s=read_cpu_seconds(process))


@contextlib.contextmanager
def _place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tidings-latency-", ignore_cleanup_errors=True) as folder_made:
        for name in ("in", "out", "staged"):
            Path(folder_made, name).mkdir()
        yield Path(folder_made)


def list_columns() -> str:
    """Return the columns of an event, in Spark's words."""
    return ", ".join(["id BIGINT", *(f"{name} BIGINT" for name in workload("ranges").schema or ())])


def render_pipeline(snapshot: Path, *, sink: str, trigger: str, servers: str | None) -> str:
    """Return the pipeline's file."""
    where = f'kind = "kafka"\nservers = "{servers}"\ntopic = "{TOPIC}"' if servers else 'kind = "json"\npath = "in"'
    jars = f'jars = "{ROOT / ".kafka" / "connector"}"\n' if servers else ""
    starting = '[source.options]\nstartingOffsets = "earliest"\n' if servers else ""
    return f"""\
name = "latency"
checkpoint = "state"
trigger = "{trigger}"
master = "local[{ground.CORES}]"
{jars}
[source]
{where}
columns = "{list_columns()}"
id = "id"
{starting}
[subscriptions]
snapshot = "{snapshot.resolve()}"

[[sink]]
kind = "{sink}"
path = "out"

[dead_letters]
kind = "json"
path = "bad"

[shown]
view = "off"

[spark]
"spark.driver.memory" = "3g"
"""


@contextlib.contextmanager
def run_program(command: list[str], folder: Path) -> Iterator[int]:
    """Run a program while the block runs, and yield its process id; then terminate it, and kill it if it stays."""
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=ROOT, start_new_session=True)  # noqa: S603
        try:
            yield process.pid
        except TimeoutError as problem:
            msg = f"{problem}; the program said:\n{log.read_text(errors='replace')[-3000:]}"
            raise TimeoutError(msg) from problem
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with contextlib.suppress(ProcessLookupError):  # a group of its own: the JVM and the workers go too
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


# What comes in ---------------------------------------------------------------------------------


@contextlib.contextmanager
def feed(folder: Path, servers: str | None) -> Iterator[Write]:
    """Give what writes events: into the folder, or to the broker."""
    if servers is None:
        yield lambda number, table: _write_renamed(folder, number, table)
        return
    with Producer(servers, TOPIC) as producer:

        def send(_: int, table: pa.Table) -> float:
            records = [(str(row["id"]).encode(), json.dumps(row).encode()) for row in table.to_pylist()]
            begin = time.time()
            producer.send(records, at_ms=int(begin * 1000))
            return begin

        yield send


def _write_renamed(folder: Path, number: int, table: pa.Table) -> float:
    staged = folder / "staged" / f"{number:06}.json"
    staged.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()), encoding="utf-8")
    begin = time.time()
    staged.rename(folder / "in" / staged.name)
    return begin


@contextlib.contextmanager
def start_broker() -> Iterator[str]:
    """Start the tests' broker with a topic, and give its address."""
    from tests.kafka import wire
    from tests.kafka.broker import Broker, wait_for

    folder = Path(tempfile.mkdtemp(prefix="tidings-broker-"))
    kafka_broker = Broker(folder)
    try:
        wire.create_topic(kafka_broker.address, TOPIC)
        wait_for(lambda: wire.list_leaders(kafka_broker.address, TOPIC).get(0, -1) >= 0, 30)
        yield kafka_broker.servers
    finally:
        kafka_broker.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
