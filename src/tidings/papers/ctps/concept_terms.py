"""Filters and events in the terms of the concept matchers: `ctps` and its rivals `g-topss`, `mic`, `ops`.

A filter is an `or` of rows, a row an `and` of terms, a term an attribute's name with one of four constraints: a
concept (`is a`), one of some texts or truth values, an interval of numbers or times, or existence. What is none of
these is refused by name. An event is a list of pairs for each root of an attribute tree: a value, and the names it
goes by. A reading has every value under each name that filters ask for, its own and those above, so these names are
the steps of the walk up the attribute tree, made by the reader already. Names and roots are attributes as filters read
them: one that is asked for as text and as a number is two names, and the names above it are two as well.

Numbers and times are exact: a number is a float and a tie (`key_of`), which order as the numbers do, beyond 2**53 too.
"""

from __future__ import annotations

from datetime import datetime
from enum import IntEnum
from itertools import product
from math import inf, prod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tidings.algebra.law.typed_attribute import TypedAttribute, resolve_attribute, strip_unit
from tidings.algebra.normal_form import MAX_CONJUNCTIONS, list_conjunctions
from tidings.errors import AmbiguousConcept, TooLarge, Unsupported
from tidings.lang import render
from tidings.model import And, Exists, In, Is, IsA, Kind, Quantifier, Range, Test
from tidings.papers.common.intervals import EXACT_INT, to_micros

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from tidings.algebra import Reading
    from tidings.concepts import Ontology, Tree
    from tidings.model import Filter

NUMBER, TIME = "number", "time"
"""The two scales of intervals; a number never meets a time."""

MEASURED = frozenset((int, float, datetime, Range))
"""The types of values that intervals are asked of."""

_PLAIN = frozenset((str, int, float, bool, datetime, Range))


class Sort(IntEnum):
    """What a term asks of a value."""

    CONCEPT = 0
    TEXT = 1
    NUMBER = 2
    EXISTS = 3


class Span(NamedTuple):
    """An interval: its ends as keys, the low one with its tie raised where it is open, the high one lowered."""

    scale: str
    low: float
    low_tie: int
    high: float
    high_tie: int


class Term(NamedTuple):
    """One constraint: `value` is (tree, concept), a tuple of texts or truth values, a `Span`, or nothing."""

    name: TypedAttribute
    sort: Sort
    value: Any


Row: TypeAlias = "tuple[Term, ...]"
"""Terms that must all hold."""

Rows: TypeAlias = "tuple[Row, ...]"
"""Rows of which one must hold: none is `false`, an empty one is `true`."""

Pairs: TypeAlias = "dict[Any, list[tuple[Any, list[Any]]]]"
"""For each root the values of an event, each with the labels of the names it goes by."""

OTHER = object()
"""A value of no kind that terms compare, or that could not be read: it only exists."""


def key_of(value: Any) -> tuple[float, int]:
    """Return a number or a time as a float and a tie: twice what the float misses of an integer."""
    if type(value) is float:
        return value, 0
    whole = to_micros(value) if isinstance(value, datetime) else int(value)
    near = float(whole)
    return near, 0 if -EXACT_INT <= whole <= EXACT_INT else 2 * (whole - int(near))


def span_of(condition: Range) -> Span | None:
    """Return a range's interval, or nothing where it holds no point, as `(2 .. 2)`."""
    low, low_tie = (-inf, 0) if condition.low is None else key_of(condition.low)
    high, high_tie = (inf, 0) if condition.high is None else key_of(condition.high)
    low_tie += condition.low_open
    high_tie -= condition.high_open
    if (high, high_tie) < (low, low_tie):
        return None
    return Span(TIME if condition.kind is Kind.TIME else NUMBER, low, low_tie, high, high_tie)


