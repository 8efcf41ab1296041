"""`tidings bench`: its commands, their options and their help; `bench.py` does the work, imported when they run."""

import os
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import options as o
from tidings.cli.bench import studies
from tidings.cli.bench.options import BenchOptions

bench_app = typer.Typer(
    no_args_is_help=True,
    help="Measure matchers on seeded workloads, beside baselines and peers; repeat papers' figures; compare runs.",
)

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
def bench_list(as_json: o.JsonOption = False) -> None:
    """List the workloads and how many matches an event has; in a checkout, also the studies of papers.

    For example:

        tidings bench list
    """
    from tidings.cli.bench import bench as body

    body.list_workloads(as_json=as_json)


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
    as_json: o.JsonOption = False,
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
    if key.startswith(studies.STUDY_PREFIX):
        scale = "quick" if options.quick else "full" if full else "usual"
        studies.run(key, scale, seed=options.seed, out=out, as_json=as_json)
        return
    from tidings.cli.bench import bench as body

    body.run(key, options, out=out, as_json=as_json)


def _check_options(context: typer.Context, key: str, *, quick: bool, full: bool) -> None:
    """Refuse options that contradict each other, or the key."""
    o.refuse_when(quick and full, "--quick and --full exclude each other")
    if not key.startswith(studies.STUDY_PREFIX):
        o.refuse_when(
            full, f"--full is for studies of papers (papers/hem); `{key}` is a workload: say how many with -n"
        )
        return
    typed = [option for name, option in NOT_FOR_STUDIES.items() if o.is_typed(context, name)]
    own = f"{', '.join(typed)} cannot be said of a study: `{key}` has its own"
    o.refuse_when(bool(typed), f"{own}; take --quick, --full, --seed or --out")


@bench_app.command("compare")
def bench_compare(
    before: Annotated[Path, typer.Argument(metavar="A", help="Results of one run.")],
    after: Annotated[Path, typer.Argument(metavar="B", help="Results of another.")],
    as_json: o.JsonOption = False,
) -> None:
    """Say of every figure in two files of results whether it got faster, slower, or whether that is noise.

    For example:

        tidings bench compare results/ranges-before.jsonl results/ranges-after.jsonl
    """
    from tidings.cli.bench import bench as body

    body.compare(before, after, as_json=as_json)
