"""Concept trees: which concept lies below which, by depth-first numbers, and every spelling of a concept's name.

A tree may have several roots, and a concept several parents. Whether one concept lies below another is
one dictionary access for each name and one bisection, whatever the height of the tree. A tree never
changes; it compares by content and pickles.
"""

from __future__ import annotations

from bisect import bisect_right
from copy import copy
from typing import TYPE_CHECKING, Any

from tidings.concepts.mistakes import refuse
from tidings.concepts.spelling import did_you_mean
from tidings.concepts.taxonomies.formats import read_tree_file, read_tree_text
from tidings.concepts.taxonomies.numbering import find_circle, invert_links, number_nodes
from tidings.concepts.taxonomies.synonyms import SEVERAL, Spellings
from tidings.errors import AmbiguousConcept, UnknownConcept

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tidings.concepts.taxonomies.tree_draft import TreeParts

NAMED = 5
"""Concepts that the message for an ambiguous name lists at most."""


class Tree:
    """Concepts under concepts: `Tree({"computer": [], "laptop": ["computer"]})`.

    Every method takes a concept in any spelling; what it returns are the concepts' own names.

    >>> tree = Tree({"computer": [], "laptop": ["computer"]}, {"laptop": ["notebook"]})
    >>> tree.is_a("Notebook", "computer")
    True
    """

    __slots__ = ("_children", "_edges", "_names", "_parents", "_spellings", "_synonyms", "dropped")

    def __init__(
        self,
        parents: Mapping[str, Iterable[str]],
        synonyms: Mapping[str, Sequence[str]] | None = None,
        *,
        dropped: Iterable[str] = (),
    ) -> None:
        """Take every concept with its parents, and further spellings; refuse circles and unknown names."""
        links = {name: tuple(dict.fromkeys(above)) for name, above in parents.items()}
        refuse([*_find_undefined(links, synonyms or {})])
        if circle := find_circle(links):
            refuse([f"concepts in a circle: {' under '.join(f'`{name}`' for name in [*circle, circle[0]])}"])
        self._children = invert_links(links)
        self._parents = links
        self.dropped = tuple(dropped)
        self._names, self._edges = number_nodes(links, self._children)
        self._set_synonyms(synonyms or {})

    def _set_synonyms(self, synonyms: Mapping[str, Sequence[str]]) -> None:
        # A concept's own name always wins, so a synonym that is one could never be found.
        own = self._parents
        others = {name: dict.fromkeys(word for word in words if word not in own) for name, words in synonyms.items()}
        self._synonyms = {name: tuple(words) for name, words in others.items() if words}
        self._spellings = Spellings(self._names, self._synonyms)

    @classmethod
    def load(cls, path: str | Path, *, format: str | None = None, **options: Any) -> Tree:
        """Read a tree file; the format is told from its name and content, or named.

        Options: `lenient=True` drops what the file leaves undefined and tells it in `.dropped`;
        `root=` puts all roots under one; `columns=` are a CSV's two; `language=` is a SKOS file's.
        """
        return cls.of_parts(read_tree_file(path, format=format, **options))

    @classmethod
    def read(cls, text: str, *, format: str, **options: Any) -> Tree:
        """Read a tree from text in one of the formats of `load`."""
        return cls.of_parts(read_tree_text(text, format=format, **options))

    @classmethod
    def of_parts(cls, parts: TreeParts) -> Tree:
        """Return the tree of what was read from a file."""
        return cls(parts.parents, parts.synonyms, dropped=parts.dropped)

    def with_synonyms(self, synonyms: Mapping[str, Sequence[str]]) -> Tree:
        """Return the tree with further spellings, given by concept in any spelling."""
        own = {self.require(name): words for name, words in synonyms.items()}
        clashes = ((name, word) for name, words in own.items() for word in words if word in self._parents)
        refuse(
            [f"`{word}` is given as a synonym of `{name}`, but it is a concept of its own" for name, word in clashes]
        )
        other = copy(self)  # shares the links and the depth-first order, which synonyms do not change
        names = {**self._synonyms, **own}
        other._set_synonyms(  # noqa: SLF001 - of the instance just made
            {name: (*self._synonyms.get(name, ()), *own.get(name, ())) for name in names}
        )
        return other

    @property
    def names(self) -> tuple[str, ...]:
        """All concepts by their own names, in depth-first order: `names[code]`."""
        return self._names

    @property
    def roots(self) -> tuple[str, ...]:
        """The concepts without a parent."""
        return tuple(name for name in self._names if not self._parents[name])

    def canonical(self, name: str) -> str | None:
        """Return the concept's own name, or None; a name that several share is refused."""
        number = self._spellings.find(name)
        if number is None:
            return None
        return self.require(name) if number == SEVERAL else self._names[number]

    def require(self, name: str) -> str:
        """Return the concept's own name, or refuse with the nearest known one."""
        return self._names[self._find_number(name)]

    def code(self, name: str) -> int | None:
        """Return the concept's depth-first number, or None; a name that several share is refused."""
        number = self._spellings.find(name)
        if number == SEVERAL:
            raise build_ambiguity(name, [f"`{each}`" for each in self.candidates(name)], "write the one that is meant")
        return number

    def ranges(self, name: str) -> tuple[tuple[int, int], ...]:
        """Return the numbers of the concept and all below it: disjoint closed ranges, ascending."""
        edges = self._edges[self._find_number(name)]
        return tuple((low, end - 1) for low, end in zip(edges[::2], edges[1::2], strict=True))

    def is_a(self, value: str, concept: str) -> bool:
        """Tell whether the value is the concept or lies below it; an unknown name is only itself."""
        number, above = self.code(value), self.code(concept)
        if number is None or above is None:
            return value == concept
        return bisect_right(self._edges[above], number) % 2 == 1

    def candidates(self, name: str) -> tuple[str, ...]:
        """Return every concept that the spelling may mean."""
        return tuple(self._names[number] for number in self._spellings.list_candidates(name))

    def parents(self, name: str) -> tuple[str, ...]:
        """Return the concepts right above, in the order they were given."""
        return self._parents[self.require(name)]

    def children(self, name: str) -> tuple[str, ...]:
        """Return the concepts right below, by name."""
        return self._children[self.require(name)]

    def root(self, name: str) -> str:
        """Return the topmost concept above; with several parents, always by way of the first."""
        node = self.require(name)
        while above := self._parents[node]:
            node = above[0]
        return node

    def below(self, name: str) -> tuple[str, ...]:
        """Return the concept and everything below it, in depth-first order."""
        return tuple(each for low, high in self.ranges(name) for each in self._names[low : high + 1])

    def synonyms(self, name: str) -> tuple[str, ...]:
        """Return the concept's other spellings."""
        return self._synonyms.get(self.require(name), ())

    def shared_spellings(self) -> tuple[str, ...]:
        """Return the spellings that several concepts share, which are refused when used."""
        return tuple(self._spellings.shared_words)

    def spellings(self) -> Iterator[str]:
        """Yield every name and synonym."""
        return iter(self._spellings)

    def to_dict(self) -> dict[str, Any]:
        """Return the tree as an ontology's file would hold it: `parents` and `synonyms`."""
        table: dict[str, Any] = {"parents": {name: list(above) for name, above in self._parents.items()}}
        if self._synonyms:
            table["synonyms"] = {name: list(words) for name, words in self._synonyms.items()}
        return table

    def _find_number(self, name: str) -> int:
        number = self.code(name)
        if number is None:
            msg = f"unknown concept `{name}`{did_you_mean(name, self._spellings)}"
            raise UnknownConcept(msg, name=name)
        return number

    def has_spelling(self, name: str) -> bool:
        """Tell whether a concept is written exactly so."""
        return self._spellings.find_exact(name) is not None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._spellings.find(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __eq__(self, other: object) -> bool:
        # Not the names: their depth-first order follows from the parents, whatever the order in the file.
        if self is other or not isinstance(other, Tree):
            return self is other
        return self._parents == other._parents and self._synonyms == other._synonyms

    def __hash__(self) -> int:
        # A tree may have a million names; a few tell most trees apart, and `__eq__` decides.
        return hash((len(self), self._names[:3], len(self._synonyms)))

    def __repr__(self) -> str:
        return f"<Tree of {len(self):,} concepts under {', '.join(self.roots[:3])}{', ...' * (len(self.roots) > 3)}>"


def build_ambiguity(name: str, candidates: Sequence[str], advice: str) -> AmbiguousConcept:
    """Return the error for a name that may mean any of the candidates, which are quoted already."""
    more = f" and {len(candidates) - NAMED} more" if len(candidates) > NAMED else ""
    msg = f"`{name}` may mean {len(candidates)} concepts: {', '.join(candidates[:NAMED])}{more}; {advice}"
    return AmbiguousConcept(msg, name=name)


def find_tree_labels(trees: Mapping[str, Tree], name: str) -> list[str]:
    """Return the labels of the trees that have a concept as it is written or, if none has, with its case folded."""
    labels = [label for label, tree in trees.items() if tree.has_spelling(name)]
    return labels or [label for label, tree in trees.items() if name in tree]


def _find_undefined(links: Mapping[str, tuple[str, ...]], synonyms: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for name, above in links.items():
        for parent in above:
            if parent not in links:
                yield f"`{name}` lies under `{parent}`, which is defined nowhere{did_you_mean(parent, links)}"
    for name in synonyms:
        if name not in links:
            yield f"synonyms of `{name}`, which is defined nowhere{did_you_mean(name, links)}"
