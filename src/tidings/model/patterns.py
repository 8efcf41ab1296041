"""The pattern tree: steps over named filters, in sequence, in any order, or as alternatives.

A pattern is inert: `patterns.compile` makes a machine of it. A match assigns one event to each step that it
takes; `patterns.definition` says which assignments count. Spans of time are whole microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from tidings.errors import PatternError
from tidings.model.filters import Filter

if TYPE_CHECKING:
    from collections.abc import Iterator


class Mode(StrEnum):
    """Which matches are reported; docs/language.md tells them apart on one stream."""

    RESTART = "restart"
    OVERLAP = "overlap"
    NEXT = "next"
    ANY = "any"


class Gap(StrEnum):
    """What may lie between two operands of a sequence."""

    NEXT = ","
    LATER = ";"


class Which(StrEnum):
    """Which event of a repeated step a moment means."""

    FIRST = "first"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class NamedFilter:
    """A filter with a name, and the variables that take attributes of its event: `ip = $x` is `("ip", "x")`."""

    name: str
    filter: Filter
    variables: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        _refuse_if(
            len({variable for _, variable in self.variables}) < len(self.variables),
            f"`{self.name}` gives one variable two values; compare the attributes instead: `a = b`",
        )


@dataclass(frozen=True, slots=True)
class Step:
    """One event that satisfies a named filter; conditions call it by its step label, or else by the filter's name."""

    filter: str
    label: str | None = None

    @property
    def name(self) -> str:
        """The name that conditions use."""
        return self.label or self.filter


@dataclass(frozen=True, slots=True)
class Repeat:
    """A step `least` to `most` times, each time by a later event (`fail{3,}`); without `most` there is no upper end."""

    step: Step
    least: int
    most: int | None = None

    def __post_init__(self) -> None:
        _refuse_if(self.least < 1, "a step is repeated at least once: {1,}")
        _refuse_if(
            self.most is not None and self.most < self.least, "a repetition's upper end lies below its lower end"
        )


@dataclass(frozen=True, slots=True)
class Joint:
    """How an operand follows the one before it: by the next event or a later one, and the filters forbidden between."""

    gap: Gap
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _refuse_if(self.gap is Gap.NEXT and bool(self.without), "`not` stands between two `;`: a ; not b ; c")


@dataclass(frozen=True, slots=True)
class Sequence:
    """One operand after the other; `joints[i]` stands between `parts[i]` and `parts[i + 1]`."""

    parts: tuple[Node, ...]
    joints: tuple[Joint, ...]

    def __post_init__(self) -> None:
        _refuse_if(len(self.parts) < 2 or len(self.joints) != len(self.parts) - 1, "a sequence joins two parts or more")


@dataclass(frozen=True, slots=True)
class Conjunction:
    """`and`: all of two or more operands, each on events of its own, in any order and interleaved."""

    parts: tuple[Node, ...]

    def __post_init__(self) -> None:
        _refuse_if(len(self.parts) < 2, "`and` joins two parts or more")


@dataclass(frozen=True, slots=True)
class Disjunction:
    """`or`: one of two or more operands."""

    parts: tuple[Node, ...]

    def __post_init__(self) -> None:
        _refuse_if(len(self.parts) < 2, "`or` joins two parts or more")


@dataclass(frozen=True, slots=True)
class Moment:
    """When a step happened: `t(f)`; of a repeated step its last event, or with `t(first f)` its first."""

    label: str
    which: Which = Which.LAST


@dataclass(frozen=True, slots=True)
class Elapsed:
    """`low <= t(late) - t(early) <= high` in microseconds; `absolute` takes the difference without its sign."""

    late: Moment
    early: Moment
    low: int | None = None
    high: int | None = None
    low_open: bool = False
    high_open: bool = False
    absolute: bool = False

    def __post_init__(self) -> None:
        _refuse_if(self.low is None and self.high is None, "a time condition needs a bound")
        _refuse_if(self.late == self.early, "a time condition compares two different moments")

    def holds(self, late: int, early: int) -> bool:
        """Tell whether two times, in microseconds, satisfy it."""
        elapsed = abs(late - early) if self.absolute else late - early
        return (self.low is None or elapsed > self.low or (elapsed == self.low and not self.low_open)) and (
            self.high is None or elapsed < self.high or (elapsed == self.high and not self.high_open)
        )


