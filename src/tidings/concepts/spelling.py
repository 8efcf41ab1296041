"""How words compare: case and composition folded away, and the nearest known word for a mistyped one.

Folding is Unicode case folding in composed form, so `STRASSE` is `straße` and an accent typed as its own
character is the accented letter. Suggestions look at words of a similar length only; among tens of
thousands they cost some tens of milliseconds, and only an error pays for them.
"""

from __future__ import annotations

import unicodedata
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MANY = 2000
"""Beyond so many words of similar length, only those that share the first letter are compared."""


def fold(text: str) -> str:
    """Return the form in which spellings that differ in case or composition are equal.

    >>> fold("Straße") == fold("STRASSE")
    True
    """
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def find_nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the known word most like this one, if any is like it.

    >>> nearest("furlng", ["foot", "furlong"])
    'furlong'
    """
    wanted = fold(word)
    slack = max(2, len(wanted) // 3)
    folded = {fold(name): name for name in candidates if abs(len(name) - len(word)) <= slack}
    if len(folded) > MANY:
        folded = {name: spelled for name, spelled in folded.items() if name[:1] == wanted[:1]}
    close = get_close_matches(wanted, folded, n=1, cutoff=0.7)
    return folded[close[0]] if close else None


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return the end of an error's text: the nearest known word, or nothing.

    >>> did_you_mean("cty", ["city"])
    '; did you mean `city`?'
    """
    close = find_nearest(word, candidates)
    return f"; did you mean `{close}`?" if close else ""