def spans_of_value(value: Any) -> tuple[Span, ...]:
    """Return an event's number, time or range as intervals; a range without ends is of both scales."""
    if type(value) is Range:
        span = span_of(value)
        if span is None:
            return ()
        return (span, span._replace(scale=TIME)) if value.kind is None else (span,)
    near, tie = key_of(value)
    return (Span(TIME if isinstance(value, datetime) else NUMBER, near, tie, near, tie),)


class Terms:
    """Says filters in terms, for one matcher (`kind` is its name in errors) over one ontology."""

    def __init__(self, kind: str, ontology: Ontology) -> None:
        """Look up the roots of attribute trees; a name that is alone in its tree, or in none, is its own root."""
        self._kind, self._ontology = kind, ontology
        self._roots: dict[str, str] = {}
        self._homes = {name: tree for tree in ontology.attribute_trees.values() for name in tree.names}
        for tree in ontology.attribute_trees.values():
            if len(tree) > 1:
                self._roots.update((name, tree.root(name)) for name in tree.names)

    def tree(self, label: str) -> Tree:
        """Return a tree of values by its label."""
        return self._ontology.trees[label]

    def concept(self, label: str, value: str) -> str | None:
        """Return the concept of a tree that a value names; nothing where it names none, or several."""
        try:
            return self._ontology.trees[label].canonical(value)
        except AmbiguousConcept:
            return None

    def root(self, name: TypedAttribute) -> TypedAttribute:
        """Return the topmost name above one, read in the same way."""
        top = self._roots.get(name.name)
        return name if top is None else name._replace(name=top)

    def is_alone(self, name: TypedAttribute) -> bool:
        """Tell whether a name has no others above or below."""
        return name.name not in self._roots

    def names(self, root: TypedAttribute) -> tuple[TypedAttribute, ...]:
        """Return all names of a root's tree, read in the same way."""
        home = self._homes.get(root.name)
        return (root,) if home is None else tuple(root._replace(name=name) for name in home.names)

    def names_below(self, name: TypedAttribute) -> tuple[TypedAttribute, ...]:
        """Return a name and all below it, read in the same way."""
        home = self._homes.get(name.name)
        return (name,) if home is None else tuple(name._replace(name=below) for below in home.below(name.name))

    def names_above(self, name: TypedAttribute) -> tuple[TypedAttribute, ...]:
        """Return a name and all above it, read in the same way."""
        home = self._homes.get(name.name)
        return (name,) if home is None else tuple(name._replace(name=above) for above in ancestors(home, name.name))

    def rows(self, tree: Filter) -> Rows:
        """Return the filter's rows, or refuse what has no terms."""
        row: list[Term] = []
        for part in tree.parts if isinstance(tree, And) else (tree,):
            if not isinstance(part, Test):
                return self._normal(tree)
            found = self._alternatives(part)
            if len(found) != 1:
                return self._normal(tree)
            row.append(found[0])
        return (tuple(row) if len(row) < 2 or len(set(row)) == len(row) else tuple(dict.fromkeys(row)),)

    def _normal(self, tree: Filter) -> Rows:
        """Return the rows of any filter; a set of numbers is an `or` of its members."""
        rows: dict[Row, None] = {}
        for literals in list_conjunctions(tree):
            choices = [self._alternatives(literal) for literal in literals]
            if len(rows) + prod(map(len, choices)) > MAX_CONJUNCTIONS:
                msg = f"the filter has more than {MAX_CONJUNCTIONS:,} rows; split its sets of numbers into several filters"
                raise TooLarge(msg, limit=MAX_CONJUNCTIONS)
            rows.update((tuple(dict.fromkeys(row)), None) for row in product(*choices))
        return tuple(rows)

    def _alternatives(self, part: Filter) -> tuple[Term, ...]:
        """Return the terms of which one must hold; none, where nothing can satisfy the test."""
        if not isinstance(part, Test) or part.quantifier is not Quantifier.ANY:
            raise self._refused(part)
        name, condition = resolve_attribute(part.attribute, part.condition), strip_unit(part.condition)
        match condition:
            case IsA(concept, tree):
                return (Term(name, Sort.CONCEPT, (tree or self._home(concept), concept)),)
            case Range(low, high):
                if isinstance(low, str) or isinstance(high, str):
                    raise self._refused(part)
                span = span_of(condition)
                return () if span is None else (Term(name, Sort.NUMBER, span),)
            case Is(value, kind=Kind.TEXT | Kind.BOOL):
                return (Term(name, Sort.TEXT, (value,)),)
            case In(values, kind=Kind.TEXT | Kind.BOOL):
                return (Term(name, Sort.TEXT, values),)
            case Is(value, kind=Kind.NUMBER | Kind.TIME):
                return (_point(name, value),)
            case In(values, kind=Kind.NUMBER | Kind.TIME):
                return tuple(_point(name, value) for value in values)
            case Exists():
                return (Term(name, Sort.EXISTS, None),)
        raise self._refused(part)

    def _home(self, concept: str) -> str:
        """Return the one tree that has a concept of an undeclared attribute."""
        trees = self._ontology.trees
        written = [label for label, tree in trees.items() if tree.has_spelling(concept)]
        return (written or [label for label, tree in trees.items() if concept in tree])[0]

    def _refused(self, part: Filter) -> Unsupported:
        text = render(part)
        msg = (
            f"`{self._kind}` joins `is a`, equality, sets, `exists` and ranges of numbers and times by `and` and `or`; "
            f"it has no `{text}`; use td.Matcher(), which has"
        )
        return Unsupported(msg, kind=self._kind, part=text)


