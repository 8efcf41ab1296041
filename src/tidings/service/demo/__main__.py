"""`make demo`: car ads are posted while people save, change and drop searches; the matches come back, all over HTTP.

It writes a `service.toml`, runs `tidings serve` on it, and plays the outside world (`demo_world`) through its API
(`demo_client`): subscribes, posts ads, changes and removes searches meanwhile, and reads the matches as a stream. Then
it ends the service and tells what happened (`summary`). A few ads are damaged on purpose.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from tidings.errors import MissingExtra, TidingsError
from tidings.service.demo.demo_world import BARGAINS, DemoWorld
from tidings.service.leash import LEASHED

try:
    import httpx

    from tidings.service.demo import summary
    from tidings.service.demo.demo_client import PATIENCE_S, DemoClient
except ModuleNotFoundError as problem:
    msg = "the demo needs what `pip install 'tidings[spark,service]'` installs"
    raise MissingExtra(msg) from problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SERVICE = """\
# Written by `make demo`; `tidings serve` goes on with it.
port = {port}
data = "data"

[schema]                              # what searches may ask for, and as what
make = "text"
model = "text"
year = "number"
price = "number"                      # an ad with anything else is refused when it is posted
odometer = "number"
fuel = "text"
color = "text"
tags = "several text"
posted = "time"
spot = "place"
seller.kind = "text"
seller.name = "text"
seller.rating = "number"
mark = "text"                         # of events that are no ads: they show how far the pipeline is

[patterns]
idle = "1 s"

[spark]
# Java's second compiler only pays in programs that run for longer than a minute.
spark.driver.extraJavaOptions = "-XX:TieredStopAtLevel=1"
"""

PATH = "/v1/subscriptions"
BARGAINS_ID = "two bargains of one dealer"

MADE = ("data", "service.toml")
"""What a run leaves, and the next run replaces."""


def demo(
    ads: Annotated[int, typer.Option(min=1, help="How many car ads.")] = 1500,
    searches: Annotated[int, typer.Option(min=1, help="How many saved searches.")] = 3000,
    out: Annotated[Path, typer.Option(help="Where the service keeps everything.")] = Path("out/demo"),
    seed: Annotated[int, typer.Option(help="The same seed gives the same ads, searches and matches.")] = 7,
) -> None:
    """Match car ads against saved searches that change meanwhile, through a service over HTTP."""
    console = Console(highlight=False)
    start = time.monotonic()
    try:
        port = _prepare_folder(out)
        with _serve(out) as process:
            play = DemoPlay(console, DemoWorld.generate(ads, searches, seed=seed, now=datetime.now(UTC)), out)
            results = play.run(f"http://127.0.0.1:{port}", process)
    except TidingsError as problem:
        Console(stderr=True, highlight=False).print(Text(f"error: {problem}"))
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        console.print(Text(f"stopped; tidings serve {out}/service.toml goes on from here"), soft_wrap=True)
        raise typer.Exit(130) from None
    console.print()
    summary.print_summary(console, results, out, seconds=time.monotonic() - start)


def _prepare_folder(out: Path) -> int:
    """Clear the folder and write the service's file; return the port, a free one."""
    for name in MADE:
        shutil.rmtree(out / name) if (out / name).is_dir() else (out / name).unlink(missing_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    (out / "service.toml").write_text(SERVICE.format(port=port), encoding="utf-8")
    return port


@contextmanager
def _serve(out: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the service inside the block; it ends with it, and with this process."""
    command = [sys.executable, "-m", "tidings", "serve", str(out / "service.toml")]
    environ = {**os.environ, LEASHED: "1"}
    process = subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, process_group=0)  # noqa: S603 - our own
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE_S)


class DemoPlay:
    """Plays the world against a service."""

    def __init__(self, console: Console, world: DemoWorld, folder: Path) -> None:
        self._console, self._world, self._folder = console, world, folder
        self._refusals: dict[str, str] = {}

    def run(self, url: str, process: subprocess.Popen[bytes]) -> summary.DemoResults:
        """Play all acts, and return what came of them."""

        def check() -> None:
            if process.poll() is not None:
                logs = f"{self._folder}/data/logs"
                msg = f"the service ended with exit code {process.returncode}; what it said is in {logs}"
                raise TidingsError(msg)

        client = DemoClient(url, self._wait_for_key(url, check), check=check)
        with client:
            client.follow_matches()
            client.ask("POST", PATH, json={"id": BARGAINS_ID, "pattern": BARGAINS})
            for number in range(len(self._world.acts)):
                self._run_act(client, number)
            client.pass_mark("end", through_patterns=True)
            return summary.DemoResults.sort(self._world, client.matches, self._refusals)

    def _wait_for_key(self, url: str, check: Callable[[], None]) -> str:
        """Return the admin key, once the API answers."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            check()
            with suppress(httpx.HTTPError):
                if httpx.get(f"{url}/readyz", trust_env=False).status_code == 200:
                    return (self._folder / "data" / "admin.key").read_text(encoding="ascii").strip()
            time.sleep(0.1)
        msg = f"the API does not answer at {url}; what it said is in {self._folder}/data/logs"
        raise TidingsError(msg)

    def _run_act(self, client: DemoClient, number: int) -> None:
        act = self._world.acts[number]
        client.change_searches(act.changes)
        begin = time.monotonic()
        if number == 0:
            client.pass_mark("patterns", through_patterns=True)
        client.pass_mark(f"begin-{number}")
        waited = "" if number == 0 else f": in force after {time.monotonic() - begin:.1f} s"
        self._say(f"{act.title}{waited}")
        for body in self._world.split_posts(act):
            client.post(body)
        for id, body in self._world.list_damaged(act):
            self._refusals[id] = "; ".join(client.post(body))
        client.pass_mark(f"end-{number}")
        self._say(f"{len(act.ads):,} ads are posted and matched: {len(client.matches):,} matches so far")

    def _say(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)


if __name__ == "__main__":
    typer.run(demo)  # Ctrl-C ends it without a trace
