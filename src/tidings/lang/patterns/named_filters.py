"""A named filter's text: its variables taken out, the rest read by the filters' own parser.

`ip = $x` may stand only between the outermost `and`s. It is blanked out where it stands, so every place that the
filters' parser reports is right, but for the offset of the definition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidings.errors import FilterError
from tidings.lang.filters import literals
from tidings.lang.filters.ambiguities import moved as moved_doubts
from tidings.lang.filters.notations import parse
from tidings.lang.filters.render_text import RESERVED
from tidings.lang.patterns.source_positions import Place, moved
from tidings.lang.patterns.tokens import Sort, Stop, Token
from tidings.model import TRUE, Exists, Test

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.errors import FilterWarning, Mistake
    from tidings.lang.patterns.sections import Definition
    from tidings.lang.patterns.source_positions import Places
    from tidings.model import Filter


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What names are checked against, each when given."""

    schema: Any = None
    ontology: Any = None
    regions: Any = None

    @property
    def keywords(self) -> dict[str, Any]:
        """What to pass on to the filters' parser."""
        return {"schema": self.schema, "ontology": self.ontology, "regions": self.regions}

    def unknown(self, attribute: str, place: Place) -> list[Mistake]:
        """Return what is wrong with an attribute that a variable takes its value from."""
        try:
            test = Test(attribute, Exists())
        except ValueError as problem:
            return [place.mistake(str(problem))]
        if all(known is None for known in self.keywords.values()):
            return []
        from tidings.lang.filters.check import Checker
        from tidings.lang.filters.source_spans import Spot, Spots

        spots, checker = Spots(), Checker(self.schema, self.ontology, self.regions)
        span = None if place.start is None else (place.start, place.end or place.start + 1)
        spots.note(test, Spot(span, span, place.path))
        checker.check(test, spots)
        return checker.mistakes


@dataclass(frozen=True, slots=True)
class _Conjunct:
    """What stands between two outermost `and`s; `before` is the `and` in front of it."""

    tokens: tuple[Token, ...]
    before: Token | None

    @property
    def gives(self) -> bool:
        """Whether it is `attribute = $variable` and nothing more."""
        if len(self.tokens) != 3:
            return False
        attribute, equal, variable = self.tokens
        named = attribute.sort is Sort.NAME or (attribute.sort is Sort.WORD and not _is_keyword(attribute))
        return named and equal.says("=") and variable.sort is Sort.VARIABLE and len(variable.text) > 1


def _is_keyword(token: Token) -> bool:
    return token.text.partition(".")[0].lower() in RESERVED


def read_definition(
    definition: Definition, text: str, surroundings: Surroundings, places: Places
) -> tuple[Filter, tuple[tuple[str, str], ...]]:
    """Return a definition's filter and the variables it gives; mistakes are noted, with a stand-in."""
    if not definition.closed:
        return TRUE, ()
    conjuncts = _conjuncts(definition.body)
    giving = [] if _has_or(definition.body) else [part for part in conjuncts if part.gives]
    astray = _astray(definition.body, giving)
    for token in astray:
        places.refuse(_reason(token, definition.body), token.place)
    variables = _variables(giving, surroundings, places)
    body = _blanked(definition, text, conjuncts, astray)
    doubts: list[FilterWarning] = []
    # What stands in for a misplaced variable is no attribute that a schema could know.
    known = Surroundings() if astray or not all(part.tokens for part in conjuncts) else surroundings
    tree = _filter(definition, body, known, places, astray, doubts)
    places.doubts += moved_doubts(doubts, _beginning(definition, body), text)
    return tree, variables


def _conjuncts(body: tuple[Token, ...]) -> list[_Conjunct]:
    found: list[_Conjunct] = []
    level, begun, before = 0, 0, None
    for i, token in enumerate(body):
        level += token.says("(", "[") - token.says(")", "]")
        if level == 0 and token.says("and"):
            found.append(_Conjunct(body[begun:i], before))
            begun, before = i + 1, token
    return [*found, _Conjunct(body[begun:], before)]


