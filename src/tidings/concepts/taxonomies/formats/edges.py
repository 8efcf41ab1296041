"""CSV of `parent,child` rows; a child on several rows has several parents.

A first row with the words `parent` and `child` names the columns; otherwise the first two columns are
meant, or those named by the option `columns`. A column `synonyms` holds further spellings parted by `|`.
An empty parent declares a root; where some root is declared so, every other parent must be a child of
some row.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from tidings.concepts.spelling import did_you_mean
from tidings.concepts.taxonomies.tree_draft import Draft, Source
from tidings.errors import OntologyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def read(source: Source) -> Draft:
    """Read rows of links."""
    draft = Draft(source.label)
    rows = [row for row in _read_rows(source.text, source.label) if any(row[1]) and not row[1][0].startswith("#")]
    columns, headed = _find_columns(source, rows[0][1] if rows else [])
    has_root = False
    for line, row in rows[headed:]:
        parent, child, words = (row[column] if column is not None and column < len(row) else "" for column in columns)
        if not child:
            draft.note_mistake("the row names no child", line)
            continue
        draft.mention(child, line)
        draft.spell(child, (word.strip() for word in words.split("|")))
        if parent:
            draft.link(child, parent, line)
        has_root = has_root or not parent
    if not has_root:
        draft.mention_parents()
    return draft


def _read_rows(text: str, label: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=None))
    try:
        for row in reader:
            yield reader.line_num, [cell.strip() for cell in row]
    except csv.Error as problem:
        msg = f"{label}, line {reader.line_num}: {problem}"
        raise OntologyError(msg) from problem


def _find_columns(source: Source, first: Sequence[str]) -> tuple[tuple[int | None, ...], bool]:
    """Return where parent, child and synonyms stand, and whether the first row only names them."""
    wanted = source.columns or ("parent", "child")
    names = list(first) if source.columns else [cell.lower() for cell in first]
    synonyms = names.index("synonyms") if "synonyms" in names else None
    if all(name in names for name in wanted):
        return (*(names.index(name) for name in wanted[:2]), synonyms), True
    if source.columns:
        missing = next(name for name in wanted if name not in names)
        msg = f"{source.label}: no column `{missing}`{did_you_mean(missing, names)}; it has {', '.join(names)}"
        raise OntologyError(msg)
    return (0, 1, 2), False
