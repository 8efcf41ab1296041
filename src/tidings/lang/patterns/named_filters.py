"""A named filter of a pattern: its variables are taken out, the rest is read by the filters' own parser.

`ip = $x` may stand only between the outermost `and`s. It is overwritten with blanks, so the positions that the
filters' parser reports are right but for the offset of the definition.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from tidings.concepts import Vocabulary
from tidings.errors import FilterError
from tidings.lang.filters.ambiguities import shift_warnings
from tidings.lang.filters.check import FilterChecker
from tidings.lang.filters.notations import parse_filter
from tidings.lang.filters.render_text import RESERVED
from tidings.lang.patterns.tokens import PatternReadError, Token, TokenKind
from tidings.lang.source_map import SourceMap, SourceSpan
from tidings.model import TRUE, Exists, Test

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.errors import FilterWarning, Mistake
    from tidings.model import Filter


@dataclass(frozen=True, slots=True)
class Definition:
    """One or several names and the filter they stand for, as tokens and as offsets in the text."""

    names: tuple[Token, ...]
    body: tuple[Token, ...]
    start: int
    end: int
    closed: bool = True


def check_attribute(attribute: str, span: SourceSpan, vocabulary: Vocabulary) -> list[Mistake]:
    """Return the mistakes of an attribute that a variable takes its value from."""
    try:
        test = Test(attribute, Exists())
    except ValueError as problem:
        return [span.make_mistake(str(problem))]
    if vocabulary.is_empty:
        return []
    source_map, checker = SourceMap(), FilterChecker(vocabulary)
    source_map.record(test, span, span)
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
        is_keyword = attribute.text.partition(".")[0].lower() in RESERVED
        named = attribute.kind is TokenKind.NAME or (attribute.kind is TokenKind.WORD and not is_keyword)
        return named and equal.is_one_of("=") and variable.kind is TokenKind.VARIABLE and len(variable.text) > 1


def read_definition(
    definition: Definition, text: str, vocabulary: Vocabulary, source_map: SourceMap
) -> tuple[Filter, tuple[tuple[str, str], ...]]:
    """Return a definition's filter and its (attribute, variable) pairs.

    Mistakes go to `source_map`; a filter that cannot be read becomes `TRUE`.
    """
    if not definition.closed:
        return TRUE, ()
    conjuncts, has_or = _split_conjuncts(definition.body), bool(_find_outermost(definition.body, "or"))
    binding = [] if has_or else [part for part in conjuncts if part.binds_variable]
    bound = {part.tokens[2].start for part in binding}
    misplaced = [token for token in definition.body if token.kind is TokenKind.VARIABLE and token.start not in bound]
    for token in misplaced:
        source_map.refuse(_explain_misplaced(token, definition.body), token.span)
    variables = _read_variables(binding, vocabulary, source_map)
    body = _erase_variables(definition, text, conjuncts, misplaced)
    # The placeholder of a misplaced variable is an attribute that no schema declares.
    placeholders = bool(misplaced) or not all(part.tokens for part in conjuncts)
    if not body.strip() and definition.body:
        return TRUE, variables
    filter_warnings: list[FilterWarning] = []
    offset = definition.start + len(body) - len(body.lstrip())
    try:
        # Without the blanks around it, a plain filter is read by the fast parser.
        names = Vocabulary() if placeholders else vocabulary
        tree = parse_filter(body.strip(), names, warnings=filter_warnings)
    except FilterError as problem:
        mistakes = [mistake.shift(offset) for mistake in problem.mistakes]
        source_map.mistakes += [
            mistake for mistake in mistakes if not _follows_from_misplaced(mistake, misplaced, conjuncts)
        ]
        return TRUE, variables
    source_map.filter_warnings += shift_warnings(filter_warnings, offset, text)
    return tree, variables


def _find_outermost(body: tuple[Token, ...], word: str) -> list[int]:
    """Return where a word stands outside all parentheses."""
    levels = accumulate(token.is_one_of("(", "[") - token.is_one_of(")", "]") for token in body)
    return [i for i, level in enumerate(levels) if level == 0 and body[i].is_one_of(word)]


def _split_conjuncts(body: tuple[Token, ...]) -> list[_Conjunct]:
    cuts = _find_outermost(body, "and")
    bounds = pairwise([-1, *cuts, len(body)])
    return [_Conjunct(body[before + 1 : after], body[before] if before >= 0 else None) for before, after in bounds]


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
    if _find_outermost(body, "or"):
        return f"`{token.text}` stands beside an `or`, so it may stay without a value; put the `or` in parentheses"
    return f"{rule}, outside parentheses and `not`"


def _read_variables(
    binding: list[_Conjunct], vocabulary: Vocabulary, source_map: SourceMap
) -> tuple[tuple[str, str], ...]:
    attributes: dict[str, str] = {}
    for part in binding:
        attribute, _, variable = part.tokens
        try:
            name, source = variable.name, attribute.name
        except PatternReadError as problem:
            source_map.mistakes.append(problem.mistake)
            continue
        if name in attributes:
            source_map.refuse(f"`{variable.text}` has a value already; compare the attributes instead", variable.span)
            continue
        attributes[name] = source
        source_map.mistakes += check_attribute(source, attribute.span, vocabulary)
    return tuple((source, name) for name, source in attributes.items())


def _erase_variables(definition: Definition, text: str, conjuncts: list[_Conjunct], misplaced: Iterable[Token]) -> str:
    """Return the filter's text with its variables blanked; the length stays, so positions stay true."""
    letters = list(text[definition.start : definition.end])

    def put(token: Token, instead: str) -> None:
        width = token.end - token.start
        letters[token.start - definition.start : token.end - definition.start] = instead.ljust(width)[:width]

    readable = all(part.tokens for part in conjuncts) and not _find_outermost(definition.body, "or")
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


def _follows_from_misplaced(mistake: Mistake, misplaced: list[Token], conjuncts: list[_Conjunct]) -> bool:
    """Tell whether a mistake lies between the same `and`s as a misplaced variable: then it follows from that."""
    offset = mistake.start or 0
    spoilt = [part.tokens for part in conjuncts if any(token in part.tokens for token in misplaced)]
    return any(tokens[0].start <= offset <= tokens[-1].end for tokens in spoilt)
