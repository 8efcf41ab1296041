"""Hypothesis strategies for patterns and the timed words they run on.

Patterns are valid trees over a few one-symbol filters (`a` is `kind = 'a'`), small enough that a search straight
from the definition stays quick. Words are symbols with times in microseconds; equal times are frequent::

    @given(patterns(("a", "b")), words(("a", "b", "c")))
    def test_the_machine_agrees_with_the_definition(pattern, word): ...
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tidings.lang.patterns.check import find_bound_variables
from tidings.lang.patterns.time_conditions import never_holds
from tidings.model import TRUE, Is, Range, Test, one_of
from tidings.model.patterns import (
    Absence,
    Both,
    Either,
    Elapsed,
    Gap,
    Joint,
    Moment,
    NamedFilter,
    Pattern,
    Repeat,
    Sequence,
    Step,
    Timed,
    Which,
)
from tidings.testing.hypothesis_import import st

if TYPE_CHECKING:
    from tidings.model import Condition, Filter
    from tidings.model.patterns import Node

SECOND = 1_000_000
"""Microseconds."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_VALUES = (1, 1, 2, 2, 1.0, True, "1")
_ODD_VALUES: tuple[Any, ...] = (
    *_VALUES,
    [1],
    [1, 2],
    [None, 1],
    [1, 1],
    [],
    {},
    {"of": 1},
    [{"of": 1}],
    None,
    math.nan,
    math.inf,
    b"1",
)
_ODD_KINDS: tuple[Any, ...] = (7, "7", 7.0, True, ["a", "b"], ["a", 7], None, {"of": "a"}, math.inf)
_ODD_TIMES: tuple[Any, ...] = (None, "some day", True, math.nan, [1], {})

Word: TypeAlias = list[tuple[str, int]]
"""Symbols with their times, in order of time."""

_NO_VARIABLE: tuple[tuple[str, str], ...] = ()
_KEYED = (("key", "x"),)
_JOINING = (_NO_VARIABLE, _KEYED, (("other", "x"),), (("other", "y"),), (("key", "x"), ("other", "y")))


@dataclass(frozen=True, slots=True)
class _Taste:
    """What the patterns may hold."""

    names: tuple[str, ...]
    conditions: bool
    guards: bool
    absence: bool
    repeats: bool
    most_steps: int
    overlapping: bool
    mixed: bool
    variables: bool | Literal["joins"]


def patterns(  # noqa: PLR0913 - keywords, each of its own meaning
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
) -> st.SearchStrategy[Pattern]:
    """Return patterns over some of the names, each of which means `kind = 'name'`.

    `conditions` are those between labels and `within`; `guards` are the `not`s between steps. With `overlapping`,
    one event may satisfy several filters. With `mixed`, some filters ask `kind`, or what gives variables their values,
    for numbers or for truth, side by side with those that ask for text. With `variables`, every filter gives
    `key = $x`; with `variables="joins"`, some give it, some give it from `other`, and some give `$y`.
    """
    return _patterns(_Taste(names, conditions, guards, absence, repeats, most_steps, overlapping, mixed, variables))


def words(names: tuple[str, ...] = ("a", "b", "c"), most: int = 8) -> st.SearchStrategy[Word]:
    """Return words of up to `most` symbols; neighbours are 0 to 3 seconds apart, often 0."""
    steps = st.tuples(st.sampled_from(names), st.sampled_from((0, 0, 1, 1, 2, 3)))
    return st.lists(steps, max_size=most).map(_timed_word)


def streams(
    names: tuple[str, ...] = ("a", "b", "c", "d"), most: int = 8, *, odd: bool = False
) -> st.SearchStrategy[list[dict[str, Any]]]:
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
    return st.tuples(words(names, most), st.lists(events, min_size=most, max_size=most)).map(_told_word)


