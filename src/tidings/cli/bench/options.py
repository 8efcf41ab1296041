"""The options of `tidings bench run` that say what is measured."""

from dataclasses import dataclass
from typing import Annotated

import typer


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What `bench run` measures; where an option is None, `--quick` decides."""

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
