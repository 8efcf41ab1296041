"""Globs: prefixes, suffixes, substrings and wildcards as one pattern of characters, `?` and `*`.

Inclusion and disjointness of two globs are decided exactly, by simulating both as automata over the characters they
name and one more that stands for all others. A glob that ignores case is a pattern over case-folded text; one that
does not is widened to folded text before the two are compared, so a positive answer is always right. Cost: the
reachable pairs of positions, with a limit beyond which the answer is 'not certain'.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, TypeAlias

from tidings.model import TextOp, TextTest
from tidings.model.text_tests import split_like

if TYPE_CHECKING:
    from collections.abc import Sequence

Sign: TypeAlias = "tuple[str, bool]"
"""A character and whether it stands for itself; otherwise it is a wildcard: `?` one character, `*` any text."""

STAR: Sign = ("*", False)
"""The wildcard for any text."""

OTHER = ""
"""Stands for every character that neither pattern names."""

MAX_STEPS = 20_000
"""Positions visited before giving up."""

_RE2_SPECIAL = frozenset("\\.+*?()|[]{}^$")
"""Characters with a special meaning in RE2."""


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern; with `ignores_case` it is matched against case-folded text."""

    signs: tuple[Sign, ...]
    ignores_case: bool = False

    @property
    def split_at_stars(self) -> tuple[bool, str, bool] | None:
        """Whether it starts with `*`, the text, whether it ends with `*`; `None` if it has other wildcards."""
        before, after = self.signs[:1] == (STAR,), self.signs[-1:] == (STAR,)
        middle = self.signs[before : max(before, len(self.signs) - after)]
        return (before, "".join(char for char, _ in middle), after) if all(plain for _, plain in middle) else None

    @property
    def head(self) -> str:
        """The characters before the first wildcard; empty for patterns on folded text."""
        return "" if self.ignores_case else "".join(char for char, _ in takewhile(lambda sign: sign[1], self.signs))


@lru_cache(maxsize=16_384)
def to_glob(test: TextTest) -> Glob | None:
    """Return a text test as a glob; a regular expression only if it is plain text, else `None`."""
    folded = test.ignoring_case
    pattern = test.pattern.casefold() if folded else test.pattern
    if test.op is TextOp.LIKE:
        return _make_glob(split_like(pattern), folded=folded)
    # RE2 folds case differently from `casefold`, and special characters are not plain text.
    if test.op is TextOp.MATCHES and (folded or not _RE2_SPECIAL.isdisjoint(pattern)):
        return None
    before, after = _STARS_AROUND[test.op]
    return _make_glob((*before, *to_signs(pattern), *after), folded=folded)


_STARS_AROUND = {
    TextOp.STARTS_WITH: ((), (STAR,)),
    TextOp.ENDS_WITH: ((STAR,), ()),
    TextOp.CONTAINS: ((STAR,), (STAR,)),
    TextOp.MATCHES: ((STAR,), (STAR,)),  # a plain expression is searched for, like a part
}


def to_signs(text: str) -> tuple[Sign, ...]:
    """Return the signs of plain text, without wildcards."""
    return tuple((char, True) for char in text)


def includes(outer: Glob, inner: Glob) -> bool:
    """Tell whether the outer glob certainly accepts every text that the inner one accepts."""
    if inner.ignores_case and not outer.ignores_case:
        return False
    return _is_included(_widen(inner) if outer.ignores_case else inner, outer)


def excludes(first: Glob, second: Glob) -> bool:
    """Tell whether certainly no text is accepted by both globs."""
    if first.ignores_case or second.ignores_case:
        first, second = _widen(first), _widen(second)
    return _is_disjoint(first, second)


def _make_glob(signs: Sequence[Sign], *, folded: bool) -> Glob:
    kept = [sign for index, sign in enumerate(signs) if sign != STAR or index == 0 or signs[index - 1] != STAR]
    # `*` alone accepts every text, folded or not.
    return Glob(tuple(kept), ignores_case=folded and kept != [STAR])


