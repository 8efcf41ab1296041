"""Prefixes, suffixes, substrings and wildcards as one thing: a pattern of characters, `?` and `*`.

Whether all texts of one pattern belong to another, or none do, is decided exactly, by walking both patterns
together over the characters they name and one that stands for all others. A pattern that ignores case is one
over folded text; a pattern that does not is widened to folded text before the two are compared, so what
is said to hold does hold. Cost: the reachable pairs of places, with a limit beyond which nothing is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from typing import TypeAlias

from tidings.model import TextOp, TextTest

ONE, ANY = "?", "*"
"""Any one character; any text."""

Sign: TypeAlias = "tuple[str, bool]"
"""A character and whether it stands for itself; otherwise it is `ONE` or `ANY`."""

_STAR: Sign = (ANY, False)

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
    def simple(self) -> tuple[bool, str, bool] | None:
        """Whether `*` stands before, the text, and whether `*` stands after, if there are no other wildcards."""
        before, after = self.signs[:1] == (_STAR,), self.signs[-1:] == (_STAR,)
        middle = self.signs[before : max(before, len(self.signs) - after)]
        return (before, "".join(char for char, _ in middle), after) if all(plain for _, plain in middle) else None

    @property
    def literal(self) -> str | None:
        """The one text it accepts, if it accepts one."""
        return "".join(char for char, plain in self.signs) if all(plain for _, plain in self.signs) else None

    @property
    def head(self) -> str:
        """What all its texts start with, as far as it is written; of folded text nothing can be said."""
        return "" if self.folded else "".join(char for char, _ in takewhile(lambda sign: sign[1], self.signs))

    @property
    def prefix(self) -> str | None:
        """The prefix that says all of it, if one does."""
        if not self.signs or self.signs[-1] != _STAR:
            return None
        return Glob(self.signs[:-1]).literal


@lru_cache(maxsize=16_384)
def glob_of(test: TextTest) -> Glob | None:
    """Return the test as a pattern; of an expression, only when it is plain text."""
    folded = test.ignoring_case
    pattern = test.pattern.casefold() if folded else test.pattern
    plain = tuple((char, True) for char in pattern)
    match test.op:
        case TextOp.STARTS_WITH:
            return _glob((*plain, _STAR), folded=folded)
        case TextOp.ENDS_WITH:
            return _glob((_STAR, *plain), folded=folded)
        case TextOp.CONTAINS:
            return _glob((_STAR, *plain, _STAR), folded=folded)
        case TextOp.LIKE:
            return _glob(_like_signs(pattern), folded=folded)
        case TextOp.MATCHES:
            # RE2 folds case in its own way, and a character that means something is no plain text.
            if folded or not _MEANING.isdisjoint(pattern):
                return None
            return _glob((_STAR, *plain, _STAR), folded=False)


def folded_glob(text: str) -> Glob:
    """Return the pattern of all texts whose folded form is this."""
    return Glob(tuple((char, True) for char in text), folded=True)


def prefix_glob(prefix: str) -> Glob:
    """Return the pattern of all texts that start so."""
    return Glob((*((char, True) for char in prefix), _STAR))


def includes(outer: Glob, inner: Glob) -> bool:
    """Tell whether every text of the second pattern is certainly one of the first."""
    if inner.folded and not outer.folded:
        return False
    return _included(_widened(inner) if outer.folded else inner, outer)


def excludes(one: Glob, two: Glob) -> bool:
    """Tell whether certainly no text is of both patterns."""
    if one.folded or two.folded:
        one, two = _widened(one), _widened(two)
    return _apart(one, two)


def _glob(signs: tuple[Sign, ...], *, folded: bool) -> Glob:
    kept = [sign for at, sign in enumerate(signs) if sign != _STAR or at == 0 or signs[at - 1] != _STAR]
    # Of case-folded text, `*` alone is still every text.
    return Glob(tuple(kept), folded=folded and kept != [_STAR])


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
        signs.extend([(part, True) for part in char.casefold()] if plain else [_STAR])
    return Glob(_glob(tuple(signs), folded=False).signs, folded=True)


def _closed(places: set[int], signs: tuple[Sign, ...]) -> frozenset[int]:
    """Add the places reached without reading: `*` may stand for nothing."""
    found = set(places)
    for place in places:
        while place < len(signs) and signs[place] == _STAR:
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


def _included(inner: Glob, outer: Glob) -> bool:
    """Decide by the texts where there is `*` at the ends alone, else by a walk."""
    narrow, wide = inner.simple, outer.simple
    if narrow is None or wide is None:
        return _walk_included(inner.signs, outer.signs)
    (free_start, text, free_end), (any_start, part, any_end) = narrow, wide
    if any_start and any_end:
        return part in text
    if any_end:
        return not free_start and text.startswith(part)
    if any_start:
        return not free_end and text.endswith(part)
    return narrow == wide


def _apart(one: Glob, two: Glob) -> bool:
    left, right = one.simple, two.simple
    if left is None or right is None:
        return _walk_apart(one.signs, two.signs)
    (start, text, end), (start2, text2, end2) = left, right
    # Both begin with a text: one must begin the other. Both end with one: the same at the end.
    if not start and not start2 and not (text.startswith(text2) or text2.startswith(text)):
        return True
    if not end and not end2 and not (text.endswith(text2) or text2.endswith(text)):
        return True
    if not (start or end):
        return not _included(one, two)
    return not (start2 or end2) and not _included(two, one)


@lru_cache(maxsize=4096)
def _walk_included(inner: tuple[Sign, ...], outer: tuple[Sign, ...]) -> bool:
    letters = _letters(inner, outer)
    start = (_closed({0}, inner), _closed({0}, outer))
    seen, waiting, steps = {start}, [start], 0
    while waiting:
        ours, theirs = waiting.pop()
        if len(inner) in ours and len(outer) not in theirs:
            return False
        for char in letters:
            steps += len(ours) + len(theirs)
            if steps > STEPS:
                return False
            after = (_after(ours, char, inner), _after(theirs, char, outer))
            if after[0] and after not in seen:
                seen.add(after)
                waiting.append(after)
    return True


@lru_cache(maxsize=4096)
def _walk_apart(one: tuple[Sign, ...], two: tuple[Sign, ...]) -> bool:
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
