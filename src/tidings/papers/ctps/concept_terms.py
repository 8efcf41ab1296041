"""Filters and events in the terms of the concept matchers: `ctps` and its rivals `g-topss`, `mic`, `ops`.

A filter is an `or` of rows, a row an `and` of terms, a term an attribute's name with one of four constraints: a
concept (`is a`), one of some texts or truth values, an interval of numbers or times, or existence. `not`, `!=`, text
tests, ranges of text, places, ages, comparisons and arrays of records are refused by name. An event is a list of pairs
for each root of an attribute tree: a value, and the names it goes by. A reading has every value under each name that
filters use, its own and those above, so the reader has already walked up the attribute tree. Names and roots are
attributes as filters read them: one that is read as text and as a number is two names, and so are those above it.

Numbers and times are exact: a number is a float and a tie (`to_key`), which order as the numbers do, beyond 2**53 too.
"""

from __future__ import annotations

from datetime import datetime
from enum import IntEnum
from functools import cache
from itertools import product
from math import inf, prod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from tidings.algebra.law.typed_attribute import TypedAttribute, resolve_attribute, strip_unit
from tidings.algebra.normal_form import MAX_CONJUNCTIONS, list_conjunctions
from tidings.concepts.taxonomies.tree import find_tree_labels
from tidings.engine.compile.columns import EXACT
from tidings.errors import AmbiguousConcept, TooLarge, Unsupported
from tidings.lang import render
from tidings.model import And, Exists, Filter, In, Is, IsA, Kind, Quantifier, Range, Test
from tidings.model.values import to_microseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from tidings.algebra import Reading
    from tidings.concepts import Ontology, Tree

NUMBER, TIME = "number", "time"
"""The two scales of intervals; a number never meets a time."""

MEASURED = frozenset((int, float, datetime, Range))
"""The types of values that are compared with intervals."""

Item = TypeVar("Item")

_PLAIN = frozenset((str, int, float, bool, datetime, Range))


class TermKind(IntEnum):
    """What a term requires of a value."""

    CONCEPT = 0
    TEXT = 1
    NUMBER = 2
    EXISTS = 3


class OrderedSpan(NamedTuple):
    """An interval: its ends as keys, the low one with its tie raised where it is open, the high one lowered."""

    scale: str
    low: float
    low_tie: int
    high: float
    high_tie: int


class ConceptTerm(NamedTuple):
    """One constraint: `value` is (tree, concept), a tuple of texts or truth values, an `OrderedSpan`, or None."""

    name: TypedAttribute
    kind: TermKind
    value: Any


TermRow: TypeAlias = "tuple[ConceptTerm, ...]"
"""Terms that must all hold."""

TermRows: TypeAlias = "tuple[TermRow, ...]"
"""Rows of which one must hold: none is `false`, an empty one is `true`."""

RootPairs: TypeAlias = "dict[Any, list[tuple[Any, list[Any]]]]"
"""For each root the values of an event, each with the labels of the names it goes by."""

OTHER = object()
"""A value of no kind that terms compare, or that could not be read: only `exists` accepts it."""


def to_key(value: Any) -> tuple[float, int]:
    """Return a number or a time as a float and a tie: twice what the float misses of an integer."""
    if type(value) is float:
        return value, 0
    whole = to_microseconds(value) if isinstance(value, datetime) else int(value)
    near = float(whole)
    return near, 0 if -EXACT <= whole <= EXACT else 2 * (whole - int(near))


def to_span(condition: Range) -> OrderedSpan | None:
    """Return a range's interval, or None where it holds no point, as `(2 .. 2)`."""
    low, low_tie = (-inf, 0) if condition.low is None else to_key(condition.low)
    high, high_tie = (inf, 0) if condition.high is None else to_key(condition.high)
    low_tie += condition.low_open
    high_tie -= condition.high_open
    if (high, high_tie) < (low, low_tie):
        return None
    return OrderedSpan(TIME if condition.kind is Kind.TIME else NUMBER, low, low_tie, high, high_tie)


