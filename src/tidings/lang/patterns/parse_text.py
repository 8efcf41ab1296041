"""Patterns from text: named filters, one to a line, and then the expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.lang.patterns.expression import Expression
from tidings.lang.patterns.named_filters import Surroundings, read_definition
from tidings.lang.patterns.sections import defined_name, lay_out, missing
from tidings.lang.patterns.source_positions import Draft, Places, check_length
from tidings.lang.patterns.tokens import names_of_steps
from tidings.model.patterns import NamedFilter, steps_of

if TYPE_CHECKING:
    from tidings.lang.patterns.sections import Definition
    from tidings.model.patterns import Node


def read_text(text: str, surroundings: Surroundings) -> Draft:
    """Return the pattern as it was read; `draft.places.mistakes` are what was wrong with it."""
    check_length(text)
    places = Places()
    layout = lay_out(text, places)
    filters: list[NamedFilter] = []
    for definition in layout.definitions:
        filters += _named(definition, text, surroundings, places)
    if not layout.expression:
        unread = bool(places.mistakes)
        if not unread:
            places.refuse(_MISSING, missing(layout))
        return Draft(tuple(filters), None, None, places)
    root, absence = Expression(layout.expression, layout.end, places).read()
    _refuse_other_events(layout.definitions, _names(filters, root), places)
    return Draft(tuple(filters), root, absence, places)


_MISSING = "the pattern expression is missing: behind the named filters comes what must happen, such as `a ; b`"


def _names(filters: list[NamedFilter], root: Node | None) -> set[str]:
    labels = {step.label for step in steps_of(root) if step.label} if root is not None else set()
    return {named.name for named in filters} | labels


def _refuse_other_events(definitions: tuple[Definition, ...], names: set[str], places: Places) -> None:
    """Refuse `b.price > a.price` where `a` is a filter or a label: it reads as a comparison of two events."""
    for definition in definitions:
        for token in names_of_steps(list(definition.body), names):
            step, _, attribute = token.text.rpartition(".")
            places.refuse(
                f"`{token.text}` reads as `{attribute}` of the step `{step}`, and patterns cannot compare events yet;"
                f" where the event itself has an attribute of that name, it goes in backticks",
                token.place,
            )


def _named(definition: Definition, text: str, surroundings: Surroundings, places: Places) -> list[NamedFilter]:
    tree, variables = read_definition(definition, text, surroundings, places)
    found = []
    for token in definition.names:
        named = NamedFilter(defined_name(token, places), tree, variables)
        places.note(named, token.place)
        found.append(named)
    return found
