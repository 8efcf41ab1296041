"""Prefixes, suffixes, substrings and wildcards as one thing: a pattern of characters, `?` and `*`.

Whether all texts of one pattern belong to another, or none do, is decided exactly, by walking both patterns
together over the characters they name and one that stands for all others. A pattern that ignores case is one
over folded text; a pattern that does not is widened to folded text before the two are compared, so what
is said to hold does hold. Cost: the reachable pairs of places, with a limit beyond which nothing is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from tidings.model import TextOp, TextTest

ONE, ANY = "?", "*"
"""Any one character; any text."""

Sign: TypeAlias = "tuple[str, bool]"
"""A character and whether it stands for itself; otherwise it is `ONE` or `ANY`."""

OTHER = ""
"""Stands for every character that neither pattern names."""

STEPS = 20_000
"""Places looked at before giving up."""

_MEANING = frozenset("\\.+*?()|[]{}^$")
"""Characters that mean something to RE2."""


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern; `folded` patterns are about text whose case is folded."""

    signs: tuple[Sign, ...]
    folded: bool = False

    @property
    def literal(self) -> str | None:
        """The one text it accepts, if it accepts one."""
        return "".join(char for char, plain in self.signs) if all(plain for _, plain in self.signs) else None

    @property
    def prefix(self) -> str | None:
        """The prefix that says all of it, if one does."""
        if not self.signs or self.signs[-1] != (ANY, False):
            return None
        return Glob(self.signs[:-1]).literal


def glob_of(test: TextTest) -> Glob | None:
    """Return the test as a pattern; of an expression, only when it is plain text."""
    folded = test.ignoring_case
    pattern = test.pattern.casefold() if folded else test.pattern
    plain = tuple((char, True) for char in pattern)
    match test.op:
        case TextOp.STARTS_WITH:
            return _glob((*plain, (ANY, False)), folded=folded)
        case TextOp.ENDS_WITH:
            return _glob(((ANY, False), *plain), folded=folded)
        case TextOp.CONTAINS:
            return _glob(((ANY, False), *plain, (ANY, False)), folded=folded)
        case TextOp.LIKE:
            return _glob(_like_signs(pattern), folded=folded)
        case TextOp.MATCHES:
            # RE2 folds case in its own way, and a character that means something is no plain text.
            if folded or not _MEANING.isdisjoint(pattern):
                return None
            return _glob(((ANY, False), *plain, (ANY, False)), folded=False)


def prefix_glob(prefix: str) -> Glob:
    """Return the pattern of all texts that start so."""
    return Glob((*((char, True) for char in prefix), (ANY, False)))


def includes(outer: Glob, inner: Glob) -> bool:
    """Tell whether every text of the second pattern is certainly one of the first."""
    if inner.folded and not outer.folded:
        return False
    return _included((_widened(inner) if outer.folded else inner).signs, outer.signs)


def excludes(one: Glob, two: Glob) -> bool:
    """Tell whether certainly no text is of both patterns."""
    if one.folded or two.folded:
        one, two = _widened(one), _widened(two)
    return _apart(one.signs, two.signs)


def _glob(signs: tuple[Sign, ...], *, folded: bool) -> Glob:
    kept = [sign for at, sign in enumerate(signs) if sign != (ANY, False) or at == 0 or signs[at - 1] != (ANY, False)]
    # Of case-folded text, `*` alone is still every text.
    return Glob(tuple(kept), folded=folded and kept != [(ANY, False)])


def _like_signs(pattern: str) -> tuple[Sign, ...]:
    signs: list[Sign] = []
    plain = False
    for char in pattern:
        if char == "\\" and not plain:
            plain = True
            continue
        signs.append((char, plain or char not in (ONE, ANY)))
        plain = False
    return (*signs, ("\\", True)) if plain else tuple(signs)


def _widened(glob: Glob) -> Glob:
    """Return a pattern of folded texts that accepts the folded form of all texts of this one."""
    if glob.folded:
        return glob
    signs: list[Sign] = []
    for char, plain in glob.signs:
        # One character may fold to three: `?` becomes any text.
        signs.extend([(part, True) for part in char.casefold()] if plain else [(ANY, False)])
    return Glob(_glob(tuple(signs), folded=False).signs, folded=True)


def _closed(places: set[int], signs: tuple[Sign, ...]) -> frozenset[int]:
    """Add the places reached without reading: `*` may stand for nothing."""
    found = set(places)
    for place in places:
        while place < len(signs) and signs[place] == (ANY, False):
            place += 1
            found.add(place)
    return frozenset(found)


def _after(places: frozenset[int], char: str, signs: tuple[Sign, ...]) -> frozenset[int]:
    found: set[int] = set()
    for place in places:
        if place == len(signs):
            continue
        sign, plain = signs[place]
        if not plain and sign == ANY:
            found.add(place)
        elif not plain or sign == char:
            found.add(place + 1)
    return _closed(found, signs)


def _letters(*patterns: tuple[Sign, ...]) -> set[str]:
    return {char for signs in patterns for char, plain in signs if plain} | {OTHER}


@lru_cache(maxsize=4096)
def _included(inner: tuple[Sign, ...], outer: tuple[Sign, ...]) -> bool:
    letters = _letters(inner, outer)
    start = (_closed({0}, inner), _closed({0}, outer))
    seen, waiting, steps = {start}, [start], 0
    while waiting:
        ours, theirs = waiting.pop()
        if len(inner) in ours and len(outer) not in theirs:
            return False
        for char in letters:
            steps += len(ours) + len(theirs)
            after = (_after(ours, char, inner), _after(theirs, char, outer))
            if after[0] and after not in seen:
                seen.add(after)
                waiting.append(after)
        if steps > STEPS:
            return False
    return True


@lru_cache(maxsize=4096)
def _apart(one: tuple[Sign, ...], two: tuple[Sign, ...]) -> bool:
    letters = _letters(one, two)
    waiting = [(left, right) for left in _closed({0}, one) for right in _closed({0}, two)]
    seen = set(waiting)
    while waiting:
        left, right = waiting.pop()
        if (left, right) == (len(one), len(two)) or len(seen) * len(letters) > STEPS:
            return False
        for char in letters:
            lefts, rights = _after(frozenset({left}), char, one), _after(frozenset({right}), char, two)
            fresh = {(a, b) for a in lefts for b in rights} - seen
            seen |= fresh
            waiting.extend(fresh)
    return True
