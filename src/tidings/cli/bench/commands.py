"""`tidings bench`: its commands, their options and their help; `bench.py` does the work, imported when they run."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import options as o

bench_app = typer.Typer(
    no_args_is_help=True,
    help="Measure matchers on seeded workloads, beside baselines and peers; repeat papers' figures; compare runs.",
)

STUDY_PREFIX = "papers/"
"""The prefix of the keys of studies of papers."""

NOT_FOR_STUDIES = {
    "sizes": "-n",
    "kinds": "--matcher",
    "events": "--events",
    "repeat": "--repeat",
    "from_text": "--from-text",
    "memory": "--memory",
    "peers": "--peers",
}
"""Options, by their parameters' names, whose values a study decides itself."""


@bench_app.command("list")
def bench_list(as_json: o.Json = False) -> None:
    """List the workloads and how many matches an event has; in a checkout, also the studies of papers.

    For example:

        tidings bench list
    """
    from tidings.cli.bench import bench as body

    body.list_workloads(as_json=as_json)


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """The options of `bench run` that say what is measured; where one is None, `--quick` decides."""

    sizes: Annotated[
        list[int] | None,
        typer.Option(
            "--subscriptions", "-n", metavar="N", help="How many, 1,000,000 by default; several may be given."
        ),
    ] = None
    kinds: Annotated[
        list[str] | None, typer.Option("--matcher", metavar="KIND", help="Matching algorithm; several may be given.")
    ] = None
    events: Annotated[int | None, typer.Option(metavar="COUNT", help="How many events; 1,024 by default.")] = None
    repeat: Annotated[int | None, typer.Option(metavar="TIMES", help="Repeats of each figure; 5 by default.")] = None
    seed: Annotated[int, typer.Option(help="The seed of everything that is drawn.")] = 1
    quick: Annotated[bool, typer.Option("--quick", help="A few seconds' work, to see that it runs.")] = False
    from_text: Annotated[bool, typer.Option("--from-text", help="Also time loading the filters from text.")] = False
    memory: Annotated[
        bool | None, typer.Option("--memory/--no-memory", help="Measure bytes per subscription, in a child process.")
    ] = None
    peers: Annotated[
        bool | None,
        typer.Option(
            "--peers/--no-peers", help="Measure mokaccino, DuckDB and NumPy too, where installed; yes by default."
        ),
    ] = None


@bench_app.command("run")
@o.with_options("key sizes kinds events repeat seed quick full from_text memory peers out data as_json")
def bench_run(
    context: typer.Context,
    key: Annotated[
        str,
        typer.Argument(
            metavar="KEY",
            help="A workload of `bench list`, parameters as in hem:m=5,delta=0.1; or, in a checkout, papers/hem.",
        ),
    ],
    options: BenchOptions,
    *,
    full: Annotated[bool, typer.Option("--full", help="The paper's own ranges, however long; studies only.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FOLDER", help="Write results and plots (PNG) here; a study: out/papers/KEY by default."
        ),
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
        tidings bench run papers/hem --quick

    Each figure is the median of repeats, with half the distance from the least to the greatest. The matches of each
    event must agree with the baseline's, or the run is refused.

    In a checkout, `papers/KEY` repeats a paper's figures: tables, the paper's claims with our figures beside them,
    kept or missed, and `study.json` with a plot for each figure. `--quick` takes minutes, `--full` the paper's sizes.
    """
    _check_options(context, key, quick=options.quick, full=full)
    if data is not None:
        os.environ["TIDINGS_DATA"] = str(data)  # the child that measures memory reads it too
    if key.startswith(STUDY_PREFIX):
        from tidings.cli.bench import studies

        scale = "quick" if options.quick else "full" if full else "usual"
        studies.run(key, scale, seed=options.seed, out=out, as_json=as_json)
        return
    from tidings.cli.bench import bench as body

    body.run(key, options, out=out, as_json=as_json)


def _check_options(context: typer.Context, key: str, *, quick: bool, full: bool) -> None:
    """Refuse options that contradict each other, or the key."""
    o.refuse_when(quick and full, "--quick and --full exclude each other")
    if not key.startswith(STUDY_PREFIX):
        no_study = f"--full is for studies of papers (papers/hem); `{key}` is a workload: say how many with -n"
        o.refuse_when(full, no_study)
        return
    typed = [option for name, option in NOT_FOR_STUDIES.items() if o.is_typed(context, name)]
    own = f"{', '.join(typed)} cannot be said of a study: `{key}` has its own"
    o.refuse_when(bool(typed), f"{own}; take --quick, --full, --seed or --out")


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
    from tidings.cli.bench import bench as body

    body.compare(before, after, as_json=as_json)
