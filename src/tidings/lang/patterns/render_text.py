"""Patterns as text: what `parse_pattern` reads back as the same tree."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from tidings.lang.filters import literals
from tidings.lang.filters.render_text import render_text, shown_name
from tidings.lang.patterns.durations import shown_duration
from tidings.lang.patterns.time_conditions import shown_condition, shown_label
from tidings.lang.patterns.tokens import filter_tokens, names_of_steps
from tidings.model import TRUE, Or
from tidings.model.patterns import Both, Either, Repeat, Sequence, Step, Timed, steps_of

if TYPE_CHECKING:
    from tidings.model.patterns import Joint, NamedFilter, Node, Pattern


def render_pattern_text(pattern: Pattern) -> str:
    """Return the pattern in text notation: a line for each filter, and the expression."""
    groups = groupby(pattern.filters, key=lambda named: (named.filter, named.variables))
    names = {named.name for named in pattern.filters} | {step.label for step in steps_of(pattern.root) if step.label}
    lines = [_definition(list(alike), names) for _, alike in groups]
    return "\n".join([*lines, _whole(pattern)])


def _definition(alike: list[NamedFilter], steps: set[str]) -> str:
    names = ", ".join(shown_label(named.name) for named in alike)
    tree, variables = alike[0].filter, alike[0].variables
    shown = render_text(tree)
    parts = [] if tree == TRUE and variables else [f"({shown})" if isinstance(tree, Or) and variables else shown]
    parts += [f"{shown_name(attribute)} = {_variable(name)}" for attribute, name in variables]
    return f"{names} = {_own(' and '.join(parts), steps)}"


def _own(filter: str, steps: set[str]) -> str:
    """Put the attributes that read as those of a step's event in backticks: they are the event's own."""
    for token in reversed(names_of_steps(filter_tokens(filter), steps)):
        filter = f"{filter[: token.start]}`{token.text}`{filter[token.end :]}"
    return filter


def _variable(name: str) -> str:
    plain = name.replace("_", "a").isalnum()
    return f"${name}" if plain else f"${literals.quoted(name, '`')}"


def _whole(pattern: Pattern) -> str:
    root = pattern.root
    if pattern.absence is None:
        # At the very end a `within` must bound the whole pattern, or stand inside parentheses.
        return f"({_shown(root)})" if _ends_in_within(root) else _shown(root)
    guards = " ; ".join(f"not {shown_label(name)}" for name in pattern.absence.without)
    first = _grouped(root, Both, Either)
    return f"{first} ; {guards} for {shown_duration(pattern.absence.span)}"


def _ends_in_within(node: Node) -> bool:
    match node:
        case Sequence(parts, _) | Both(parts) | Either(parts):
            return _bounded(parts[-1]) or _ends_in_within(parts[-1])
    return False


def _bounded(node: Node) -> bool:
    return isinstance(node, Timed) and node.within is not None


def _shown(node: Node) -> str:
    match node:
        case Step(filter, label):
            return shown_label(filter) if label is None else f"{shown_label(label)}:{shown_label(filter)}"
        case Repeat(step, least, most):
            return f"{_shown(step)}{{{_times(least, most)}}}"
        case Sequence(parts, joints):
            follow = [f"{_joint(joint)}{_operand(part)}" for joint, part in zip(joints, parts[1:], strict=True)]
            return _operand(parts[0]) + "".join(follow)
        case Both(parts):
            return " and ".join(_grouped(part, Both, Either) for part in parts)
        case Either(parts):
            return " or ".join(_grouped(part, Either) for part in parts)
        case Timed():
            return _timed(node)


def _operand(node: Node) -> str:
    return _grouped(node, Sequence, Both, Either)


def _grouped(node: Node, *kinds: type) -> str:
    return f"({_shown(node)})" if isinstance(node, kinds) else _shown(node)


def _times(least: int, most: int | None) -> str:
    if most is None:
        return f"{least},"
    return f"{least}" if least == most else f"{least},{most}"


def _joint(joint: Joint) -> str:
    between = "".join(f"not {shown_label(name)} ; " for name in joint.without)
    return f" {joint.gap.value} {between}"


def _timed(node: Timed) -> str:
    bare = isinstance(node.part, Step | Repeat) and node.within is None
    shown = _shown(node.part) if bare else f"({_shown(node.part)})"
    if len(node.conditions) == 1:
        shown += f" @ {shown_condition(node.conditions[0])}"
    elif node.conditions:
        shown += f" @ ({' and '.join(map(shown_condition, node.conditions))})"
    return shown if node.within is None else f"{shown} within {shown_duration(node.within)}"
