"""Hypothesis strategies for patterns and the timed words they run on.

Patterns are valid trees over a few one-symbol filters (`a` is `kind = 'a'`), small enough that a search straight
from the definition stays quick. Words are symbols with times in microseconds; equal times are frequent::

    @given(patterns(("a", "b")), words(("a", "b", "c")))
    def test_the_machine_agrees_with_the_definition(pattern, word): ...
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

from tidings.lang.patterns.check import find_bound_variables
from tidings.lang.patterns.time_conditions import is_unsatisfiable
from tidings.model import TRUE, Is, Range, Test, one_of
from tidings.model import patterns as nodes
from tidings.testing.hypothesis_import import st

if TYPE_CHECKING:
    from tidings.model import Condition, Filter
    from tidings.model.values import EventValue

SECOND = 1_000_000
"""Microseconds."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_VALUES = (1, 1, 2, 2, 1.0, True, "1")
_ODD_VALUES: tuple[EventValue, ...] = (
    *_VALUES, [1], [1, 2], [None, 1], [1, 1], [], {}, {"of": 1}, [{"of": 1}], None, math.nan, math.inf, b"1",
)  # fmt: skip
_ODD_KINDS: tuple[EventValue, ...] = (7, "7", 7.0, True, ["a", "b"], ["a", 7], None, {"of": "a"}, math.inf)
_ODD_TIMES: tuple[EventValue, ...] = (None, "some day", True, math.nan, [1], {})

Word: TypeAlias = list[tuple[str, int]]
"""Symbols with their times, in order of time."""

_NO_VARIABLE: tuple[tuple[str, str], ...] = ()
_KEYED = (("key", "x"),)
_JOINING = (_NO_VARIABLE, _KEYED, (("other", "x"),), (("other", "y"),), (("key", "x"), ("other", "y")))


def words(names: tuple[str, ...] = ("a", "b", "c"), most: int = 8) -> st.SearchStrategy[Word]:
    """Return words of up to `most` symbols; neighbours are 0 to 3 seconds apart, often 0."""
    steps = st.tuples(st.sampled_from(names), st.sampled_from((0, 0, 1, 1, 2, 3)))
    return st.lists(steps, max_size=most).map(_accumulate_times)


def streams(
    names: tuple[str, ...] = ("a", "b", "c", "d"), most: int = 8, *, odd: bool = False
) -> st.SearchStrategy[list[dict[str, EventValue]]]:
    """Return events in order of time: `id` is the place, `kind` a symbol, and `key` and `other` may be there.

    Their values are few and easily mistaken for each other: 1 and 1.0 are one, `true` and the text `1` are others.
    With `odd`, some are lists, records or what no variable takes, some kinds are no text, and some times are missing
    or cannot be read.
    """
    values = st.sampled_from(_ODD_VALUES if odd else _VALUES)
    optional = {"key": values, "other": values}
    events = st.fixed_dictionaries({}, optional=optional)
    if odd:
        optional |= {"kind": st.sampled_from(_ODD_KINDS), "time": st.sampled_from(_ODD_TIMES)}
        events = st.one_of(events, events, st.fixed_dictionaries({}, optional=optional))
    return st.tuples(words(names, most), st.lists(events, min_size=most, max_size=most)).map(_to_events)


def _to_events(pair: tuple[Word, list[dict[str, EventValue]]]) -> list[dict[str, EventValue]]:
    word, events = pair
    return [
        {"id": place, "time": _EPOCH + timedelta(microseconds=time), "kind": symbol} | values
        for place, ((symbol, time), values) in enumerate(zip(word, events, strict=False))
    ]


def _accumulate_times(steps: list[tuple[str, int]]) -> Word:
    times = accumulate(gap * SECOND for _, gap in steps)
    return [(symbol, time) for (symbol, _), time in zip(steps, times, strict=True)]