@dataclass(frozen=True, slots=True)
class Timed:
    """A part with time conditions, which bind when the part is taken; `within` bounds it from first to last event.

    `within` includes its end: exactly ten minutes are within ten minutes.
    """

    part: Node
    conditions: tuple[Elapsed, ...] = ()
    within: int | None = None

    def __post_init__(self) -> None:
        _refuse_if(not self.conditions and self.within is None, "`@` needs a condition")


@dataclass(frozen=True, slots=True)
class Absence:
    """`not b for 5 min` at the end: no event of these filters in `span` after the last event, its end excluded."""

    without: tuple[str, ...]
    span: int

    def __post_init__(self) -> None:
        _refuse_if(self.span <= 0, "an absence lasts longer than nothing")


Node: TypeAlias = Step | Repeat | Sequence | Conjunction | Disjunction | Timed


@dataclass(frozen=True, slots=True)
class Pattern:
    """Named filters, and the tree of steps over them."""

    filters: tuple[NamedFilter, ...]
    root: Node
    absence: Absence | None = None

    def __post_init__(self) -> None:
        names = [named.name for named in self.filters]
        _refuse_if(len(set(names)) < len(names), "two filters have one name")
        for name in self.list_filters():
            _refuse_if(name not in names, f"no filter is called `{name}`")

    def __getitem__(self, name: str) -> NamedFilter:
        return next(named for named in self.filters if named.name == name)

    def steps(self) -> list[Step]:
        """Return the steps in the order they are written."""
        return list(walk_steps(self.root))

    def guards(self) -> tuple[str, ...]:
        """Return the names of the filters that stand under `not`."""
        joints = [joint for node in walk_nodes(self.root) if isinstance(node, Sequence) for joint in node.joints]
        ends = self.absence.without if self.absence else ()
        return tuple(dict.fromkeys([*(name for joint in joints for name in joint.without), *ends]))

    def list_filters(self) -> tuple[str, ...]:
        """Return the names of the filters that steps and `not`s use."""
        return tuple(dict.fromkeys([*(step.filter for step in self.steps()), *self.guards()]))

    def variable_attributes(self) -> set[str]:
        """Return the attributes whose values are bound to variables."""
        return {attribute for name in self.list_filters() for attribute, _ in self[name].variables}

    def asks_for_time(self) -> bool:
        """Tell whether events need times: `within`, `@` or an absence."""
        return self.absence is not None or any(isinstance(node, Timed) for node in walk_nodes(self.root))

    def key_variables(self) -> tuple[str, ...]:
        """Return the variables that every operand gives a value: their values part the stream into keys."""
        variables = [{variable for _, variable in self[name].variables} for name in self.list_filters()]
        return tuple(sorted(set.intersection(*variables))) if variables else ()


def list_children(node: Node) -> tuple[Node, ...]:
    """Return the parts of a node, in order."""
    match node:
        case Sequence(parts, _) | Conjunction(parts) | Disjunction(parts):
            return parts
        case Repeat(step, _, _):
            return (step,)
        case Timed(part, _, _):
            return (part,)
        case Step():
            return ()


def walk_nodes(node: Node) -> Iterator[Node]:
    """Yield a node and everything below it, in the order it is written."""
    yield node
    for part in list_children(node):
        yield from walk_nodes(part)


def walk_steps(node: Node) -> Iterator[Step]:
    """Yield the steps of a node in the order they are written."""
    return (part for part in walk_nodes(node) if isinstance(part, Step))


def walk_conditions(node: Node) -> Iterator[Elapsed]:
    """Yield the time conditions of a node and of what is below it."""
    return (condition for part in walk_nodes(node) if isinstance(part, Timed) for condition in part.conditions)


def _refuse_if(wrong: bool, message: str) -> None:
    if wrong:
        raise PatternError(message)
