"""Trees written in TOML or JSON: `children`, tables within tables, or `parents`, each child with its parents.

In `parents` a name that only ever stands as a parent is a root, unless some root is declared by an empty
list: then every parent must be a key.
"""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

from tidings.concepts.mistakes import refuse
from tidings.concepts.taxonomies.tree_draft import Draft, Source
from tidings.errors import OntologyError

if TYPE_CHECKING:
    from collections.abc import Mapping


KEYS = ("children", "parents", "synonyms")
"""What a tree's table may hold."""


def read(source: Source) -> Draft:
    """Read the text of a TOML or JSON file that holds one tree."""
    try:
        table = json.loads(source.text) if source.text.lstrip().startswith("{") else tomllib.loads(source.text)
    except (ValueError, RecursionError) as problem:
        msg = f"{source.label}: {problem}"
        raise OntologyError(msg) from problem
    unknown = [key for key in table if key not in KEYS]
    refuse([f"{source.label}: unknown key `{key}`; a tree has {', '.join(KEYS)}" for key in unknown])
    return draft_tree(table, source.label)


def draft_tree(table: Mapping[str, Any], label: str) -> Draft:
    """Draft a tree from a table with `children` or `parents`, and `synonyms`."""
    draft = Draft(label)
    match table:
        case {"children": dict(children)}:
            _nest(draft, children)
        case {"parents": dict(parents)}:
            _link(draft, parents)
        case _:
            draft.note_mistake("a tree has a table `children` (tables within tables) or `parents` (child = parents)")
    for name, words in _read_lists(draft, table.get("synonyms", {}), "synonyms").items():
        _spell(draft, name, words)
    return draft


def _nest(draft: Draft, children: Mapping[str, Any]) -> None:
    stack: list[tuple[str | None, Mapping[str, Any]]] = [(None, children)]
    while stack:
        parent, below = stack.pop()
        for name, deeper in below.items():
            draft.define(name)
            if parent is not None:
                draft.link(name, parent)
            if isinstance(deeper, dict):
                stack.append((name, deeper))
            else:
                hint = "a concept without children has an empty table, {}"
                draft.note_mistake(f"below `{name}` stands {deeper!r}; {hint}")


def _link(draft: Draft, parents: Mapping[str, Any]) -> None:
    above = _read_lists(draft, parents, "parents")
    for name, names in above.items():
        draft.define(name)
        for parent in names:
            draft.link(name, parent)
    if all(above.values()):  # no root is declared by an empty list
        draft.mention_parents()


def _spell(draft: Draft, name: str, words: list[str]) -> None:
    if name not in draft:
        draft.note_mistake(f"synonyms of `{name}`, which is no concept of this tree")
        return
    for word in words:
        if word in draft and word != name:
            draft.note_mistake(f"`{word}` is given as a synonym of `{name}`, but it is a concept of its own")
    draft.spell(name, words)


def _read_lists(draft: Draft, table: Any, key: str) -> dict[str, list[str]]:
    """Return a table of lists of text; a single text is a list of one, and an empty one of none."""
    if not isinstance(table, dict):
        draft.note_mistake(f"`{key}` is a table, not {table!r}")
        return {}
    lists: dict[str, list[str]] = {}
    for name, words in table.items():
        texts = [] if words == "" else list_texts(words)
        if texts is None:
            draft.note_mistake(f"`{key}` of `{name}`: a text or a list of texts, not {words!r}")
        else:
            lists[name] = texts
    return lists


def list_texts(words: Any) -> list[str] | None:
    """Return a list of texts as it is, a single text as a list of one, and nothing for anything else."""
    words = [words] if isinstance(words, str) else words
    return words if isinstance(words, list) and all(isinstance(word, str) for word in words) else None
