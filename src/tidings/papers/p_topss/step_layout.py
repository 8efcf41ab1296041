"""In which of P-ToPSS's machines a pattern's steps and time conditions are, and which of the five cases each is.

A step is identified by its path from the root: the numbers of the children that lead to it. A part of `and` or `or` is
a machine of its own, a child; the rest is the master's. Section 5.1.2 and Table 3 of the paper (`paper_machine`).

A condition is evaluated at its dependent step, wherever it is written. That is the same thing as long as one is
taken whenever the other is; a condition written outside the branch of `or` that holds its dependent step, or inside
a branch while that step lies outside, is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from tidings.errors import PatternError, Unsupported
from tidings.model.patterns import Conjunction, Disjunction, Elapsed, Repeat, Sequence, Step, Timed, list_children

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidings.model.patterns import Node, Pattern

Path: TypeAlias = tuple[int, ...]
"""The numbers of the children that lead from the root to a node."""


@dataclass(frozen=True, slots=True)
class PlacedCondition:
    """A time condition, its case of Table 3, and the paths of its steps.

    `at` is where it is evaluated: the dependent step, or in case 4 the `and` or `or` that joins both machines.
    """

    condition: Elapsed
    case: int
    at: Path
    reference: Path
    dependent: Path


class StepLayout:
    """The paths of a pattern's nodes, its steps in order, and where its conditions are evaluated."""

    def __init__(self, pattern: Pattern) -> None:
        """Lay the pattern out; a part that the paper does not support raises `Unsupported`."""
        _refuse_absence_and_joins(pattern)
        self.nodes: dict[Path, Node] = dict(_walk(pattern.root, ()))
        for node in self.nodes.values():
            _refuse_beyond_the_paper(node)
        self.steps: list[Path] = [path for path, node in self.nodes.items() if isinstance(node, Step)]
        self.conditions: list[PlacedCondition] = [
            self._place_condition(condition, path)
            for path, node in self.nodes.items()
            if isinstance(node, Timed)
            for condition in node.conditions
        ]

    def find_last_step(self, path: Path) -> int:
        """Return the number of the last step at or below a node."""
        return max(number for number, step in enumerate(self.steps) if step[: len(path)] == path)

    def find_joining(self, placed: PlacedCondition) -> Path:
        """Return the outermost `and` around a condition's dependent step that its reference is not in, or the step."""
        paths = [placed.dependent[:end] for end in range(len(placed.dependent))]
        apart = [path for path in paths if placed.reference[: len(path)] != path]
        return next((path for path in apart if isinstance(self.nodes[path], Conjunction)), placed.dependent)

    def _find_step(self, label: str) -> Path:
        paths = [path for path, node in self.nodes.items() if isinstance(node, Step) and node.name == label]
        if len(paths) != 1:
            msg = f"a time condition's label means exactly one step; `{label}` means {len(paths)}"
            raise PatternError(msg)
        return paths[0]

    def _place_condition(self, condition: Elapsed, written: Path) -> PlacedCondition:
        late, early = self._find_step(condition.late.label), self._find_step(condition.early.label)
        if late == early:
            refuse("condition on one step", condition.late.label)
        length = next(i for i, (a, b) in enumerate(zip(late, early, strict=False)) if a != b)
        joint = late[:length]
        if isinstance(self.nodes[joint], Sequence):
            reference, dependent = sorted((late, early))
            placed = PlacedCondition(condition, self._find_case(reference, dependent), dependent, reference, dependent)
        else:
            if condition.high is None or condition.low is not None:  # case 4 is `|t(a) - t(b)| < T` and nothing else
                refuse("lower bound between steps without an order", condition.late.label)
            placed = PlacedCondition(condition, 4, joint, early, late)
        if self._list_branches(placed.at) != self._list_branches(written):
            refuse("condition across a branch of `or`", condition.late.label)
        return placed

    def _find_case(self, reference: Path, dependent: Path) -> int:
        """Return the case, 1, 2, 3 or 5, of two steps that have an order, by their machines."""
        ours, theirs = self._find_machine(reference), self._find_machine(dependent)
        if ours == theirs:
            return 1
        if theirs[: len(ours)] == ours:
            return 2
        return 3 if ours[: len(theirs)] == theirs else 5

    def _find_machine(self, path: Path) -> Path:
        """Return the path of the state machine that holds a step: the nearest part of `and` or `or`, or the root."""
        ends = range(len(path), 0, -1)
        return next(
            (path[:end] for end in ends if isinstance(self.nodes[path[: end - 1]], Conjunction | Disjunction)), ()
        )

    def _list_branches(self, path: Path) -> list[Path]:
        """Return the branches of `or` that a node lies in."""
        return [path[: end + 1] for end in range(len(path)) if isinstance(self.nodes[path[:end]], Disjunction)]


def refuse(feature: str, part: str) -> NoReturn:
    """Raise `Unsupported` for a feature that the paper's machine does not have."""
    msg = f"`p-topss` has no {feature}: `{part}`; td.Detector() has"
    raise Unsupported(msg, kind="p-topss", part=part)


def _walk(node: Node, path: Path) -> Iterator[tuple[Path, Node]]:
    yield path, node
    for number, part in enumerate(list_children(node)):
        yield from _walk(part, (*path, number))


def _refuse_absence_and_joins(pattern: Pattern) -> None:
    if pattern.absence:
        refuse("absence", " ".join(pattern.absence.without))
    keys = set(pattern.key_variables())
    for name in pattern.list_filters():
        for _, variable in pattern[name].variables:
            if variable not in keys:
                refuse("variable that only some steps share", f"${variable}")


def _refuse_beyond_the_paper(node: Node) -> None:
    match node:
        case Repeat(step, _, _):
            refuse("repetition", step.name)
        case Timed(_, _, within) if within is not None:
            refuse("`within`", f"{within} us")
        case Sequence(_, joints):
            for joint in joints:
                if joint.without:
                    refuse("`not`", " ".join(joint.without))
        case _:
            pass
