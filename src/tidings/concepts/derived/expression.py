"""The notation of derived attributes: `year(now) - graduated`, `concat(first, ' ', last)`.

Numbers, 'text', `now`, attributes (dotted; in backticks where they hold other characters or are called
`now`), `+ - * /`, parentheses and the functions of `functions.py`. Parsing gives a small frozen tree that
remembers where each part stands, so that every mistake can point at its place. Lark is loaded when the
first expression is parsed; evaluating needs none of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from tidings.errors import OntologyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lark import Lark

LONGEST = 2000
"""Characters an expression may have."""

DEEPEST = 50
"""How deep its parts may nest."""

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
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Now:
    """The time at which the event is looked at."""

    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Name:
    """An attribute's value."""

    name: str
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function, or an operator as one, of its arguments."""

    function: str
    args: tuple[Expression, ...]
    at: int = field(default=0, compare=False)


Expression: TypeAlias = Constant | Now | Name | Call


def parse(text: str) -> Expression:
    """Parse an expression; a mistake is an `OntologyError` that points at its place."""
    from lark.exceptions import UnexpectedInput

    if len(text) > LONGEST:
        msg = f"the expression has {len(text):,} characters; at most {LONGEST:,} are read"
        raise OntologyError(msg)
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as problem:
        raise OntologyError(point_at(text, _offset(problem, text), _complaint(problem))) from None
    return _build(tree, text, 0)


def point_at(text: str, at: int, message: str) -> str:
    """Return the message with the line it speaks of and a caret below the place."""
    start = text.rfind("\n", 0, at) + 1
    line = text[start:].split("\n", 1)[0]
    return f"{message}\n  {line}\n  {' ' * (at - start)}^"


def iterate_names(expression: Expression) -> Iterator[Name]:
    """Yield the attributes, from left to right."""
    match expression:
        case Name():
            yield expression
        case Call(args=args):
            for part in args:
                yield from iterate_names(part)


def rename_attributes(expression: Expression, called: Callable[[str], str]) -> Expression:
    """Return the expression with every attribute by the name `called` gives it."""
    match expression:
        case Name(name, at):
            return Name(called(name), at)
        case Call(function, args, at):
            return Call(function, tuple(rename_attributes(part, called) for part in args), at)
    return expression


@cache
def _parser() -> Lark:
    from lark import Lark

    return Lark(_GRAMMAR, parser="lalr", propagate_positions=True, maybe_placeholders=False)


def _offset(problem: Any, text: str) -> int:
    token = getattr(problem, "token", None)
    if token is not None and token.type == "$END":
        return len(text)
    position = getattr(problem, "pos_in_stream", None)
    return len(text) if position is None else int(position)


def _complaint(problem: Any) -> str:
    token = getattr(problem, "token", None)
    wants = set(getattr(problem, "accepts", None) or getattr(problem, "expected", None) or ())
    expected = "a value" if "NUMBER" in wants else "an operator or `)`" if "RPAR" in wants else "an operator or the end"
    if token is None:
        actual = f"the character `{problem.char}`" if hasattr(problem, "char") else "something else"
        return f"expected {expected}, not {actual}"
    return f"expected {expected}, but the expression ends" if token.type == "$END" else f"expected {expected}"


def _build(tree: Any, text: str, depth: int) -> Expression:
    """Turn Lark's tree into ours."""
    at = tree.meta.start_pos
    if depth > DEEPEST:
        msg = f"the expression nests deeper than {DEEPEST} levels"
        raise OntologyError(point_at(text, at, msg))
    match tree.data:
        case "number":
            return Constant(_number(str(tree.children[0]), text, at), at)
        case "text":
            return Constant(_unquote(str(tree.children[0])), at)
        case "name":
            words = [str(word).strip("`") for word in tree.children]
            return Now(at) if str(tree.children[0]).lower() == "now" and len(words) == 1 else Name(".".join(words), at)
        case "group":
            return _build(tree.children[0], text, depth + 1)
        case "minus":
            return Call("unary -", (_build(tree.children[0], text, depth + 1),), at)
        case "call":
            left, sign, right = tree.children
            args = (_build(left, text, depth + 1), _build(right, text, depth + 1))
            return Call(str(sign), args, sign.start_pos)
    word, *args = tree.children
    return Call(word.lower(), tuple(_build(part, text, depth + 1) for part in args), at)


def _number(digits: str, text: str, at: int) -> int | float:
    value = int(digits) if digits.isdecimal() else float(digits)
    if abs(value) > 2**63 - 1 if isinstance(value, int) else value == float("inf"):
        raise OntologyError(point_at(text, at, "the number is out of range"))
    return value


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), text[1:-1], flags=re.DOTALL)
