"""Patterns from text: named filters, one to a line, and then the expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.errors import PatternError
from tidings.lang.diagnostics import check_length
from tidings.lang.patterns.check import PatternDraft
from tidings.lang.patterns.expression import ExpressionParser
from tidings.lang.patterns.named_filters import read_definition
from tidings.lang.patterns.sections import read_defined_name, split_sections
from tidings.lang.patterns.tokens import find_step_attributes
from tidings.lang.source_map import SourceMap, SourceSpan
from tidings.model.patterns import NamedFilter, steps_of

if TYPE_CHECKING:
    from tidings.concepts import Vocabulary
    from tidings.lang.patterns.sections import Definition


def read_text_draft(text: str, vocabulary: Vocabulary) -> PatternDraft:
    """Return the draft of a pattern's text; its `source_map.mistakes` are the mistakes of reading it."""
    check_length(text, PatternError)
    source_map = SourceMap()
    definitions, expression = split_sections(text, source_map)
    filters: list[NamedFilter] = []
    for definition in definitions:
        tree, variables = read_definition(definition, text, vocabulary, source_map)
        for token in definition.names:
            named = NamedFilter(read_defined_name(token, source_map), tree, variables)
            source_map.record(named, token.span)
            filters.append(named)
    end = len(text.rstrip())
    if not expression:
        if not source_map.mistakes:
            source_map.refuse(_MISSING, SourceSpan(end, end + 1))
        return PatternDraft(tuple(filters), None, None, source_map)
    root, absence = ExpressionParser(expression, end, source_map).parse()
    names = {named.name for named in filters}
    if root is not None:
        names |= {step.label for step in steps_of(root) if step.label}
    _refuse_other_events(definitions, names, source_map)
    return PatternDraft(tuple(filters), root, absence, source_map)


_MISSING = "the pattern expression is missing: behind the named filters comes what must happen, such as `a ; b`"


def _refuse_other_events(definitions: list[Definition], names: set[str], source_map: SourceMap) -> None:
    """Refuse `b.price > a.price` where `a` is a filter or a label: it reads as a comparison of two events."""
    for definition in definitions:
        for token in find_step_attributes(list(definition.body), names):
            step, _, attribute = token.text.rpartition(".")
            source_map.refuse(
                f"`{token.text}` reads as `{attribute}` of the step `{step}`, and patterns cannot compare events yet;"
                f" where the event itself has an attribute of that name, it goes in backticks",
                token.span,
            )