def _point(name: TypedAttribute, value: Any) -> Term:
    return Term(name, Sort.NUMBER, spans_of_value(value)[0])


def ancestors(tree: Tree, name: str) -> tuple[str, ...]:
    """Return a concept and everything above it, each once, however many ways lead there."""
    found = {name: None}
    waiting = [name]
    while waiting:
        for above in tree.parents(waiting.pop()):
            if above not in found:
                found[above] = None
                waiting.append(above)
    return tuple(found)


def pairs_of(reading: Reading, known: Mapping[TypedAttribute, tuple[Any, Any]]) -> Pairs:
    """Return what a reading says under the known names, each with its root and label, as pairs by root."""
    pairs: Pairs = {}
    unlike: dict[Any, list[tuple[Any, tuple[Any, ...]]]] = {}
    look_up = known.get
    for name, values in reading.values.items():
        at = look_up(name)
        if at is None or not values:
            continue
        root, label = at
        if root not in pairs:
            pairs[root] = [(values[0] if type(values[0]) in _PLAIN else OTHER, [label])]
            if len(values) > 1:
                unlike[root] = [(label, values)]
            continue
        first = pairs[root][0]
        if values[0] is first[0] and len(values) == 1:  # the usual case: one value under all names
            first[1].append(label)
        else:
            unlike.setdefault(root, []).append((label, values))
    for attribute, parts in reading.elements.items():
        at = known.get(TypedAttribute(attribute))
        if at is not None and parts:
            unlike.setdefault(at[0], []).append((at[1], (OTHER,)))
    for root, entries in unlike.items():
        alone = [(label, (value,)) for value, labels in pairs.get(root, ()) for label in labels]
        pairs[root] = _by_value(alone + entries)
    return pairs


def _by_value(entries: list[tuple[Any, tuple[Any, ...]]]) -> list[tuple[Any, list[Any]]]:
    """Gather the labels of each value; `True` and `1` are two values."""
    found: dict[Hashable, tuple[Any, dict[Any, None]]] = {}
    for label, values in entries:
        for value in values:
            plain = type(value) in _PLAIN
            pair = found.setdefault((type(value), value) if plain else OTHER, (value if plain else OTHER, {}))
            pair[1][label] = None
    return [(value, list(labels)) for value, labels in found.values()]