@st.composite
def patterns(  # noqa: PLR0913 - a public strategy; each is a keyword
    draw: st.DrawFn,
    names: tuple[str, ...] = ("a", "b", "c"),
    *,
    conditions: bool = True,
    guards: bool = True,
    absence: bool = True,
    repeats: bool = True,
    most_steps: int = 5,
    overlapping: bool = False,
    mixed: bool = False,
    variables: bool | Literal["joins"] = False,
) -> nodes.Pattern:
    """Return patterns over some of the names, each of which means `kind = 'name'`.

    `conditions` are those between labels and `within`; `guards` are the `not`s between steps. With `overlapping`,
    one event may satisfy several filters. With `mixed`, some filters ask `kind`, or what gives variables their values,
    for numbers or for truth, side by side with those that ask for text. With `variables`, every filter gives
    `key = $x`; with `variables="joins"`, some give it, some give it from `other`, and some give `$y`.
    """
    grower = _Grower(draw, names, conditions, guards, absence, repeats, most_steps, overlapping, mixed, variables)
    filters = {name: grower.draw_filter(name) for name in names}
    root = grower.draw_root()
    ending = grower.draw_absence(root)
    used = nodes.Pattern(tuple(filters.values()), root, ending).list_filters()
    return nodes.Pattern(tuple(named for name, named in filters.items() if name in used), root, ending)