def to_value_spans(value: Any) -> tuple[OrderedSpan, ...]:
    """Return an event's number, time or range as intervals; a range without ends is of both scales."""
    if type(value) is Range:
        span = to_span(value)
        if span is None:
            return ()
        return (span, span._replace(scale=TIME)) if value.kind is None else (span,)
    near, tie = to_key(value)
    return (OrderedSpan(TIME if isinstance(value, datetime) else NUMBER, near, tie, near, tie),)


class TermCompiler:
    """Compiles filters into terms, for one matcher (`kind` is its name in errors) over one ontology."""

    def __init__(self, kind: str, ontology: Ontology) -> None:
        """Look up the roots of attribute trees; a name that is alone in its tree, or in none, is its own root."""
        self._kind, self._ontology = kind, ontology
        self._roots: dict[str, str] = {}
        self._tree_of_name = {name: tree for tree in ontology.attribute_trees.values() for name in tree.names}
        for tree in ontology.attribute_trees.values():
            if len(tree) > 1:
                self._roots.update((name, tree.root(name)) for name in tree.names)
        # The ontology does not change, and each of these is needed for every term that comes or goes.
        self.find_root = cache(self._find_root)
        self.list_names_above = cache(
            lambda name: self._list_related(name, lambda tree: list_ancestors(tree, name.name))
        )
        self.list_names_below = cache(lambda name: self._list_related(name, lambda tree: tree.below(name.name)))
        self.list_concepts_below = cache(lambda label, concept: self.get_tree(label).below(concept))

    def get_tree(self, label: str) -> Tree:
        """Return a tree of values by its label."""
        return self._ontology.trees[label]

    def find_concept(self, label: str, value: str) -> str | None:
        """Return the concept of a tree that a value names; None where it names none, or several."""
        try:
            return self._ontology.trees[label].canonical(value)
        except AmbiguousConcept:
            return None

    def list_at_or_above(self, items: Mapping[str, Mapping[str, Item]], value: str) -> list[Item]:
        """Return, of items by tree and concept, those at the concept that a text names and at all concepts above it."""
        reached: list[Item] = []
        for label, by_concept in items.items():
            concept = self.find_concept(label, value)
            if concept is not None:
                above = list_ancestors(self.get_tree(label), concept)
                reached += [by_concept[each] for each in above if each in by_concept]
        return reached

    def _find_root(self, name: TypedAttribute) -> TypedAttribute:
        """Return the topmost name above one, read in the same way."""
        top = self._roots.get(name.name)
        return name if top is None else name._replace(name=top)

    def is_alone(self, name: TypedAttribute) -> bool:
        """Tell whether a name has no others above or below."""
        return name.name not in self._roots

    def list_names(self, root: TypedAttribute) -> tuple[TypedAttribute, ...]:
        """Return all names of a root's tree, read in the same way."""
        return self._list_related(root, lambda tree: tree.names)

    def _list_related(self, name: TypedAttribute, walk: Callable[[Tree], Iterable[str]]) -> tuple[TypedAttribute, ...]:
        """Return the names that a walk over a name's tree gives, read in the same way; in no tree, the name alone."""
        tree = self._tree_of_name.get(name.name)
        return (name,) if tree is None else tuple(name._replace(name=each) for each in walk(tree))

    def select_lowest(self, names: list[TypedAttribute]) -> list[TypedAttribute]:
        """Return the names of a value that are above no other: the event's own, as far as filters use them."""
        if len(names) == 1:
            return names
        above = {each for name in names for each in self.list_names_above(name)[1:]}
        return [name for name in names if name not in above]

    def compile_rows(self, tree: Filter) -> TermRows:
        """Return the filter's rows, or refuse what has no terms."""
        row: list[ConceptTerm] = []
        for part in tree.parts if isinstance(tree, And) else (tree,):
            if not isinstance(part, Test):
                return self._compile_normal_form(tree)
            alternatives = self._list_alternatives(part)
            if len(alternatives) != 1:
                return self._compile_normal_form(tree)
            row.append(alternatives[0])
        return (tuple(row) if len(row) < 2 or len(set(row)) == len(row) else tuple(dict.fromkeys(row)),)

    def _compile_normal_form(self, tree: Filter) -> TermRows:
        """Return the rows of any filter; a set of numbers is an `or` of its members."""
        rows: dict[TermRow, None] = {}
        for literals in list_conjunctions(tree):
            choices = [self._list_alternatives(literal) for literal in literals]
            if len(rows) + prod(map(len, choices)) > MAX_CONJUNCTIONS:
                msg = f"the filter has more than {MAX_CONJUNCTIONS:,} rows; split its sets of numbers into several"
                raise TooLarge(msg, limit=MAX_CONJUNCTIONS)
            rows.update((tuple(dict.fromkeys(row)), None) for row in product(*choices))
        return tuple(rows)

    def _list_alternatives(self, part: Filter) -> tuple[ConceptTerm, ...]:
        """Return the terms of which one must hold; none, where nothing can satisfy the test."""
        if not isinstance(part, Test) or part.quantifier is not Quantifier.ANY:
            raise self._make_unsupported(part)
        name, condition = resolve_attribute(part.attribute, part.condition), strip_unit(part.condition)
        match condition:
            case IsA(concept, tree):
                tree = tree or find_tree_labels(self._ontology.trees, concept)[0]
                return (ConceptTerm(name, TermKind.CONCEPT, (tree, concept)),)
            case Range(low, high):
                if isinstance(low, str) or isinstance(high, str):
                    raise self._make_unsupported(part)
                span = to_span(condition)
                return () if span is None else (ConceptTerm(name, TermKind.NUMBER, span),)
            case Is(value, kind=Kind.TEXT | Kind.BOOL):
                return (ConceptTerm(name, TermKind.TEXT, (value,)),)
            case In(values, kind=Kind.TEXT | Kind.BOOL):
                return (ConceptTerm(name, TermKind.TEXT, values),)
            case Is(value, kind=Kind.NUMBER | Kind.TIME):
                return (_make_point(name, value),)
            case In(values, kind=Kind.NUMBER | Kind.TIME):
                return tuple(_make_point(name, value) for value in values)
            case Exists():
                return (ConceptTerm(name, TermKind.EXISTS, None),)
        raise self._make_unsupported(part)

    def _make_unsupported(self, part: Filter) -> Unsupported:
        text = render(part)
        msg = (
            f"`{self._kind}` joins `is a`, equality, sets, `exists` and ranges of numbers and times by `and` and `or`; "
            f"it has no `{text}`; use td.Matcher(), which has"
        )
        return Unsupported(msg, kind=self._kind, part=text)


