"""Tree files, one reader for each format: text in, a draft of the tree out.

A format is one module with a function `read` and one line of `READERS`. Which format a file has is told
from its name and, for plain text, from its content; `format=` overrules that.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.concepts.spelling import did_you_mean
from tidings.concepts.taxonomies.formats import edges, nested, openfoodfacts, outline, paths, skos, wordnet
from tidings.concepts.taxonomies.tree_draft import Draft, Source, TreeParts
from tidings.concepts.text_files import get_suffix, read_text
from tidings.errors import OntologyError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["OPTIONS", "READERS", "format_of", "read_tree_file", "read_tree_text"]

READERS: dict[str, Callable[[Source], Draft]] = {
    "csv": edges.read,
    "openfoodfacts": openfoodfacts.read,
    "outline": outline.read,
    "paths": paths.read,
    "skos": skos.read,
    "table": nested.read,
    "wordnet": wordnet.read,
}
"""The formats by name."""

OPTIONS = ("columns", "language", "lenient", "root")
"""What may be said of a tree file beside its format."""

_SUFFIXES = {
    ".csv": "csv",
    ".json": "table",
    ".toml": "table",
    ".noun": "wordnet",
    **dict.fromkeys((".ttl", ".rdf", ".owl", ".xml", ".nt", ".n3", ".jsonld", ".skos"), "skos"),
}
_PARENT_LINE = re.compile(r"^<\s*[A-Za-z]{2,3}\s*:", re.MULTILINE)


def read_tree_file(path: str | Path, *, format: str | None = None, **options: Any) -> TreeParts:
    """Read a tree file, plain or gzipped."""
    path = Path(path)
    text = read_text(path)
    return read_tree_text(text, format=format or format_of(path, text), label=path.name, path=path, **options)


def read_tree_text(
    text: str, *, format: str, lenient: bool = False, root: str | None = None, label: str | None = None, **options: Any
) -> TreeParts:
    """Read a tree's text in a named format."""
    if format not in READERS:
        msg = f"unknown format `{format}`{did_you_mean(format, READERS)}; the formats are {', '.join(READERS)}"
        raise OntologyError(msg)
    if "columns" in options:
        options["columns"] = tuple(options["columns"])
    return READERS[format](Source(text, label=label or format, **options)).check(lenient=lenient, root=root)


def format_of(path: Path, text: str) -> str:
    """Tell the format from the file's name and content."""
    # Text files have any suffix; a line of parents and the sign between the parts of a path tell their formats apart.
    named = _SUFFIXES.get(get_suffix(path))
    if named:
        return named
    if _PARENT_LINE.search(text):
        return "openfoodfacts"
    return "paths" if " > " in text else "outline"