@dataclass(slots=True)
class _Grower:
    """Draws filters, then one tree from left to right, so that the variables bound before a `not` are known."""

    draw: st.DrawFn
    names: tuple[str, ...]
    conditions: bool
    guards: bool
    absence: bool
    repeats: bool
    most_steps: int
    overlapping: bool
    mixed: bool
    variables: bool | Literal["joins"]
    variables_of: dict[str, set[str]] = field(default_factory=dict)
    repeated: dict[str, bool] = field(default_factory=dict)

    def draw_filter(self, name: str) -> nodes.NamedFilter:
        """Return the filter of this name."""
        variables = _KEYED if self.variables else _NO_VARIABLE
        if self.variables == "joins":
            variables = self.draw(st.sampled_from(_JOINING))
        self.variables_of[name] = {variable for _, variable in variables}
        return nodes.NamedFilter(name, self._draw_tree(name), variables)

    def _draw_tree(self, name: str) -> Filter:
        if self.mixed and self.draw(st.integers(0, 2)) == 0:  # reads an attribute as another kind than most do
            attribute = self.draw(st.sampled_from(("kind", "key", "other")))
            conditions: tuple[Condition, ...] = (Range(low=1), Is(7), Is(True), Is("1"), Is(name))
            return Test(attribute, self.draw(st.sampled_from(conditions)))
        if not self.overlapping:
            return Test("kind", Is(name))
        also = self.draw(st.sets(st.sampled_from(self.names), max_size=len(self.names) - 1))
        kinds = [kind for kind in self.names if kind == name or kind in also]
        return TRUE if self.draw(st.integers(0, 9)) == 9 else Test("kind", one_of(kinds))

    def draw_root(self) -> nodes.Node:
        """Return the root; conditions come last, when all labels are known."""
        count = self.draw(st.integers(1, self.most_steps))
        node = self._grow(count, set())
        return self._add_times(node) if self.conditions else node

    def draw_absence(self, root: nodes.Node) -> nodes.Absence | None:
        """Return an absence at the end of the pattern, or None."""
        names = self._draw_negated(find_bound_variables(root, self.variables_of), allowed=self.absence)
        return nodes.Absence(names, self.draw(st.integers(1, 3)) * SECOND) if names else None

    def _grow(self, count: int, before: set[str]) -> nodes.Node:
        if count == 1:
            return self._draw_step()
        shares = self._split(count)
        kind = self.draw(st.sampled_from(("sequence", "sequence", "sequence", "and", "or")))
        if kind == "sequence":
            return self._grow_sequence(shares, before)
        parts = tuple(self._grow(share, before) for share in shares)
        return nodes.Conjunction(parts) if kind == "and" else nodes.Disjunction(parts)

    def _split(self, count: int) -> list[int]:
        """Split the number of steps into two shares or more."""
        cuts = self.draw(st.sets(st.integers(1, count - 1), min_size=1))
        marks = [0, *sorted(cuts), count]
        return [high - low for low, high in pairwise(marks)]

    def _draw_step(self) -> nodes.Node:
        step = nodes.Step(self.draw(st.sampled_from(self.names)), self._draw_label())
        if not (self.repeats and self.draw(st.integers(0, 4)) == 4):
            return step
        if step.label is not None:
            self.repeated[step.label] = True
        least = self.draw(st.integers(1, 2))
        return nodes.Repeat(step, least, self.draw(st.sampled_from((None, least, least + 1))))

    def _draw_label(self) -> str | None:
        # Half of the steps get a label; conditions refer to those.
        if not self.draw(st.booleans()):
            return None
        label = f"s{len(self.repeated) + 1}"
        self.repeated[label] = False
        return label

    def _grow_sequence(self, shares: list[int], before: set[str]) -> nodes.Node:
        parts: list[nodes.Node] = []
        joints: list[nodes.Joint] = []
        for share in shares:
            if parts:
                before = before | find_bound_variables(parts[-1], self.variables_of)
                joints.append(self._draw_joint(before))
            parts.append(self._grow(share, before))
        return nodes.Sequence(tuple(parts), tuple(joints))

    def _draw_joint(self, before: set[str]) -> nodes.Joint:
        gap = self.draw(st.sampled_from((nodes.Gap.LATER, nodes.Gap.LATER, nodes.Gap.NEXT)))
        names = self._draw_negated(before, allowed=self.guards and gap is nodes.Gap.LATER)
        return nodes.Joint(gap, names)

    def _draw_negated(self, before: set[str], *, allowed: bool) -> tuple[str, ...]:
        """Return names to stand under `not` where these variables are bound; mostly none."""
        every = self.variables is True
        names = [name for name in self.names if every or self.variables_of[name] <= before]
        if not (allowed and names and self.draw(st.integers(0, 3)) == 3):
            return ()
        return tuple(self.draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)))

    # Times ------------------------------------------------------------------------------------------

    def _add_times(self, node: nodes.Node) -> nodes.Node:
        if isinstance(node, nodes.Sequence | nodes.Conjunction | nodes.Disjunction):
            node = replace(node, parts=tuple(self._add_times(part) for part in node.parts))
        if self.draw(st.integers(0, 3)) < 3:
            return node
        conditions = self._draw_conditions()
        bounded = not conditions or self.draw(st.integers(0, 3)) == 3
        return nodes.Timed(node, conditions, self.draw(st.integers(0, 4)) * SECOND if bounded else None)

    def _draw_conditions(self) -> tuple[nodes.Elapsed, ...]:
        moments = [nodes.Moment(label) for label in self.repeated]
        moments += [nodes.Moment(label, nodes.Which.FIRST) for label, often in self.repeated.items() if often]
        if len(moments) < 2:
            return ()
        pairs = st.lists(st.sampled_from(moments), min_size=2, max_size=2, unique=True)
        return tuple(self._draw_elapsed(*self.draw(pairs)) for _ in range(self.draw(st.integers(1, 2))))

    def _draw_elapsed(self, late: nodes.Moment, early: nodes.Moment) -> nodes.Elapsed:
        absolute = self.draw(st.integers(0, 3)) == 3
        low, high = sorted(self.draw(st.lists(st.integers(-2, 4), min_size=2, max_size=2)))
        ends = self.draw(st.sampled_from(((None, high), (low, None), (None, high), (low, high))))
        spans = [None if end is None else end * SECOND for end in ends]
        opens = [span is not None and self.draw(st.booleans()) for span in spans]
        elapsed = nodes.Elapsed(late, early, spans[0], spans[1], opens[0], opens[1], absolute)
        return nodes.Elapsed(late, early, high=2 * SECOND, absolute=absolute) if is_unsatisfiable(elapsed) else elapsed