def _make_point(name: TypedAttribute, value: Any) -> ConceptTerm:
    return ConceptTerm(name, TermKind.NUMBER, to_value_spans(value)[0])


def list_ancestors(tree: Tree, name: str) -> tuple[str, ...]:
    """Return a concept and everything above it, each once, over all parents."""
    reached = {name: None}
    waiting = [name]
    while waiting:
        for above in tree.parents(waiting.pop()):
            if above not in reached:
                reached[above] = None
                waiting.append(above)
    return tuple(reached)


def group_pairs(reading: Reading, labels_by_name: Mapping[TypedAttribute, tuple[Any, Any]]) -> RootPairs:
    """Return the values that a reading has under these names, as pairs by root; each name has a root and a label."""
    pairs: RootPairs = {}
    unlike: dict[Any, list[tuple[Any, tuple[Any, ...]]]] = {}
    look_up = labels_by_name.get
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
        at = labels_by_name.get(TypedAttribute(attribute))
        if at is not None and parts:
            unlike.setdefault(at[0], []).append((at[1], (OTHER,)))
    for root, entries in unlike.items():
        alone = [(label, (value,)) for value, labels in pairs.get(root, ()) for label in labels]
        pairs[root] = _group_by_value(alone + entries)
    return pairs


def _group_by_value(entries: list[tuple[Any, tuple[Any, ...]]]) -> list[tuple[Any, list[Any]]]:
    """Gather the labels of each value; `True` and `1` are two values."""
    groups: dict[Hashable, tuple[Any, dict[Any, None]]] = {}
    for label, values in entries:
        for value in values:
            plain = type(value) in _PLAIN
            pair = groups.setdefault((type(value), value) if plain else OTHER, (value if plain else OTHER, {}))
            pair[1][label] = None
    return [(value, list(labels)) for value, labels in groups.values()]
