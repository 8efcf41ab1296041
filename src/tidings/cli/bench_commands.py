"""`tidings bench`: its commands, their options and their help; `bench.py` does the work and is imported by then."""

import os
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import options as o
from tidings.cli.guard import guarded

bench_app = typer.Typer(
    no_args_is_help=True, help="Measure matchers on seeded workloads, beside baselines and peers; compare two runs."
)


@bench_app.command("list")
def bench_list(as_json: o.Json = False) -> None:
    """List the workloads and how many matches an event has.

    For example:

        tidings bench list
    """
    with guarded():
        from tidings.cli import bench as body

        body.listing(as_json=as_json)


@bench_app.command("run")
def bench_run(  # noqa: PLR0913 - one parameter for each option
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="A workload of `bench list`; parameters as in hem:m=5,delta=0.1.")
    ],
    *,
    sizes: Annotated[
        list[int] | None,
        typer.Option(
            "--subscriptions", "-n", metavar="N", help="How many, 1,000,000 by default; several may be given."
        ),
    ] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--matcher", metavar="KIND", help="Matching algorithm; several may be given."),
    ] = None,
    events: Annotated[int | None, typer.Option(metavar="COUNT", help="How many events; 1,024 by default.")] = None,
    repeat: Annotated[int | None, typer.Option(metavar="TIMES", help="Repeats of each figure; 5 by default.")] = None,
    seed: Annotated[int, typer.Option(help="The seed of everything that is drawn.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="A few seconds' work, to see that it runs.")] = False,
    from_text: Annotated[bool, typer.Option("--from-text", help="Also time loading the filters from text.")] = False,
    memory: Annotated[
        bool | None, typer.Option("--memory/--no-memory", help="Measure bytes per subscription, in a child process.")
    ] = None,
    peers: Annotated[
        bool, typer.Option("--peers/--no-peers", help="Measure mokaccino, DuckDB and NumPy too, where installed.")
    ] = True,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="Write results (JSON lines) and plots (PNG) here.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", envvar="TIDINGS_DATA", help="Real data, for used-cars and house-sales."),
    ] = None,
    as_json: o.Json = False,
) -> None:
    """Measure matchers on a workload: building, matching, inserting, deleting, memory, and the ratio to baselines.

    For example:

        tidings bench run ranges -n 100000 -n 1000000 --out results

    Each figure is the median of repeats, with half the distance from the least to the greatest. The matches of each
    event must agree with the baseline's, or the run is refused.
    """
    with guarded():
        from tidings.cli import bench as body

        if data is not None:
            os.environ["TIDINGS_DATA"] = str(data)  # the child that measures memory reads it too
        order = body.Order(
            tuple(sizes or ()), tuple(kinds or ()), events, repeat, seed, quick, peers, memory, from_text
        )
        body.run(key, order, out=out, as_json=as_json)


@bench_app.command("compare")
def bench_compare(
    before: Annotated[Path, typer.Argument(metavar="A", help="Results of one run.")],
    after: Annotated[Path, typer.Argument(metavar="B", help="Results of another.")],
    as_json: o.Json = False,
) -> None:
    """Say of every figure in two files of results whether it got faster, slower, or whether that is noise.

    For example:

        tidings bench compare results/ranges-before.jsonl results/ranges-after.jsonl
    """
    with guarded():
        from tidings.cli import bench as body

        body.compare(before, after, as_json=as_json)
