"""WordNet's noun files: `data.noun`, with `index.noun` beside it.

A concept is a set of words with one meaning, named by its first word, part of speech and number among
that word's meanings: `dog.n.01`. Its words are its synonyms, so a word with several meanings is
ambiguous and the error names them. Parents are the kinds it belongs to (`@`) and, for a particular
person or place, what it is an instance of (`@i`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.concepts.taxonomies.tree_draft import Draft, Source
from tidings.concepts.text_files import read_text
from tidings.errors import FileError, OntologyError

if TYPE_CHECKING:
    from collections.abc import Iterator


ABOVE = ("@", "@i")
"""The pointers that lead to a parent."""


@dataclass(frozen=True, slots=True)
class _Meaning:
    offset: str
    words: tuple[str, ...]
    parents: tuple[str, ...]


def read(source: Source) -> Draft:
    """Read `data.noun`; the numbers of a word's meanings come from `index.noun`."""
    draft = Draft(source.label)
    meanings = [*_read_meanings(source.text, draft)]
    senses = _read_senses(_read_index(source), draft)
    names = {}
    for _, meaning in meanings:
        word = meaning.words[0].lower()
        names[meaning.offset] = f"{word}.n.{senses.get((word, meaning.offset), 0):02}"
    for line, meaning in meanings:
        name = names[meaning.offset]
        draft.define(name, line)
        # WordNet joins the words of a phrase by underscores; people and texts write blanks.
        draft.spell(name, (word.replace("_", " ") for word in meaning.words))
        draft.spell(name, meaning.words)
        for parent in meaning.parents:
            draft.link(name, names.get(parent, parent), line)
    return draft


def _read_meanings(text: str, draft: Draft) -> Iterator[tuple[int, _Meaning]]:
    for number, line in _number_lines(text):
        try:
            yield number, _parse_meaning(line)
        except (ValueError, IndexError):
            draft.note_mistake("the line is not in the form of WordNet's data files", number)


def _parse_meaning(line: str) -> _Meaning:
    # offset, file, part of speech, number of words (hexadecimal), words with ids, number of pointers, pointers of four.
    fields = line.partition("|")[0].split()
    count = int(fields[3], 16)
    words = tuple(fields[4 : 4 + 2 * count : 2])
    pointers = fields[5 + 2 * count :][: 4 * int(fields[4 + 2 * count])]
    if not words or len(words) != count or len(pointers) != 4 * int(fields[4 + 2 * count]):
        raise ValueError(line)
    above = (pointers[place + 1] for place in range(0, len(pointers), 4) if pointers[place] in ABOVE)
    return _Meaning(fields[0], words, tuple(above))


def _read_senses(text: str, draft: Draft) -> dict[tuple[str, str], int]:
    senses: dict[tuple[str, str], int] = {}
    for number, line in _number_lines(text):
        fields = line.split()
        if len(fields) < 4 or not fields[2].isdecimal():
            draft.note_mistake(f"line {number} of its index is not in the form of WordNet's index files")
            continue
        offsets = fields[-int(fields[2]) :]
        senses.update(((fields[0], offset), place) for place, offset in enumerate(offsets, 1))
    return senses


def _number_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield numbered lines without the licence, which stands above and is indented."""
    lines = enumerate(text.splitlines(), 1)
    return ((number, line) for number, line in lines if line.strip() and not line.startswith("  "))


def _read_index(source: Source) -> str:
    if source.path is None:
        msg = "WordNet's nouns are two files; load `data.noun` by its path, with `index.noun` beside it"
        raise OntologyError(msg)
    for name in ("index.noun", "index.noun.gz"):
        path = source.path.with_name(name)
        if path.exists():
            return read_text(path)
    msg = f"`{source.path.name}` needs `index.noun` beside it, which is not there"
    raise FileError(msg)