def _told_word(drawn: tuple[Word, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    word, events = drawn
    return [
        {"id": place, "time": _EPOCH + timedelta(microseconds=at), "kind": symbol} | given
        for place, ((symbol, at), given) in enumerate(zip(word, events, strict=False))
    ]


def _timed_word(steps: list[tuple[str, int]]) -> Word:
    found: Word = []
    now = 0
    for symbol, gap in steps:
        now += gap * SECOND
        found.append((symbol, now))
    return found


@st.composite
def _patterns(draw: st.DrawFn, taste: _Taste) -> Pattern:
    named = {name: _named(draw, name, taste) for name in taste.names}
    grower = _Grower(draw, taste, {name: {v for _, v in one.variables} for name, one in named.items()})
    root = grower.whole()
    absence = grower.absence(root)
    made = Pattern(tuple(named.values()), root, absence)
    used = made.list_filters()
    return Pattern(tuple(one for name, one in named.items() if name in used), root, absence)


def _named(draw: st.DrawFn, name: str, taste: _Taste) -> NamedFilter:
    variables = _KEYED if taste.variables else _NO_VARIABLE
    if taste.variables == "joins":
        variables = draw(st.sampled_from(_JOINING))
    tree = _mixed(draw, name) if taste.mixed and draw(st.integers(0, 2)) == 0 else _filter(draw, name, taste)
    return NamedFilter(name, tree, variables)


def _mixed(draw: st.DrawFn, name: str) -> Filter:
    """Return a filter that asks an attribute for another kind than most do."""
    attribute = draw(st.sampled_from(("kind", "key", "other")))
    conditions: tuple[Condition, ...] = (Range(low=1), Is(7), Is(True), Is("1"), Is(name))
    return Test(attribute, draw(st.sampled_from(conditions)))


def _filter(draw: st.DrawFn, name: str, taste: _Taste) -> Filter:
    if not taste.overlapping:
        return Test("kind", Is(name))
    also = draw(st.sets(st.sampled_from(taste.names), max_size=len(taste.names) - 1))
    kinds = [one for one in taste.names if one == name or one in also]
    return TRUE if draw(st.integers(0, 9)) == 9 else Test("kind", one_of(kinds))


@dataclass(slots=True)
class _Grower:
    """Grows one tree from left to right, so that what surely has a value before a `not` is known."""

    draw: st.DrawFn
    taste: _Taste
    given: dict[str, set[str]]
    repeated: dict[str, bool] = field(default_factory=dict)

    def whole(self) -> Node:
        """Return the root; conditions come last, when all labels are known."""
        count = self.draw(st.integers(1, self.taste.most_steps))
        node = self._grown(count, set())
        return self._timed_somewhere(node) if self.taste.conditions else node

    def absence(self, root: Node) -> Absence | None:
        """Return an absence for the end, or none."""
        names = self._silent(find_bound_variables(root, self.given))
        if not (self.taste.absence and names and self.draw(st.integers(0, 3)) == 3):
            return None
        without = self.draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
        return Absence(tuple(without), self.draw(st.integers(1, 3)) * SECOND)

    def _grown(self, count: int, before: set[str]) -> Node:
        if count == 1:
            return self._step()
        shares = self._shares(count)
        match self.draw(st.sampled_from(("sequence", "sequence", "sequence", "and", "or"))):
            case "sequence":
                return self._sequence(shares, before)
            case "and":
                return Both(tuple(self._grown(share, before) for share in shares))
            case _:
                return Either(tuple(self._grown(share, before) for share in shares))

    def _shares(self, count: int) -> list[int]:
        """Cut the steps into two shares or more."""
        cuts = self.draw(st.sets(st.integers(1, count - 1), min_size=1))
        marks = [0, *sorted(cuts), count]
        return [high - low for low, high in pairwise(marks)]

    def _step(self) -> Node:
        step = Step(self.draw(st.sampled_from(self.taste.names)), self._label())
        if not (self.taste.repeats and self.draw(st.integers(0, 4)) == 4):
            return step
        if step.label is not None:
            self.repeated[step.label] = True
        least = self.draw(st.integers(1, 2))
        return Repeat(step, least, self.draw(st.sampled_from((None, least, least + 1))))

    def _label(self) -> str | None:
        # Every other step has a label; conditions speak of those.
        if not self.draw(st.booleans()):
            return None
        label = f"s{len(self.repeated) + 1}"
        self.repeated[label] = False
        return label

    def _sequence(self, shares: list[int], before: set[str]) -> Node:
        parts: list[Node] = []
        joints: list[Joint] = []
        for share in shares:
            if parts:
                before = before | find_bound_variables(parts[-1], self.given)
                joints.append(self._joint(before))
            parts.append(self._grown(share, before))
        return Sequence(tuple(parts), tuple(joints))

    def _joint(self, before: set[str]) -> Joint:
        gap = self.draw(st.sampled_from((Gap.LATER, Gap.LATER, Gap.NEXT)))
        names = self._silent(before)
        if gap is Gap.NEXT or not (self.taste.guards and names and self.draw(st.integers(0, 3)) == 3):
            return Joint(gap)
        return Joint(gap, tuple(self.draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))))

    def _silent(self, before: set[str]) -> list[str]:
        """Return what may stand under `not` where these variables surely have a value."""
        every = self.taste.variables is True
        return [name for name in self.taste.names if every or self.given[name] <= before]

    # Times ------------------------------------------------------------------------------------------

    def _timed_somewhere(self, node: Node) -> Node:
        match node:
            case Sequence(parts, joints):
                node = Sequence(tuple(self._timed_somewhere(part) for part in parts), joints)
            case Both(parts):
                node = Both(tuple(self._timed_somewhere(part) for part in parts))
            case Either(parts):
                node = Either(tuple(self._timed_somewhere(part) for part in parts))
        if self.draw(st.integers(0, 3)) < 3:
            return node
        conditions = self._conditions()
        bounded = not conditions or self.draw(st.integers(0, 3)) == 3
        return Timed(node, conditions, self.draw(st.integers(0, 4)) * SECOND if bounded else None)

    def _conditions(self) -> tuple[Elapsed, ...]:
        moments = [Moment(label) for label in self.repeated]
        moments += [Moment(label, Which.FIRST) for label, often in self.repeated.items() if often]
        if len(moments) < 2:
            return ()
        pairs = st.lists(st.sampled_from(moments), min_size=2, max_size=2, unique=True)
        return tuple(self._elapsed(*self.draw(pairs)) for _ in range(self.draw(st.integers(1, 2))))

    def _elapsed(self, late: Moment, early: Moment) -> Elapsed:
        absolute = self.draw(st.integers(0, 3)) == 3
        low, high = sorted(self.draw(st.lists(st.integers(-2, 4), min_size=2, max_size=2)))
        ends = self.draw(st.sampled_from(((None, high), (low, None), (None, high), (low, high))))
        spans = [None if end is None else end * SECOND for end in ends]
        opens = [span is not None and self.draw(st.booleans()) for span in spans]
        made = Elapsed(late, early, spans[0], spans[1], opens[0], opens[1], absolute)
        return Elapsed(late, early, high=2 * SECOND, absolute=absolute) if never_holds(made) else made
