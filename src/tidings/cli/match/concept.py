"""`tidings concept`: what a name means in a file of concepts, and whether the file is sound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.cli import render
from tidings.concepts import Ontology, ontology_description
from tidings.errors import OntologyError

if TYPE_CHECKING:
    from pathlib import Path


def show(name: str, ontology: Path, *, as_json: bool) -> None:
    """Print what the name means; with `--json` a line for each of its meanings."""
    known = Ontology.load(ontology)
    if not as_json:
        render.out(ontology_description.show_text(known, name))
        return
    for meaning in ontology_description.show(known, name):
        render.out_json(meaning)


def check(file: Path, *, as_json: bool) -> None:
    """Print what the file holds, or refuse it with all its mistakes."""
    found = ontology_description.check(file)
    if as_json:
        render.out_json(found)
    if not found["ok"]:
        raise OntologyError("\n".join(found["mistakes"]))
    if not as_json:
        render.out(ontology_description.check_text(file))
