"""`tidings concept`: what a name means in a file of concepts, and whether the file is valid."""

from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import options as o
from tidings.cli import render

concept_app = typer.Typer(
    no_args_is_help=True, help="Look into a file of concepts: show what is there, check the file."
)


@concept_app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A concept, by any of its names.")],
    ontology: Annotated[Path, o.make_option("--ontology", "The file of concepts.", metavar="FILE")],
    as_json: o.JsonOption = False,
) -> None:
    """Show a concept: its names, what stands above it and what below.

    For example:

        tidings concept show laptop --ontology products.toml
    """
    from tidings.concepts import Ontology, ontology_description

    concepts = Ontology.load(ontology)
    if not as_json:
        render.write(ontology_description.show_text(concepts, name))
        return
    for meaning in ontology_description.show(concepts, name):
        render.write_json(meaning)


@concept_app.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file of concepts.")], as_json: o.JsonOption = False
) -> None:
    """Check a file of concepts: every mistake at once, or what it holds.

    For example:

        tidings concept check products.toml
    """
    from tidings.concepts import ontology_description
    from tidings.errors import OntologyError

    report = ontology_description.check(file)
    if as_json:
        render.write_json(report)
    if not report["ok"]:
        raise OntologyError("\n".join(report["mistakes"]))
    if not as_json:
        render.write(ontology_description.check_text(file))
