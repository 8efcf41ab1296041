"""Maps every spelling of a concept, in any language, to the concept's number.

A spelling is looked up as it is written first, then with its case folded. In both rounds a concept's own
name goes before a synonym of another concept. A spelling that several concepts share is known but
ambiguous. A look-up is one dictionary access, two when the case differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.concepts.spelling import fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

SEVERAL = -1
"""Stands for the number of a spelling that several concepts share."""


class _Index:
    """Words to numbers; names first, so that a synonym never hides a name."""

    __slots__ = ("numbers", "shared")

    def __init__(self, names: Iterable[tuple[str, int]], synonyms: Iterable[tuple[str, int]]) -> None:
        self.numbers: dict[str, int] = {}
        self.shared: dict[str, tuple[int, ...]] = {}
        for word, number in names:
            self._add(word, number)
        own = set(self.numbers)
        # Two names may fold to one word, which is then ambiguous; a synonym of a third concept does not add to that.
        for word, number in synonyms:
            if word not in own:
                self._add(word, number)

    def _add(self, word: str, number: int) -> None:
        before = self.numbers.setdefault(word, number)
        if before != number:
            self.shared[word] = tuple({*self.shared.get(word, (before,)), number})
            self.numbers[word] = SEVERAL


class Spellings:
    """The spellings of numbered concepts."""

    __slots__ = ("_exact", "_folded")

    def __init__(self, names: Sequence[str], synonyms: Mapping[str, Sequence[str]]) -> None:
        """Index the names, which are unique, and their synonyms, which need not be."""
        own = {name: number for number, name in enumerate(names)}
        others = [(word, own[name]) for name, words in synonyms.items() for word in words]
        self._exact = _Index(own.items(), others)
        folded_names = ((fold(name), number) for name, number in own.items())
        self._folded = _Index(folded_names, ((fold(word), number) for word, number in others))

    def find(self, spelling: str) -> int | None:
        """Return the concept's number, `SEVERAL`, or None."""
        number = self._exact.numbers.get(spelling)
        return self._folded.numbers.get(fold(spelling)) if number is None else number

    def find_exact(self, spelling: str) -> int | None:
        """Return the same without folding its case."""
        return self._exact.numbers.get(spelling)

    def list_candidates(self, spelling: str) -> tuple[int, ...]:
        """Return the numbers of all concepts that the spelling may mean, in order."""
        is_exact = spelling in self._exact.numbers
        index, word = (self._exact, spelling) if is_exact else (self._folded, fold(spelling))
        number = index.numbers.get(word)
        return () if number is None else tuple(sorted(index.shared.get(word, (number,))))

    @property
    def shared_words(self) -> Iterable[str]:
        """The spellings that several concepts share."""
        return self._exact.shared

    def __iter__(self) -> Iterator[str]:
        return iter(self._exact.numbers)
