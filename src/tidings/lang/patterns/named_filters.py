"""A named filter of a pattern: its variables are taken out, the rest is read by the filters' own parser.

`ip = $x` may stand only between the outermost `and`s. It is overwritten with blanks, so the positions that the
filters' parser reports are right but for the offset of the definition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.concepts import Vocabulary
from tidings.errors import FilterError
from tidings.lang.filters import literals
from tidings.lang.filters.ambiguities import shift_warnings
from tidings.lang.filters.check import FilterChecker
from tidings.lang.filters.notations import parse
from tidings.lang.filters.render_text import RESERVED
from tidings.lang.filters.source_spans import FilterSourceMap, TestSpan
from tidings.lang.patterns.source_positions import SourceSpan, shift_mistakes
from tidings.lang.patterns.tokens import PatternReadError, Token, TokenKind
from tidings.model import TRUE, Exists, Test

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.errors import FilterWarning, Mistake
    from tidings.lang.patterns.sections import Definition
    from tidings.lang.patterns.source_positions import PatternSourceMap
    from tidings.model import Filter


def check_attribute(attribute: str, span: SourceSpan, vocabulary: Vocabulary) -> list[Mistake]:
    """Return the mistakes of an attribute that a variable takes its value from."""
    try:
        test = Test(attribute, Exists())
    except ValueError as problem:
        return [span.make_mistake(str(problem))]
    if vocabulary.is_empty:
        return []
    source_map, checker = FilterSourceMap(), FilterChecker(vocabulary)
    offsets = None if span.start is None else (span.start, span.end or span.start + 1)
    source_map.record(test, TestSpan(offsets, offsets, span.path))
    checker.check(test, source_map)
    return checker.mistakes


@dataclass(frozen=True, slots=True)
class _Conjunct:
    """The tokens between two outermost `and`s; `before` is the `and` in front of them."""

    tokens: tuple[Token, ...]
    before: Token | None

    @property
    def binds_variable(self) -> bool:
        """Whether it is `attribute = $variable` and nothing more."""
        if len(self.tokens) != 3:
            return False
        attribute, equal, variable = self.tokens
        named = attribute.kind is TokenKind.NAME or (attribute.kind is TokenKind.WORD and not _is_keyword(attribute))
        return named and equal.is_one_of("=") and variable.kind is TokenKind.VARIABLE and len(variable.text) > 1


def _is_keyword(token: Token) -> bool:
    return token.text.partition(".")[0].lower() in RESERVED


def read_definition(
    definition: Definition, text: str, vocabulary: Vocabulary, source_map: PatternSourceMap
) -> tuple[Filter, tuple[tuple[str, str], ...]]:
    """Return a definition's filter and its (attribute, variable) pairs.

    Mistakes go to `source_map`; a filter that cannot be read becomes `TRUE`.
    """
    if not definition.closed:
        return TRUE, ()
    conjuncts = _split_conjuncts(definition.body)
    binding = [] if _has_or(definition.body) else [part for part in conjuncts if part.binds_variable]
    misplaced = _find_misplaced(definition.body, binding)
    for token in misplaced:
        source_map.refuse(_explain_misplaced(token, definition.body), token.span)
    variables = _read_variables(binding, vocabulary, source_map)
    body = _blank_variables(definition, text, conjuncts, misplaced)
    # The placeholder of a misplaced variable is an attribute that no schema declares.
    placeholders = bool(misplaced) or not all(part.tokens for part in conjuncts)
    try:
        tree, filter_warnings = _parse_filter(definition, body, Vocabulary() if placeholders else vocabulary)
        source_map.filter_warnings += shift_warnings(filter_warnings, _find_start(definition, body), text)
    except FilterError as problem:
        mistakes = shift_mistakes(problem, offset=_find_start(definition, body))
        source_map.mistakes += [each for each in mistakes if not _follows_from_misplaced(each, misplaced, definition)]
        tree = TRUE
    return tree, variables


def _split_conjuncts(body: tuple[Token, ...]) -> list[_Conjunct]:
    conjuncts: list[_Conjunct] = []
    level, start, before = 0, 0, None
    for i, token in enumerate(body):
        level += token.is_one_of("(", "[") - token.is_one_of(")", "]")
        if level == 0 and token.is_one_of("and"):
            conjuncts.append(_Conjunct(body[start:i], before))
            start, before = i + 1, token
    return [*conjuncts, _Conjunct(body[start:], before)]


def _has_or(body: tuple[Token, ...]) -> bool:
    level = 0
    for token in body:
        level += token.is_one_of("(", "[") - token.is_one_of(")", "]")
        if level == 0 and token.is_one_of("or"):
            return True
    return False


def _find_misplaced(body: tuple[Token, ...], binding: Iterable[_Conjunct]) -> list[Token]:
    bound = {part.tokens[2].start for part in binding}
    return [token for token in body if token.kind is TokenKind.VARIABLE and token.start not in bound]


def _explain_misplaced(token: Token, body: tuple[Token, ...]) -> str:
    """Say why a variable cannot stand here."""
    rule = f"a variable is given as `attribute = {token.text}`, joined to the rest of the filter by `and`"
    before = next((other for other in reversed(body) if other.end <= token.start), None)
    if len(token.text) == 1:
        return "a variable has a name: `ip = $x`"
    if before is None or not before.is_one_of("=", "!=", "<", "<=", ">", ">=", "=="):
        return rule
    if not before.is_one_of("="):
        return f"variables compare with `=` only; {rule}"
    if _has_or(body):
        return f"`{token.text}` stands beside an `or`, so it may stay without a value; put the `or` in parentheses"
    return f"{rule}, outside parentheses and `not`"


def _read_variables(
    binding: list[_Conjunct], vocabulary: Vocabulary, source_map: PatternSourceMap
) -> tuple[tuple[str, str], ...]:
    attributes: dict[str, str] = {}
    for part in binding:
        attribute, _, variable = part.tokens
        try:
            name, source = _read_variable_name(variable), attribute.name
        except PatternReadError as problem:
            source_map.mistakes.append(problem.mistake)
            continue
        if name in attributes:
            source_map.refuse(f"`{variable.text}` has a value already; compare the attributes instead", variable.span)
            continue
        attributes[name] = source
        source_map.mistakes += check_attribute(source, attribute.span, vocabulary)
    return tuple((source, name) for name, source in attributes.items())


def _read_variable_name(token: Token) -> str:
    try:
        return literals.unquote(token.text[1:]) if token.text[1] == "`" else token.text[1:]
    except ValueError as problem:
        raise PatternReadError(token.span, str(problem)) from None


def _blank_variables(definition: Definition, text: str, conjuncts: list[_Conjunct], misplaced: Iterable[Token]) -> str:
    """Return the filter's text with its variables blanked; the length stays, so positions stay true."""
    letters = list(text[definition.start : definition.end])

    def put(token: Token, instead: str) -> None:
        width = token.end - token.start
        letters[token.start - definition.start : token.end - definition.start] = instead.ljust(width)[:width]

    readable = all(part.tokens for part in conjuncts) and not _has_or(definition.body)
    kept = 0
    for part in conjuncts:
        if part.binds_variable and readable:
            for token in part.tokens:
                put(token, "")
        if part.before is not None and readable and (part.binds_variable or not kept):
            put(part.before, "")
        kept += not part.binds_variable
    for token in [*misplaced, *(part.tokens[2] for part in conjuncts if part.binds_variable and not readable)]:
        put(token, "_" * len(token.text))  # reads as another attribute, so that the rest can still be checked
    return "".join(letters)


def _parse_filter(definition: Definition, body: str, vocabulary: Vocabulary) -> tuple[Filter, list[FilterWarning]]:
    filter_warnings: list[FilterWarning] = []
    if not body.strip() and definition.body:
        return TRUE, filter_warnings
    # Without the blanks around it, a plain filter is read by the fast parser.
    return parse(body.strip(), warnings=filter_warnings, **vocabulary.to_keywords()), filter_warnings


def _find_start(definition: Definition, body: str) -> int:
    return definition.start + len(body) - len(body.lstrip())


def _follows_from_misplaced(mistake: Mistake, misplaced: list[Token], definition: Definition) -> bool:
    """Tell whether a mistake lies between the same `and`s as a misplaced variable: then it follows from that."""
    at = mistake.start or 0
    for part in _split_conjuncts(definition.body):
        if any(token in part.tokens for token in misplaced) and part.tokens[0].start <= at <= part.tokens[-1].end:
            return True
    return False
