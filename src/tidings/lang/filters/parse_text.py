"""Text notation: the grammar, and what it builds.

Lark's LALR parser reads `grammar.lark`. When it stops at a mistake, the predicate around the place is
blanked out with a hole and the rest is read again, so that several mistakes are reported together.
Typical saved searches never come here: `lang.fast` reads them and leaves the rest to the grammar.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from lark import Lark
from lark.exceptions import UnexpectedEOF, UnexpectedInput, UnexpectedToken

from tidings.errors import Mistake
from tidings.lang.diagnostics import MAX_DEPTH, MAX_MISTAKES, check_length, refused, too_deep
from tidings.lang.filters.expected_tokens import explained
from tidings.lang.filters.render_text import RESERVED
from tidings.lang.filters.tree_builder import Builder
from tidings.model import TRUE

if TYPE_CHECKING:
    from lark import Tree

    from tidings.lang.filters.source_spans import Spots
    from tidings.model import Filter

HOLE = "\x00"
"""Stands where a mistaken predicate was, while the rest is read."""

_PIECE = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`|(?:\#|--)[^\n]*|[^\W\d][\w.]*|[()]|.""", re.DOTALL
)
_JOINTS = {"and", "or", "(", ")"}


def parse_text(text: str, *, stored: bool = False) -> tuple[Filter, Spots]:
    """Return the filter and where each of its tests stands; `spots.mistakes` are what was wrong with it.

    What is `stored` was accepted before, and means what it meant then.
    """
    check_length(text)
    if deep := _first_too_deep(text):
        raise refused([too_deep(deep)], text)
    builder = Builder(stored=stored)
    tree = _read(text, builder.spots.mistakes)
    built = builder.transform(tree) if tree is not None else TRUE
    return built, builder.spots


@cache
def _grammar() -> Lark:
    source = files("tidings.lang.filters").joinpath("grammar.lark").read_text(encoding="utf-8")
    source = source.replace("(KEYWORDS)", f"({'|'.join(sorted(RESERVED))})")
    return Lark(source, parser="lalr", lexer="contextual", propagate_positions=True)


def _read(text: str, mistakes: list[Mistake]) -> Tree[Any] | None:
    """Parse; at each mistake note it, blank the predicate it is in, and parse again."""
    if HOLE in text:
        mistakes.append(Mistake("a NUL character cannot stand here; inside quotes write \\u0000", text.index(HOLE)))
        return None
    patched = text
    while len(mistakes) < MAX_MISTAKES:
        try:
            return _grammar().parse(patched)
        except UnexpectedInput as problem:
            at, end = _place(problem, patched)
            if patched[at : at + 1] == HOLE:  # what follows from an earlier mistake is not another one
                return None
            at, end = min(at, len(text.rstrip())), min(end, len(text.rstrip()) + 1)
            mistakes.append(Mistake(explained(problem, text, at), at, end))
            before, patched = patched, _patched(patched, at)
            if before == patched:
                return None
    return None


def _place(problem: UnexpectedInput, text: str) -> tuple[int, int]:
    if isinstance(problem, UnexpectedToken) and problem.token.type != "$END":
        return int(problem.token.start_pos or 0), int(problem.token.end_pos or 0)
    if isinstance(problem, UnexpectedEOF | UnexpectedToken):
        return len(text.rstrip()), len(text.rstrip()) + 1
    at = int(getattr(problem, "pos_in_stream", None) or 0)
    word = re.compile(r"\w*").match(text, at)
    return at, max(at + 1, word.end() if word else 0)


def _patched(text: str, at: int) -> str:
    """Put a hole in place of everything between the joints (`and`, `or`, parentheses) around the place."""
    pieces = [(m.start(), m.end(), m[0].lower()) for m in _PIECE.finditer(text)]
    if at >= len(text.rstrip()) and (left_open := _level(pieces, at)) > 0 and not _ends_open(pieces):
        return text + ")" * left_open
    begin = max((end for _, end, word in pieces if word in _JOINTS and end <= at), default=0)
    stop = min((start for start, _, word in pieces if word in _JOINTS and start >= max(at, begin)), default=len(text))
    if text[stop : stop + 1] == ")" and _level(pieces, stop) == 0:  # it closes nothing: part of the mistake
        stop += 1
    if stop <= begin or text[begin:stop].strip() in ("", HOLE):
        return text
    return text[:begin] + HOLE.center(stop - begin) + text[stop:]


def _ends_open(pieces: list[tuple[int, int, str]]) -> bool:
    """Tell whether the last word still waits for something: then that, not a parenthesis, is missing."""
    words = [word for _, _, word in pieces if word.strip()]
    return not words or words[-1] in _JOINTS - {")"} or not (words[-1][-1].isalnum() or words[-1][-1] in "'\"`)]_")


def _level(pieces: list[tuple[int, int, str]], at: int) -> int:
    return sum((word == "(") - (word == ")") for start, _, word in pieces if start < at)


def _first_too_deep(text: str) -> int | None:
    """Return the place where nesting passes the limit: open parentheses and the `not`s before them."""
    if text.count("(") + len(re.findall("not", text, re.IGNORECASE)) <= MAX_DEPTH:
        return None
    open_nots, level = [0], 0
    for piece in _PIECE.finditer(text):
        word = piece[0].lower()
        if word == "not":
            open_nots[-1] += 1
            level += 1
        elif word == "(":
            open_nots.append(0)
            level += 1
        elif word == ")" and len(open_nots) > 1:
            level -= 1 + open_nots.pop()
        elif word in ("and", "or"):
            level -= open_nots[-1]
            open_nots[-1] = 0
        if level > MAX_DEPTH:
            return piece.start()
    return None
