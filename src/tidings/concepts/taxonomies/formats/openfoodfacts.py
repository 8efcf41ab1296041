"""Open Food Facts' taxonomies: blocks of `< en: parent` lines and of names by language.

A concept's own name is its tag, such as `en:baby-foods`, which is what product data carries. All names
and synonyms of all languages are further spellings, with and without their language. A parent is found
by the tag of any of its names; failing that, with the plurals of its words set aside, as the format's
own tools do. Lines of other properties (`wikidata:en: ...`) are skipped.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidings.concepts.taxonomies.tree_draft import Draft, Source

if TYPE_CHECKING:
    from collections.abc import Iterator


_NAMES = re.compile(r"([A-Za-z]{2,3}(?:[-_][A-Za-z]+)*)\s*:(.*)")
_COMMA = re.compile(r"(?<!\\),")
_OUTSIDE_WORDS = re.compile(r"[\W_]+")


@dataclass(slots=True)
class _Block:
    line: int
    parents: list[tuple[int, str]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)

    @property
    def tag(self) -> str:
        return self.tags[0]


def read(source: Source) -> Draft:
    """Read blocks parted by empty lines."""
    draft = Draft(source.label)
    blocks = [*_read_blocks(source.text)]
    for block in (block for block in blocks if not block.names and block.parents):
        draft.note_gap("a block with parents but without a name", block.line)
    blocks = [block for block in blocks if block.names]
    for block in blocks:
        draft.define(block.tag, block.line)
        draft.spell(block.tag, [*block.names, *block.tags])
    _link(draft, blocks)
    return draft


def tag_of(language: str, name: str) -> str:
    """Return the tag of a name: words in lower case without accents, joined by hyphens.

    >>> tag_of("fr", "Céréales pour bébé")
    'fr:cereales-pour-bebe'
    """
    plain = name.lower()
    if not plain.isascii():
        plain = "".join(c for c in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(c))
    return f"{language.strip().lower()}:{_OUTSIDE_WORDS.sub('-', plain).strip('-')}"


def _read_blocks(text: str) -> Iterator[_Block]:
    block = _Block(0)
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            yield block
            block = _Block(0)
        elif not line.startswith("#"):
            block.line = block.line or number
            _add_line(block, number, line)
    yield block


def _add_line(block: _Block, number: int, line: str) -> None:
    if line.startswith("<"):
        language, _, name = line[1:].partition(":")
        block.parents.append((number, tag_of(language, name)))
    elif match := _NAMES.fullmatch(line):
        words = [word.strip().replace("\\,", ",") for word in _COMMA.split(match[2]) if word.strip()]
        block.line = number if words and not block.names else block.line
        block.names += words
        block.tags += [tag_of(match[1], word) for word in words]


def _link(draft: Draft, blocks: list[_Block]) -> None:
    by_tag: dict[str, str] = {}
    for block in blocks:
        for tag in block.tags:
            by_tag.setdefault(tag, block.tag)
    by_tag.update((block.tag, block.tag) for block in blocks)
    by_stem = {_strip_plurals(tag): owner for tag, owner in reversed(by_tag.items())}
    for block in blocks:
        for line, parent in block.parents:
            draft.link(block.tag, by_tag.get(parent) or by_stem.get(_strip_plurals(parent)) or parent, line)


def _strip_plurals(tag: str) -> str:
    return "-".join(part.removesuffix("s") for part in tag.split("-"))
