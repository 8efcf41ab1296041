"""Indented text: a concept under the last line that is indented less. Synonyms follow after ` = `.

product
  computer
    desktop PC = 台式机 = desktop
"""

from __future__ import annotations

from tidings.concepts.taxonomies.tree_draft import Draft, Source, iterate_lines


def read(source: Source) -> Draft:
    """Read indented text."""
    draft = Draft(source.label)
    above: list[tuple[int, str]] = []
    indents: set[str] = set()
    for line, text in iterate_lines(source.text):
        names = [part.strip() for part in text.split(" = ")]
        indent = text[: len(text) - len(text.lstrip())]
        indents.update(indent)
        while above and above[-1][0] >= len(indent):
            above.pop()
        draft.define(names[0], line)
        draft.spell(names[0], names[1:])
        if above:
            draft.link(names[0], above[-1][1], line)
        above.append((len(indent), names[0]))
    if len(indents) > 1:
        draft.note_mistake("tabs and spaces are mixed in the indentation; use one of them")
    return draft
