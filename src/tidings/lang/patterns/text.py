"""Patterns from text: named filters, one to a line, and then the expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.lang.patterns.definitions import Surroundings, read_definition
from tidings.lang.patterns.expression import Expression
from tidings.lang.patterns.layout import defined_name, lay_out, missing
from tidings.lang.patterns.places import Draft, Places, check_length
from tidings.model.patterns import NamedFilter

if TYPE_CHECKING:
    from tidings.lang.patterns.layout import Definition


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
    return Draft(tuple(filters), root, absence, places)


_MISSING = "the pattern expression is missing: behind the named filters comes what must happen, such as `a ; b`"


def _named(definition: Definition, text: str, surroundings: Surroundings, places: Places) -> list[NamedFilter]:
    tree, variables = read_definition(definition, text, surroundings, places)
    found = []
    for token in definition.names:
        named = NamedFilter(defined_name(token, places), tree, variables)
        places.note(named, token.place)
        found.append(named)
    return found