def _has_or(body: tuple[Token, ...]) -> bool:
    level = 0
    for token in body:
        level += token.says("(", "[") - token.says(")", "]")
        if level == 0 and token.says("or"):
            return True
    return False


def _astray(body: tuple[Token, ...], giving: Iterable[_Conjunct]) -> list[Token]:
    fine = {part.tokens[2].start for part in giving}
    return [token for token in body if token.sort is Sort.VARIABLE and token.start not in fine]


def _reason(token: Token, body: tuple[Token, ...]) -> str:
    """Say why a variable cannot stand here."""
    way = f"a variable is given as `attribute = {token.text}`, joined to the rest of the filter by `and`"
    before = next((other for other in reversed(body) if other.end <= token.start), None)
    if len(token.text) == 1:
        return "a variable has a name: `ip = $x`"
    if before is None or not before.says("=", "!=", "<", "<=", ">", ">=", "=="):
        return way
    if not before.says("="):
        return f"variables compare with `=` only; {way}"
    if _has_or(body):
        return f"`{token.text}` stands beside an `or`, so it may stay without a value; put the `or` in parentheses"
    return f"{way}, outside parentheses and `not`"


def _variables(giving: list[_Conjunct], surroundings: Surroundings, places: Places) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for part in giving:
        attribute, _, variable = part.tokens
        try:
            name, source = _variable(variable), attribute.name
        except Stop as problem:
            places.mistakes.append(problem.mistake)
            continue
        if name in found:
            places.refuse(f"`{variable.text}` has a value already; compare the attributes instead", variable.place)
            continue
        found[name] = source
        places.mistakes += surroundings.unknown(source, attribute.place)
    return tuple((source, name) for name, source in found.items())


def _variable(token: Token) -> str:
    try:
        return literals.unquoted(token.text[1:]) if token.text[1] == "`" else token.text[1:]
    except ValueError as problem:
        raise Stop(token.place, str(problem)) from None


def _blanked(definition: Definition, text: str, conjuncts: list[_Conjunct], astray: Iterable[Token]) -> str:
    """Return the filter's text, of the same length, without its variables."""
    letters = list(text[definition.start : definition.end])

    def put(token: Token, instead: str) -> None:
        width = token.end - token.start
        letters[token.start - definition.start : token.end - definition.start] = instead.ljust(width)[:width]

    whole = all(part.tokens for part in conjuncts) and not _has_or(definition.body)
    kept = 0
    for part in conjuncts:
        if part.gives and whole:
            for token in part.tokens:
                put(token, "")
        if part.before is not None and whole and (part.gives or not kept):
            put(part.before, "")
        kept += not part.gives
    for token in [*astray, *(part.tokens[2] for part in conjuncts if part.gives and not whole)]:
        put(token, "_" * len(token.text))  # reads as another attribute, so the rest can still be judged
    return "".join(letters)


def _filter(
    definition: Definition,
    body: str,
    surroundings: Surroundings,
    places: Places,
    astray: list[Token],
    doubts: list[FilterWarning],
) -> Filter:
    if not body.strip() and definition.body:
        return TRUE
    try:
        # Without the blanks around it, a plain filter goes the parser's quick way.
        return parse(body.strip(), warnings=doubts, **surroundings.keywords)
    except FilterError as problem:
        begins = _beginning(definition, body)
        places.mistakes += [one for one in moved(problem, by=begins) if not _follows(one, astray, definition)]
        return TRUE


def _beginning(definition: Definition, body: str) -> int:
    return definition.start + len(body) - len(body.lstrip())


def _follows(mistake: Mistake, astray: list[Token], definition: Definition) -> bool:
    """Tell whether a mistake lies between the same `and`s as a misplaced variable: then it follows from that."""
    at = mistake.start or 0
    for part in _conjuncts(definition.body):
        if any(token in part.tokens for token in astray) and part.tokens[0].start <= at <= part.tokens[-1].end:
            return True
    return False
