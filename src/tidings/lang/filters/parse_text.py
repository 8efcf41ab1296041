"""Text notation by its grammar.

Lark's LALR parser reads the language of `grammar.lark`. When it stops at a mistake, the predicate around the position
is replaced by a hole and the text is parsed again, so that several mistakes are reported together: one parse for
each mistake, at most `MAX_MISTAKES`. Typical saved searches never come here: `fast_text` reads them.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from lark import Lark
from lark.exceptions import UnexpectedEOF, UnexpectedInput, UnexpectedToken

from tidings.errors import FilterError, Mistake
from tidings.lang.diagnostics import MAX_DEPTH, MAX_MISTAKES, build_error, check_length, make_depth_mistake
from tidings.lang.filters.expected_tokens import explain_error
from tidings.lang.filters.render_text import RESERVED
from tidings.lang.filters.tree_builder import FilterBuilder
from tidings.model import TRUE

if TYPE_CHECKING:
    from lark import Tree

    from tidings.lang.source_map import SourceMap
    from tidings.model import Filter

HOLE = "\x00"
"""Replaces a mistaken predicate while the rest is parsed; the grammar reads it as true."""

_PIECE = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`|(?:\#|--)[^\n]*|[^\W\d][\w.]*|[()]|.""", re.DOTALL
)
_JOINTS = {"and", "or", "(", ")"}


def parse_text(text: str, *, stored: bool = False) -> tuple[Filter, SourceMap]:
    """Return the filter and the positions of its tests; the mistakes are in `source_map.mistakes`.

    A `stored` filter was accepted before: it is read with the meaning it had then.
    """
    check_length(text, FilterError)
    if deep := _find_too_deep(text):
        raise build_error(FilterError, [make_depth_mistake(deep)], text)
    builder = FilterBuilder(stored=stored)
    tree = _parse_with_recovery(text, builder.source_map.mistakes)
    built = builder.transform(tree) if tree is not None else TRUE
    return built, builder.source_map


@cache
def load_grammar() -> Lark:
    """Return the parser of `grammar.lark`, built once for the process."""
    source = files("tidings.lang.filters").joinpath("grammar.lark").read_text(encoding="utf-8")
    source = source.replace("(KEYWORDS)", f"({'|'.join(sorted(RESERVED))})")
    return Lark(source, parser="lalr", lexer="contextual", propagate_positions=True)


def _parse_with_recovery(text: str, mistakes: list[Mistake]) -> Tree[Any] | None:
    """Parse; at each mistake note it, blank the predicate around it, and parse again."""
    if HOLE in text:
        mistakes.append(Mistake("a NUL character cannot stand here; inside quotes write \\u0000", text.index(HOLE)))
        return None
    patched = text
    while len(mistakes) < MAX_MISTAKES:
        try:
            return load_grammar().parse(patched)
        except UnexpectedInput as problem:
            offset, end = _find_span(problem, patched)
            if patched[offset : offset + 1] == HOLE:  # a consequence of an earlier mistake
                return None
            offset, end = min(offset, len(text.rstrip())), min(end, len(text.rstrip()) + 1)
            mistakes.append(Mistake(explain_error(problem, text, offset), offset, end))
            before, patched = patched, _replace_predicate(patched, offset)
            if before == patched:
                return None
    return None


def _find_span(problem: UnexpectedInput, text: str) -> tuple[int, int]:
    if isinstance(problem, UnexpectedToken) and problem.token.type != "$END":
        return int(problem.token.start_pos or 0), int(problem.token.end_pos or 0)
    if isinstance(problem, UnexpectedEOF | UnexpectedToken):
        return len(text.rstrip()), len(text.rstrip()) + 1
    offset = int(getattr(problem, "pos_in_stream", None) or 0)
    word = re.compile(r"\w*").match(text, offset)
    return offset, max(offset + 1, word.end() if word else 0)


def _replace_predicate(text: str, offset: int) -> str:
    """Replace the text between the nearest `and`, `or` or parentheses on both sides of an offset by a hole."""
    pieces = [(m.start(), m.end(), m[0].lower()) for m in _PIECE.finditer(text)]
    if offset >= len(text.rstrip()) and (left_open := _count_open(pieces, offset)) > 0 and not _lacks_operand(pieces):
        return text + ")" * left_open
    begin = max((end for _, end, word in pieces if word in _JOINTS and end <= offset), default=0)
    after = [start for start, _, word in pieces if word in _JOINTS and start >= max(offset, begin)]
    stop = min(after, default=len(text))
    if text[stop : stop + 1] == ")" and _count_open(pieces, stop) == 0:  # closes nothing: part of the mistake
        stop += 1
    if stop <= begin or text[begin:stop].strip() in ("", HOLE):
        return text
    # The hole comes last: an end of the text that the parser reports stays the end.
    return text[:begin] + HOLE.rjust(stop - begin) + text[stop:]


def _lacks_operand(pieces: list[tuple[int, int, str]]) -> bool:
    """Tell whether the last word needs an operand: then the operand is missing, not a parenthesis."""
    words = [word for _, _, word in pieces if word.strip()]
    return not words or words[-1] in _JOINTS - {")"} or not (words[-1][-1].isalnum() or words[-1][-1] in "'\"`)]_")


def _count_open(pieces: list[tuple[int, int, str]], offset: int) -> int:
    return sum((word == "(") - (word == ")") for start, _, word in pieces if start < offset)


def _find_too_deep(text: str) -> int | None:
    """Return the position where open parentheses and `not`s nest deeper than `MAX_DEPTH`, if they do."""
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
