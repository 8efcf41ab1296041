"""Folding of words, so that spellings which differ in case alone are equal, and suggestions for mistyped words.

Folding is Unicode case folding in composed form: `STRASSE` equals `straße`, and a letter with an accent as a character
of its own equals the accented letter. Suggestions are looked for among words of a similar length only; among tens of
thousands of words one takes some tens of milliseconds, and only errors need them.
"""

from __future__ import annotations

import unicodedata
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_COMPARED_WORDS = 2000
"""With more words of similar length than this, only those that share the first letter are compared."""


def fold(text: str) -> str:
    """Return the form in which spellings that differ in case or composition are equal.

    >>> fold("Straße") == fold("STRASSE")
    True
    """
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def find_nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate most similar to the word, or `None` if none is similar.

    >>> find_nearest("furlng", ["foot", "furlong"])
    'furlong'
    """
    wanted = fold(word)
    # Comparing two words takes time in the product of their lengths, so most are ruled out by length alone.
    slack = max(2, len(wanted) // 3)
    folded = {fold(name): name for name in candidates if abs(len(name) - len(word)) <= slack}
    if len(folded) > MAX_COMPARED_WORDS:
        folded = {name: spelled for name, spelled in folded.items() if name[:1] == wanted[:1]}
    close = get_close_matches(wanted, folded, n=1, cutoff=0.7)
    return folded[close[0]] if close else None


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return the end of an error message that suggests the most similar candidate; empty if there is none.

    >>> did_you_mean("cty", ["city"])
    '; did you mean `city`?'
    """
    close = find_nearest(word, candidates)
    return f"; did you mean `{close}`?" if close else ""


def join_first(names: Sequence[str], most: int) -> str:
    """Return at most so many names, and how many more there are: `foot, mile and 2 more`."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
