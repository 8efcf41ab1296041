"""Patterns from text: named filters, and then the expression.

A line that begins `name =` or `name, name =` begins a named filter. The filter ends at a line break, unless a
parenthesis is open, the line ends in a word or sign that needs an operand, or the next line begins with one that
continues it. The rest is the expression: `=` alone never occurs in it, so no line of it looks like a named filter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.errors import PatternError
from tidings.lang.diagnostics import check_length
from tidings.lang.filters.render_text import RESERVED
from tidings.lang.patterns.check import PatternDraft
from tidings.lang.patterns.named_filters import Definition, read_definition
from tidings.lang.patterns.pattern_expression import ExpressionParser
from tidings.lang.patterns.tokens import (
    PatternReadError,
    Token,
    TokenKind,
    find_step_attributes,
    tokenize_expression,
    tokenize_filters,
)
from tidings.lang.source_map import SourceMap, SourceSpan
from tidings.model.patterns import NamedFilter, walk_steps

if TYPE_CHECKING:
    from tidings.concepts import Vocabulary

_COMPLETE = {"exists", "null", "true", "false"}
_WAITING = (RESERVED - _COMPLETE) | {"=", "!=", "<", "<=", ">", ">=", "==", ",", ".."}
"""A line that ends in one of these continues on the next."""

_GOING_ON = (RESERVED - {"not", "true", "false"}) | {"=", "!=", "<", "<=", ">", ">=", "==", ",", ")", "]", ".."}
"""A line that begins with one of these continues the one before."""

_UNFINISHED = {",", ";", "->", "@", "(", "{", "-", "|", ":", "and", "or", "not", "within", "for"}
"""An expression cannot end in one of these: the next line continues it, whatever it looks like."""

_MISSING = "the pattern expression is missing: behind the named filters comes what must happen, such as `a ; b`"


def read_text_draft(text: str, vocabulary: Vocabulary) -> PatternDraft:
    """Return the draft of a pattern's text; its `source_map.mistakes` are the mistakes of reading it."""
    check_length(text, PatternError)
    source_map = SourceMap()
    definitions, expression = _split_sections(text, source_map)
    filters: list[NamedFilter] = []
    for definition in definitions:
        tree, variables = read_definition(definition, text, vocabulary, source_map)
        for token in definition.names:
            named = NamedFilter(_read_defined_name(token, source_map), tree, variables)
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
        names |= {step.label for step in walk_steps(root) if step.label}
    _refuse_other_events(definitions, names, source_map)
    return PatternDraft(tuple(filters), root, absence, source_map)


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


def _split_sections(text: str, source_map: SourceMap) -> tuple[list[Definition], list[Token]]:
    """Return the named filters and the tokens of the expression; mistakes in their order go to `source_map`."""
    tokens, index = tokenize_filters(text), 0
    definitions: list[Definition] = []
    expression: list[Token] = []
    while index < len(tokens):
        head = _find_header_end(tokens, index)
        if head is None or (expression and expression[-1].is_one_of(*_UNFINISHED)):
            following = range(index + 1, len(tokens))
            stop = next((i for i in following if _find_header_end(tokens, i) is not None), len(tokens))
            end = tokens[stop].start if stop < len(tokens) else len(text)
            expression += tokenize_expression(text, tokens[index].start, end)
            index = stop
            continue
        if expression:
            source_map.refuse("named filters come before the pattern expression, which is last", tokens[index].span)
        stop, parenthesis = _find_filter_end(tokens, head)
        if parenthesis is not None:
            source_map.refuse("this parenthesis is not closed", parenthesis.span)
        body, start = tuple(tokens[head:stop]), tokens[head - 1].end
        names = tuple(tokens[index : head - 1 : 2])
        definitions.append(Definition(names, body, start, body[-1].end if body else start, parenthesis is None))
        index = stop
    return definitions, expression


def _find_header_end(tokens: list[Token], index: int) -> int | None:
    """Return the index after `name, name =`, if a line begins so at this index."""
    if not tokens[index].starts_line:
        return None
    # A keyword before `=` is meant as a name too: `_read_defined_name` refuses it and says how to write it.
    while index + 1 < len(tokens) and tokens[index].kind in (TokenKind.WORD, TokenKind.NAME):
        if tokens[index].is_one_of("and", "or", "not"):
            return None
        if tokens[index + 1].is_one_of("="):
            return index + 2
        if not tokens[index + 1].is_one_of(","):
            return None
        index += 2
    return None


def _find_filter_end(tokens: list[Token], index: int) -> tuple[int, Token | None]:
    """Return the index after the filter that begins at this index, and the parenthesis that it leaves open.

    A filter that never closes its parenthesis ends with its line, so that the rest can be read.
    """
    open_tokens: list[Token] = []
    line: int | None = None
    for i in range(index, len(tokens)):
        token = tokens[i]
        if token.starts_line and not tokens[i - 1].is_one_of(*_WAITING) and not token.is_one_of(*_GOING_ON):
            if not open_tokens:
                return i, None
            line = line or i
        if token.is_one_of("(", "["):
            open_tokens.append(token)
        elif token.is_one_of(")", "]") and open_tokens:
            open_tokens.pop()
            line = line if open_tokens else None
    return (line or len(tokens), open_tokens[0]) if open_tokens else (len(tokens), None)


def _read_defined_name(token: Token, source_map: SourceMap) -> str:
    """Return the name of a filter; a word that cannot be a name is noted as a mistake and returned as it is."""
    try:
        if token.is_name:
            return token.name
        source_map.refuse(f"as a name `{token.text}` goes in backticks", token.span)
    except PatternReadError as problem:
        source_map.mistakes.append(problem.mistake)
    return token.text
