"""The notation of derived attributes: `year(now) - graduated`, `concat(first, ' ', last)`.

Numbers, 'text', `now`, attributes (dotted; in backticks where they hold other characters or are called
`now`), `+ - * /`, parentheses and the functions of `functions.py`. Parsing gives a small frozen tree that
remembers where each part stands, so that every mistake can point at its place. Lark is loaded when the
first expression is parsed; evaluating needs none of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from tidings.errors import OntologyError

if TYPE_CHECKING:
    from lark import Lark

LONGEST = 2000
"""The most characters of an expression."""

DEEPEST = 50
"""The deepest nesting of its parts; recursion stays far from Python's own limit."""

_GRAMMAR = r"""
    ?start: sum
    ?sum: product | sum SIGN product -> call
    ?product: unary | product STEP unary -> call
    ?unary: atom | "-" unary -> minus
    ?atom: NUMBER -> number | TEXT -> text | "(" sum ")" -> group | name | function
    function: WORD "(" [sum ("," sum)*] ")"
    name: _part ("." _part)*
    _part: WORD | QUOTED
    SIGN: "+" | "-"
    STEP: "*" | "/"
    WORD: /[^\W\d]\w*/
    QUOTED: /`[^`]+`/
    NUMBER: /(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?/
    TEXT: /'(\\.|[^'\\])*'|"(\\.|[^"\\])*"/s
    %ignore /\s+/
"""


@dataclass(frozen=True, slots=True)
class Constant:
    """A number or a text."""

    value: int | float | str
    offset: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Now:
    """The time at which the event is read."""

    offset: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Name:
    """An attribute's value."""

    name: str
    offset: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function, or an operator as one, of its arguments."""

    function: str
    args: tuple[Expression, ...]
    offset: int = field(default=0, compare=False)


Expression: TypeAlias = Constant | Now | Name | Call


def parse(text: str, own_name: Callable[[str], str] = str) -> Expression:
    """Parse an expression, with every attribute by the name that `own_name` gives it.

    A mistake is an `OntologyError` that points at its place.
    """
    from lark.exceptions import UnexpectedInput

    if len(text) > LONGEST:
        msg = f"the expression has {len(text):,} characters; at most {LONGEST:,} are read"
        raise OntologyError(msg)
    try:
        tree = _load_parser().parse(text)
    except UnexpectedInput as problem:
        raise OntologyError(point_at(text, _find_offset(problem, text), _explain_error(problem))) from None
    return _ExpressionBuilder(text, own_name).build(tree)


def point_at(text: str, offset: int, message: str) -> str:
    """Return the message with the line of the offset and a caret below it."""
    start = text.rfind("\n", 0, offset) + 1
    line = text[start:].split("\n", 1)[0]
    return f"{message}\n  {line}\n  {' ' * (offset - start)}^"


def list_names(expression: Expression) -> tuple[str, ...]:
    """Return the names of the attributes, each once, from left to right."""
    match expression:
        case Name(name):
            return (name,)
        case Call(args=args):
            return tuple(dict.fromkeys(chain.from_iterable(map(list_names, args))))
    return ()


@cache
def _load_parser() -> Lark:
    from lark import Lark

    return Lark(_GRAMMAR, parser="lalr", propagate_positions=True, maybe_placeholders=False)


def _find_offset(problem: Any, text: str) -> int:
    token = getattr(problem, "token", None)
    if token is not None and token.type == "$END":
        return len(text)
    position = getattr(problem, "pos_in_stream", None)
    return len(text) if position is None else int(position)


def _explain_error(problem: Any) -> str:
    # Of all tokens that the grammar expects, the kind of part that is missing is enough for a person.
    token = getattr(problem, "token", None)
    wants = set(getattr(problem, "accepts", None) or getattr(problem, "expected", None) or ())
    expected = "a value" if "NUMBER" in wants else "an operator or `)`" if "RPAR" in wants else "an operator or the end"
    if token is None:
        actual = f"the character `{problem.char}`" if hasattr(problem, "char") else "something else"
        return f"expected {expected}, not {actual}"
    return f"expected {expected}, but the expression ends" if token.type == "$END" else f"expected {expected}"


@dataclass(frozen=True, slots=True)
class _ExpressionBuilder:
    """Builds the expression of Lark's parse tree of a text."""

    text: str
    own_name: Callable[[str], str]

    def build(self, tree: Any, depth: int = 0) -> Expression:
        offset = tree.meta.start_pos
        if depth > DEEPEST:
            raise self._build_error(offset, f"the expression nests deeper than {DEEPEST} levels")
        parts = tree.children
        # By the rules and aliases (`-> call`) of `_GRAMMAR`.
        match tree.data:
            case "number":
                return Constant(self._parse_number(str(parts[0]), offset), offset)
            case "text":
                return Constant(_unquote(str(parts[0])), offset)
            case "name" if len(parts) == 1 and parts[0].lower() == "now":
                return Now(offset)
            case "name":
                return Name(self.own_name(".".join(word.strip("`") for word in parts)), offset)
            case "group":
                return self.build(parts[0], depth + 1)
            case "minus":
                return Call("unary -", (self.build(parts[0], depth + 1),), offset)
            case "call":
                left, sign, right = parts
                return Call(str(sign), (self.build(left, depth + 1), self.build(right, depth + 1)), sign.start_pos)
        return Call(parts[0].lower(), tuple(self.build(part, depth + 1) for part in parts[1:]), offset)

    def _parse_number(self, digits: str, offset: int) -> int | float:
        value = int(digits) if digits.isdecimal() else float(digits)
        if abs(value) > 2**63 - 1 if isinstance(value, int) else value == float("inf"):
            raise self._build_error(offset, "the number is out of range")
        return value

    def _build_error(self, offset: int, message: str) -> OntologyError:
        return OntologyError(point_at(self.text, offset, message))


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), text[1:-1], flags=re.DOTALL)
