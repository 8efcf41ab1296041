"""Patterns in text notation: the text that `parse_pattern` reads back as the same tree."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from tidings.lang.filters import value_text
from tidings.lang.filters.render_text import render_name, render_text
from tidings.lang.patterns.durations import format_duration
from tidings.lang.patterns.time_conditions import render_condition, render_label
from tidings.lang.patterns.tokens import find_step_attributes, tokenize_filters
from tidings.model import TRUE, Or
from tidings.model.patterns import Conjunction, Disjunction, Repeat, Sequence, Step, Timed, walk_steps

if TYPE_CHECKING:
    from tidings.model.patterns import NamedFilter, Node, Pattern


def render_pattern_text(pattern: Pattern) -> str:
    """Return the pattern in text notation: a line for each filter, and the expression."""
    groups = groupby(pattern.filters, key=lambda named: (named.filter, named.variables))
    names = {named.name for named in pattern.filters} | {step.label for step in walk_steps(pattern.root) if step.label}
    lines = [_render_definition(list(alike), names) for _, alike in groups]
    return "\n".join([*lines, _render_root(pattern)])


def _render_definition(alike: list[NamedFilter], steps: set[str]) -> str:
    names = ", ".join(render_label(named.name) for named in alike)
    tree, variables = alike[0].filter, alike[0].variables
    text = render_text(tree)
    parts = [] if tree == TRUE and variables else [f"({text})" if isinstance(tree, Or) and variables else text]
    for attribute, name in variables:
        plain = name.replace("_", "a").isalnum()
        parts.append(f"{render_name(attribute)} = ${name if plain else value_text.quote(name, '`')}")
    body = " and ".join(parts)
    # Attributes such as `a.price` go in backticks where `a` is a step: without, they would be the step's.
    for token in reversed(find_step_attributes(tokenize_filters(body), steps)):
        body = f"{body[: token.start]}`{token.text}`{body[token.end :]}"
    return f"{names} = {body}"


def _render_root(pattern: Pattern) -> str:
    root = pattern.root
    if pattern.absence is None:
        # At the end of the text a `within` bounds the whole pattern, unless it is inside parentheses.
        return f"({_render_node(root)})" if _has_final_within(root) else _render_node(root)
    guards = " ; ".join(f"not {render_label(name)}" for name in pattern.absence.without)
    first = _render_grouped(root, Conjunction, Disjunction)
    return f"{first} ; {guards} for {format_duration(pattern.absence.span)}"


def _has_final_within(node: Node) -> bool:
    if not isinstance(node, Sequence | Conjunction | Disjunction):
        return False
    last = node.parts[-1]
    return (isinstance(last, Timed) and last.within is not None) or _has_final_within(last)


def _render_node(node: Node) -> str:
    match node:
        case Step(filter, label):
            return render_label(filter) if label is None else f"{render_label(label)}:{render_label(filter)}"
        case Repeat(step, least, most):
            upper = "," if most is None else f",{most}" if most > least else ""
            return f"{_render_node(step)}{{{least}{upper}}}"
        case Sequence(parts, joints):
            text = _render_grouped(parts[0], Sequence, Conjunction, Disjunction)
            for joint, part in zip(joints, parts[1:], strict=True):
                guards = "".join(f"not {render_label(name)} ; " for name in joint.without)
                text += f" {joint.gap.value} {guards}{_render_grouped(part, Sequence, Conjunction, Disjunction)}"
            return text
        case Conjunction(parts):
            return " and ".join(_render_grouped(part, Conjunction, Disjunction) for part in parts)
        case Disjunction(parts):
            return " or ".join(_render_grouped(part, Disjunction) for part in parts)
        case Timed():
            return _render_timed(node)


def _render_grouped(node: Node, *kinds: type) -> str:
    return f"({_render_node(node)})" if isinstance(node, kinds) else _render_node(node)


def _render_timed(node: Timed) -> str:
    bare = isinstance(node.part, Step | Repeat) and node.within is None
    text = _render_node(node.part) if bare else f"({_render_node(node.part)})"
    if len(node.conditions) == 1:
        text += f" @ {render_condition(node.conditions[0])}"
    elif node.conditions:
        text += f" @ ({' and '.join(map(render_condition, node.conditions))})"
    return text if node.within is None else f"{text} within {format_duration(node.within)}"
