"""A pattern that was read: are its names known, does each mean one thing, can its `not`s be judged?

The notations give the places; the checks are the same. All mistakes are collected.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tidings.concepts import did_you_mean
from tidings.lang.patterns.source_positions import HOLE
from tidings.model.patterns import (
    Both,
    Either,
    Pattern,
    Repeat,
    Sequence,
    Step,
    Timed,
    children_of,
    conditions_of,
    steps_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tidings.errors import Mistake
    from tidings.lang.patterns.source_positions import Draft, Place
    from tidings.model.patterns import Absence, Elapsed, Joint, Node


def check(draft: Draft) -> list[Mistake]:
    """Return what is wrong with a pattern beyond how it is written."""
    if draft.root is None:
        return [*_names_twice(draft)]
    steps = [step for step in steps_of(draft.root) if step.filter != HOLE]
    unknown = [*_unknown_filters(draft, steps)]
    found = [*_names_twice(draft), *unknown, *_labels_twice(draft, steps), *_conditions(draft, steps)]
    # Where a name is misspelt or a part was not read, what is unused or unbound follows from that.
    if not found and not draft.places.mistakes:
        found += [*_unused(draft), *_unbound(draft)]
    return found


def _names_twice(draft: Draft) -> Iterator[Mistake]:
    seen: set[str] = set()
    for named in draft.filters:
        if named.name in seen:
            yield draft.places.of(named).mistake(f"two filters are called `{named.name}`")
        seen.add(named.name)


def _unknown_filters(draft: Draft, steps: list[Step]) -> Iterator[Mistake]:
    known = [named.name for named in draft.filters]
    used = [(step.filter, draft.places.of(step)) for step in steps]
    used += [(name, place) for name, place, _ in _guards(draft)]
    for name, place in used:
        if name not in known:
            near = did_you_mean(name, known) or f"; name it first, on a line of its own: `{name} = status = 'denied'`"
            yield place.mistake(f"no filter is called `{name}`{near}")


def _labels_twice(draft: Draft, steps: list[Step]) -> Iterator[Mistake]:
    seen: set[str] = set()
    for step in steps:
        if step.label is None:
            continue
        if step.label in seen:
            yield draft.places.of(step, 1).mistake(f"two steps are labelled `{step.label}`; a label means one step")
        seen.add(step.label)


def _conditions(draft: Draft, steps: list[Step]) -> Iterator[Mistake]:
    assert draft.root is not None
    called = Counter(step.called for step in steps)
    whole = not draft.places.mistakes  # a part that was not read may have held the label
    for condition in conditions_of(draft.root):
        for index, moment in enumerate((condition.late, condition.early), start=1):
            count = called[moment.label]
            if count > 1:
                reason = f"`{moment.label}` means {count} steps; label the one that is meant: `x:{moment.label}`"
                yield _at(draft, condition, index).mistake(reason)
            elif count == 0 and whole:
                yield _at(draft, condition, index).mistake(_uncalled(moment.label, steps))


def _at(draft: Draft, condition: Elapsed, index: int) -> Place:
    return draft.places.of(condition, index)


def _uncalled(label: str, steps: list[Step]) -> str:
    labelled = [f"`{step.called}`" for step in steps if step.filter == label]
    if labelled:
        return f"no step is called `{label}`; with that filter there is {' and '.join(labelled)}"
    return f"no step is called `{label}`{did_you_mean(label, [step.called for step in steps])}"


def _unused(draft: Draft) -> Iterator[Mistake]:
    assert draft.root is not None
    used = {step.filter for step in steps_of(draft.root)} | {name for name, _, _ in _guards(draft)}
    for named in draft.filters:
        if named.name not in used:
            yield draft.places.of(named).mistake(f"`{named.name}` is never used; take it out, or use it in a step")


# Variables of what must not come ------------------------------------------------------------------


def _unbound(draft: Draft) -> Iterator[Mistake]:
    assert draft.root is not None
    given = {named.name: {variable for _, variable in named.variables} for named in draft.filters}
    keys = set(Pattern(draft.filters, draft.root, draft.absence).key_variables())
    for name, place, before in _guards(draft):
        for variable in sorted(given[name] - keys - (before or set())):
            yield place.mistake(
                f"`${variable}` of `{name}` has no value yet: no step that surely comes before gives it one"
            )


def _guards(draft: Draft) -> Iterator[tuple[str, Place, set[str] | None]]:
    """Yield each name under `not`, its place, and the variables that surely have a value before it."""
    assert draft.root is not None
    given = {named.name: {variable for _, variable in named.variables} for named in draft.filters}
    found: list[tuple[Joint | Absence, set[str]]] = [*_joints(draft.root, set(), given)]
    if draft.absence is not None:
        found.append((draft.absence, bound_by(draft.root, given)))
    for guard, before in found:
        for index, name in enumerate(guard.without):
            yield name, draft.places.of(guard, index), before


def _joints(node: Node, before: set[str], given: Mapping[str, set[str]]) -> Iterator[tuple[Joint, set[str]]]:
    if not isinstance(node, Sequence):
        for part in children_of(node):
            yield from _joints(part, before, given)
        return
    for i, part in enumerate(node.parts):
        yield from _joints(part, before, given)
        before = before | bound_by(part, given)
        if i < len(node.joints):
            yield node.joints[i], before


def bound_by(node: Node, given: Mapping[str, set[str]]) -> set[str]:
    """Return the variables that have a value whenever this part was taken.

    `given` maps a filter's name to the variables it gives a value.
    """
    match node:
        case Step(name, _):
            return set(given.get(name, ()))
        case Repeat(step, _, _):
            return bound_by(step, given)
        case Timed(part, _, _):
            return bound_by(part, given)
        case Sequence(parts, _) | Both(parts):
            return set[str]().union(*(bound_by(part, given) for part in parts))
        case Either(parts):
            return set.intersection(*(bound_by(part, given) for part in parts))
