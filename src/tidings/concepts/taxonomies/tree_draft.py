"""The input and the output of readers of tree files: a `Source`, and a `Draft` of concepts, links and spellings.

A reader only records what the file says, with its lines; `Draft` decides what is a mistake: a name given twice or a
parent defined nowhere (the gaps), or a circle. All mistakes of a file are reported together. With `lenient`, gaps are
left out of the tree and listed in its `dropped`; a circle is always an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tidings.concepts.mistakes import refuse
from tidings.concepts.spelling import did_you_mean
from tidings.concepts.taxonomies.numbering import find_circle
from tidings.errors import OntologyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True, slots=True)
class Source:
    """A tree file's text, its name in messages, and the options of its format."""

    text: str
    label: str = "tree"
    path: Path | None = None
    columns: tuple[str, ...] = ()
    language: str = "en"


def iterate_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield numbered lines; empty ones and `#` comments are left out."""
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if bare and not bare.startswith("#"):
            yield number, line.rstrip()


class TreeParts(NamedTuple):
    """What `Tree` is built of: each concept's parents, further spellings, and the places that were left out."""

    parents: dict[str, tuple[str, ...]]
    synonyms: dict[str, tuple[str, ...]]
    dropped: list[str]


class Draft:
    """The concepts of a file while it is read; `check` checks them together. Messages call the file `label`."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._lines: dict[str, int | None] = {}
        self._links: dict[tuple[str, str], int | None] = {}
        self._synonyms: dict[str, dict[str, None]] = {}
        self._mistakes: list[str] = []
        self._gaps: list[str] = []

    def __contains__(self, name: str) -> bool:
        return name in self._lines

    def define(self, name: str, line: int | None = None) -> None:
        """Add a concept that the file must define once."""
        if name in self._lines:
            where = f"stands on line {self._lines[name]} already" if line else "is given twice"
            self.note_gap(f"`{name}` {where}; a name may be given once", line)
        self._lines.setdefault(name, line)

    def mention(self, name: str, line: int | None = None) -> None:
        """Add a concept that the file may name any number of times."""
        self._lines.setdefault(name, line)

    def link(self, child: str, parent: str, line: int | None = None) -> None:
        """Put a concept under another, which may be defined later."""
        self._links.setdefault((child, parent), line)

    def spell(self, name: str, words: Iterable[str]) -> None:
        """Give a concept further spellings."""
        self._synonyms.setdefault(name, {}).update((word, None) for word in words if word and word != name)

    def note_mistake(self, text: str, line: int | None = None) -> None:
        """Note a mistake."""
        self._mistakes.append(self._place(text, line))

    def note_gap(self, text: str, line: int | None = None) -> None:
        """Note a mistake that a lenient reader leaves out of the tree."""
        self._gaps.append(self._place(text, line))

    def mention_parents(self) -> None:
        """Add every parent as a concept: where a file declares no root, the parents that are no child are the roots."""
        for (_, parent), line in self._links.items():
            self.mention(parent, line)

    def _add_root(self, root: str) -> None:
        """Put all roots under one."""
        children = {child for child, _ in self._links}
        roots = [name for name in self._lines if name not in children]
        self.define(root)
        for name in roots:
            self.link(name, root)

    def check(self, *, lenient: bool = False, root: str | None = None) -> TreeParts:
        """Check the whole, under one `root` if it is given, and return what a tree is built of."""
        if root is not None:
            self._add_root(root)
        self._drop_undefined()
        advice = f"{self.label}: `lenient = true` (in Python `lenient=True`) leaves such places out and loads the rest"
        refuse(self._mistakes if lenient or not self._gaps else [*self._mistakes, *self._gaps, advice])
        parents: dict[str, tuple[str, ...]] = dict.fromkeys(self._lines, ())
        for child, parent in self._links:
            parents[child] += (parent,)
        if not parents:
            msg = f"{self.label}: no concept in it"
            raise OntologyError(msg)
        circle = find_circle(parents)
        if circle:
            steps = map(self._describe_link, circle, [*circle[1:], circle[0]])
            refuse([f"{self.label}: concepts in a circle: {', '.join(steps)}"])
        return TreeParts(parents, {name: tuple(words) for name, words in self._synonyms.items()}, self._gaps)

    def _drop_undefined(self) -> None:
        for (child, parent), line in list(self._links.items()):
            if parent not in self._lines:
                hint = did_you_mean(parent, self._lines)
                self.note_gap(f"`{child}` lies under `{parent}`, which is defined nowhere{hint}", line)
                del self._links[child, parent]
            elif child not in self._lines:
                hint = did_you_mean(child, self._lines)
                self.note_gap(f"`{child}`, which is defined nowhere, lies under `{parent}`{hint}", line)
                del self._links[child, parent]

    def _describe_link(self, child: str, parent: str) -> str:
        line = self._links[child, parent]
        return f"`{child}` under `{parent}`" + (f" (line {line})" if line else "")

    def _place(self, text: str, line: int | None) -> str:
        return f"{self.label}, line {line}: {text}" if line else f"{self.label}: {text}"
