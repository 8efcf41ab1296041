"""Lists of whole paths, `A > B > C`, one a line; an id may stand before, parted by a tab or ` : `.

The names of such lists repeat under different parents (there are dozens of `Accessories`), so a concept's
own name is its whole path. Its last part, and its id, are further spellings: usable alone where one
concept only has them. With ids every concept has a line of its own, so a path whose upper part has none
is an orphan; without ids the upper parts are taken as given.
"""

from __future__ import annotations

import re

from tidings.concepts.taxonomies.tree_draft import Draft, Source, iterate_lines

_ID = re.compile(r"(?P<id>[^>]*?)(?:\t| +: )\s*(?P<path>.*)")
_STEP = re.compile(r"(?:^|\s)>(?=\s|$)")
SEPARATOR = " > "
"""What stands between the parts of a concept's name."""


def read(source: Source) -> Draft:
    """Read a list of paths."""
    draft = Draft(source.label)
    for line, text in iterate_lines(source.text):
        match = _ID.fullmatch(text.strip())
        parts = [part.strip() for part in _STEP.split(match["path"] if match else text)]
        if not all(parts):
            draft.note_mistake("a part of the path is empty", line)
            continue
        _add(draft, parts, line, id_=match["id"].strip() if match else None)
    return draft


def _add(draft: Draft, parts: list[str], line: int, *, id_: str | None) -> None:
    name = SEPARATOR.join(parts)
    if id_ is not None or name not in draft:
        draft.define(name, line)
    draft.spell(name, [parts[-1], *([id_] if id_ else [])])
    if len(parts) < 2:
        return
    parent = SEPARATOR.join(parts[:-1])
    draft.link(name, parent, line)
    # Without ids, the upper parts of a path need no lines of their own.
    if id_ is None and parent not in draft:
        _add(draft, parts[:-1], line, id_=None)
