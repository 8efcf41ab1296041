"""`tidings concept`: what a name means in a file of concepts, and whether the file is valid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.cli import render
from tidings.concepts import Ontology, ontology_description
from tidings.errors import OntologyError

if TYPE_CHECKING:
    from pathlib import Path


def show(name: str, ontology: Path, *, as_json: bool) -> None:
    """Print the meanings of a name; with `--json` one line each."""
    concepts = Ontology.load(ontology)
    if not as_json:
        render.write(ontology_description.show_text(concepts, name))
        return
    for meaning in ontology_description.show(concepts, name):
        render.write_json(meaning)


def check(file: Path, *, as_json: bool) -> None:
    """Print a summary of the file, or refuse it with all its mistakes."""
    report = ontology_description.check(file)
    if as_json:
        render.write_json(report)
    if not report["ok"]:
        raise OntologyError("\n".join(report["mistakes"]))
    if not as_json:
        render.write(ontology_description.check_text(file))
