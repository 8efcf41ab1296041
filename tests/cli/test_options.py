"""Groups of options: one parameter of typer for each field that a command names."""

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from tidings.cli.options import with_options


@dataclass(frozen=True)
class Colours:
    red: Annotated[int, typer.Option(help="How red.")] = 1
    green: Annotated[int, typer.Option(help="How green.")] = 2
    blue: Annotated[int, typer.Option(help="How blue.")] = 3


def test_a_command_takes_the_fields_it_names_in_their_order_and_its_own_option_wins():
    app, calls = typer.Typer(), []

    @app.command()
    @with_options("blue name red")
    def paint(colours: Colours, *, name: str = "x", red: int = 9) -> None:
        calls.append((colours, name, red))

    assert CliRunner().invoke(app, ["--blue", "7", "--name", "y"]).exit_code == 0
    assert calls == [(Colours(blue=7), "y", 9)]
    listed = CliRunner().invoke(app, ["--help"]).stdout
    assert listed.index("--blue") < listed.index("--name") < listed.index("--red")
    assert "--green" not in listed
