"""The draft of a pattern, and its checks: are its names defined and unambiguous, have the variables of `not` a value?

Both notations build the same draft, with positions; the checks are the same. All mistakes are collected.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.concepts import did_you_mean
from tidings.lang.source_map import SourceMap
from tidings.model import patterns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tidings.errors import Mistake
    from tidings.lang.source_map import SourceSpan


HOLE = "\x00"
"""The filter's name in a step that replaces a part which could not be read; checks ignore it."""

MAX_LEVELS = 50
"""Levels of parentheses in a pattern at most; recursion stays far from Python's own limit."""

TOO_DEEP = f"the pattern is nested more than {MAX_LEVELS} levels deep, which is the limit"
"""The message for a pattern beyond `MAX_LEVELS`."""


@dataclass(frozen=True, slots=True)
class PatternDraft:
    """A pattern that was read but not yet checked."""

    filters: tuple[patterns.NamedFilter, ...]
    root: patterns.Node | None
    absence: patterns.Absence | None
    source_map: SourceMap


def find_mistakes(draft: PatternDraft) -> list[Mistake]:
    """Return the mistakes of a draft that reading it did not find."""
    locate = draft.source_map.locate
    names = [(named.name, locate(named)) for named in draft.filters]
    mistakes = [*_find_repeated(names, "two filters are called `{}`")]
    if draft.root is None:
        return mistakes
    steps = [step for step in patterns.walk_steps(draft.root) if step.filter != HOLE]
    variables = {named.name: {variable for _, variable in named.variables} for named in draft.filters}
    guards = [*_list_guards(draft, draft.root, variables)]
    used = [(step.filter, locate(step)) for step in steps] + [(name, span) for name, span, _ in guards]
    mistakes += _find_unknown_filters(used, [*variables])
    labels = [(step.label, locate(step, 1)) for step in steps if step.label is not None]
    mistakes += _find_repeated(labels, "two steps are labelled `{}`; a label means one step")
    mistakes += _find_condition_mistakes(draft, draft.root, steps)
    # A misspelt name or a part that was not read would make other names look unused or unbound.
    if mistakes or draft.source_map.mistakes:
        return mistakes
    used_names = {name for name, _ in used}
    for named in draft.filters:
        if named.name not in used_names:
            message = f"`{named.name}` is never used; take it out, or use it in a step"
            mistakes.append(locate(named).make_mistake(message))
    keys = set(patterns.Pattern(draft.filters, draft.root, draft.absence).key_variables())
    for name, span, before in guards:
        for variable in sorted(variables[name] - keys - before):
            reason = f"`${variable}` of `{name}` has no value yet: no step that surely comes before gives it one"
            mistakes.append(span.make_mistake(reason))
    return mistakes


def _find_repeated(names: Iterable[tuple[str, SourceSpan]], message: str) -> Iterator[Mistake]:
    seen: set[str] = set()
    for name, span in names:
        if name in seen:
            yield span.make_mistake(message.format(name))
        seen.add(name)


def _find_unknown_filters(used: list[tuple[str, SourceSpan]], names: list[str]) -> Iterator[Mistake]:
    for name, span in used:
        if name not in names:
            near = did_you_mean(name, names) or f"; name it first, on a line of its own: `{name} = status = 'denied'`"
            yield span.make_mistake(f"no filter is called `{name}`{near}")


def _find_condition_mistakes(draft: PatternDraft, root: patterns.Node, steps: list[patterns.Step]) -> Iterator[Mistake]:
    called = Counter(step.name for step in steps)
    whole = not draft.source_map.mistakes  # a part that was not read may have the label
    for condition in patterns.walk_conditions(root):
        for index, moment in enumerate((condition.late, condition.early), start=1):
            count = called[moment.label]
            if count > 1:
                reason = f"`{moment.label}` means {count} steps; label the one that is meant: `x:{moment.label}`"
            elif count == 0 and whole:
                labelled = " and ".join(f"`{step.name}`" for step in steps if step.filter == moment.label)
                near = did_you_mean(moment.label, [step.name for step in steps])
                hint = f"; with that filter there is {labelled}" if labelled else near
                reason = f"no step is called `{moment.label}`{hint}"
            else:
                continue
            yield draft.source_map.locate(condition, index).make_mistake(reason)


# Variables under `not` -----------------------------------------------------------------------------


def _list_guards(
    draft: PatternDraft, root: patterns.Node, variables: Mapping[str, set[str]]
) -> Iterator[tuple[str, SourceSpan, set[str]]]:
    """Yield each name under `not`, its position, and the variables that surely have a value before it."""
    guards: list[tuple[patterns.Joint | patterns.Absence, set[str]]] = [*_list_joints(root, set(), variables)]
    if draft.absence is not None:
        guards.append((draft.absence, find_bound_variables(root, variables)))
    for guard, before in guards:
        for index, name in enumerate(guard.without):
            yield name, draft.source_map.locate(guard, index), before


def _list_joints(
    node: patterns.Node, before: set[str], variables: Mapping[str, set[str]]
) -> Iterator[tuple[patterns.Joint, set[str]]]:
    if not isinstance(node, patterns.Sequence):
        for part in patterns.list_children(node):
            yield from _list_joints(part, before, variables)
        return
    for i, part in enumerate(node.parts):
        yield from _list_joints(part, before, variables)
        before = before | find_bound_variables(part, variables)
        if i < len(node.joints):
            yield node.joints[i], before


def find_bound_variables(node: patterns.Node, variables: Mapping[str, set[str]]) -> set[str]:
    """Return the variables that have a value after every match of this part.

    `variables` maps a filter's name to the variables that it binds.
    """
    if isinstance(node, patterns.Step):
        return set(variables.get(node.filter, ()))
    bound = [find_bound_variables(part, variables) for part in patterns.list_children(node)]
    return set.intersection(*bound) if isinstance(node, patterns.Disjunction) else set[str]().union(*bound)