def _widen(glob: Glob) -> Glob:
    """Return a glob on folded text that accepts the folded form of every text this one accepts."""
    if glob.ignores_case:
        return glob
    signs: list[Sign] = []
    for char, plain in glob.signs:
        # One character may fold to up to three, so `?` is widened to any text.
        signs.extend(to_signs(char.casefold()) if plain else [STAR])
    return Glob(_make_glob(signs, folded=False).signs, ignores_case=True)


def _close_over_stars(places: set[int], signs: tuple[Sign, ...]) -> frozenset[int]:
    """Add the positions reachable without reading a character, since `*` may match nothing."""
    reached = set(places)
    for place in places:
        while place < len(signs) and signs[place] == STAR:
            place += 1
            reached.add(place)
    return frozenset(reached)


def _step(places: frozenset[int], char: str, signs: tuple[Sign, ...]) -> frozenset[int]:
    reached: set[int] = set()
    for place in places:
        if place == len(signs):
            continue
        if signs[place] == STAR:
            reached.add(place)
        elif signs[place] in (("?", False), (char, True)):
            reached.add(place + 1)
    return _close_over_stars(reached, signs)


def _is_included(inner: Glob, outer: Glob) -> bool:
    """Decide by comparing texts if `*` occurs only at the ends, else by simulation."""
    narrow, wide = inner.split_at_stars, outer.split_at_stars
    if narrow is None or wide is None:
        return _walk_inclusion(inner.signs, outer.signs)
    (free_start, text, free_end), (any_start, part, any_end) = narrow, wide
    if any_start and any_end:
        return part in text
    if any_end:
        return not free_start and text.startswith(part)
    if any_start:
        return not free_end and text.endswith(part)
    return narrow == wide


def _is_disjoint(first: Glob, second: Glob) -> bool:
    left, right = first.split_at_stars, second.split_at_stars
    if left is None or right is None:
        return _walk_disjointness(first.signs, second.signs)
    (start, text, end), (start2, text2, end2) = left, right
    # Two fixed beginnings are compatible only if one is a prefix of the other; likewise two fixed ends.
    if not start and not start2 and not (text.startswith(text2) or text2.startswith(text)):
        return True
    if not end and not end2 and not (text.endswith(text2) or text2.endswith(text)):
        return True
    if not (start or end):
        return not _is_included(first, second)
    return not (start2 or end2) and not _is_included(second, first)


@lru_cache(maxsize=4096)
def _walk_inclusion(inner: tuple[Sign, ...], outer: tuple[Sign, ...]) -> bool:
    letters = {char for char, plain in inner + outer if plain} | {OTHER}
    start = (_close_over_stars({0}, inner), _close_over_stars({0}, outer))
    seen, waiting, steps = {start}, [start], 0
    while waiting:
        ours, theirs = waiting.pop()
        if len(inner) in ours and len(outer) not in theirs:
            return False
        for char in letters:
            steps += len(ours) + len(theirs)
            if steps > MAX_STEPS:
                return False
            after = (_step(ours, char, inner), _step(theirs, char, outer))
            if after[0] and after not in seen:
                seen.add(after)
                waiting.append(after)
    return True


@lru_cache(maxsize=4096)
def _walk_disjointness(first: tuple[Sign, ...], second: tuple[Sign, ...]) -> bool:
    letters = {char for char, plain in first + second if plain} | {OTHER}
    waiting = [(left, right) for left in _close_over_stars({0}, first) for right in _close_over_stars({0}, second)]
    seen = set(waiting)
    while waiting:
        left, right = waiting.pop()
        if (left, right) == (len(first), len(second)) or len(seen) * len(letters) > MAX_STEPS:
            return False
        for char in letters:
            lefts, rights = _step(frozenset({left}), char, first), _step(frozenset({right}), char, second)
            fresh = {(a, b) for a in lefts for b in rights} - seen
            seen |= fresh
            waiting.extend(fresh)
    return True
