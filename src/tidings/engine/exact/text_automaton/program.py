"""Text tests as wildcard programs: runs of plain bytes with gaps between them.

A program is UTF-8 with bytes that UTF-8 never uses: `ONE` for any character, `MANY` for any number of them, and `GAP`
for something that only RE2 can decide. It must fit the whole text, so `contains 'a'` is MANY a MANY. A text must have
every run of plain bytes; the scan looks for one of them and tries the program only then.

Expressions are parsed with caution: plain characters, dots, anchors, their repetitions and alternatives on the top
level are understood, classes and groups are gaps, and anything else makes the whole expression a gap.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidings.kernels.match import text_automaton as kernel
from tidings.model.text_tests import TextOp, TextTest

ONE, MANY, GAP = bytes([kernel.ONE]), bytes([kernel.MANY]), b"\xfa"
"""Any character; any number of them; something that RE2 must decide."""

_AROUND = {TextOp.STARTS_WITH: (b"", MANY), TextOp.ENDS_WITH: (MANY, b""), TextOp.CONTAINS: (MANY, MANY)}
"""What may stand before and after a plain text. A new operator is a `KeyError` until it is added here."""

_BEGIN, _END = bytes([kernel.BEGIN]), bytes([kernel.END])

_WILDCARD = re.compile(r"[^*?\\]+|\*+|\?|\\(.)|\\", re.DOTALL)

_CLASS = r"\[\^?+\]?+(?:\[:\^?\w+:\]|\\.|[^\]\\])*+\]"
_PLAIN = r"[^\\.^$*+?()\[\]{}|]"

# A run of plain characters stops before the one that a repetition belongs to.
_ATOM = re.compile(
    rf"""(?P<plain>{_PLAIN}+(?![*+?{{]) | {_PLAIN})
    | \\(?P<escaped>[!-/:-@\[-`{{-~])
    | \\(?P<control>[nrt])
    | (?P<any>\.)
    | (?P<begin>\^|\\A)
    | (?P<end>\$|\\z)
    | (?P<gap>\\[dDwWsSbB] | {_CLASS})""",
    re.DOTALL | re.VERBOSE,
)
_REPETITION = re.compile(r"([*+?]|\{[0-9]+(?:,[0-9]*)?\})\??")
_INSIDE_GROUP = re.compile(rf"[^\\()\[]++|\\.|{_CLASS}", re.DOTALL)
_SETS_FLAGS = re.compile(r"\(\?[A-Za-z-]+\)")
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, slots=True)
class TextProgram:
    """What a test requires of the plain or the case-folded text; `decides`: that is all it requires."""

    code: bytes
    folded: bool = False
    decides: bool = True

    @property
    def sketch(self) -> bytes:
        """The program with gaps that any text fills: necessary, where the program does not decide.

        Empty, when it would require no more than that its one run occurs.
        """
        code = self.code.replace(GAP, MANY)
        if self.folded and not self.decides:
            code = code.replace(ONE, MANY)  # one character may be several when case-folded
        inner = code.strip(MANY)
        return code if ONE in inner or MANY in inner else b""

    def list_runs(self) -> list[bytes]:
        """Return the runs that a text must have; at the ends of the program they include marks of the text's ends."""
        parts = re.split(rb"[\xf8-\xfa]", self.code)
        parts[0] = _BEGIN + parts[0]
        parts[-1] += _END
        return [part for part in parts if part not in (b"", _BEGIN, _END)]


UNKNOWN = TextProgram(GAP, decides=False)
"""An expression that requires no literal."""


def compile_programs(test: TextTest) -> list[TextProgram]:
    r"""Return the programs of which a text must fit one; several only for an expression with alternatives.

    >>> from tidings.model.text_tests import TextOp, TextTest
    >>> [program.list_runs() for program in compile_programs(TextTest(TextOp.LIKE, "a*b"))]
    [[b'\xffa', b'b\xfe']]
    """
    if test.op is TextOp.MATCHES:
        return _compile_expression(test.pattern, ignoring_case=test.ignoring_case)
    pattern = test.pattern.casefold() if test.ignoring_case else test.pattern
    if test.op is TextOp.LIKE:
        return [TextProgram(_compile_wildcards(pattern), folded=test.ignoring_case)]
    before, after = _AROUND[test.op]
    return [TextProgram(before + pattern.encode() + after, folded=test.ignoring_case)]


def _compile_wildcards(pattern: str) -> bytes:
    gaps = {"*": MANY, "?": ONE}
    parts = _WILDCARD.finditer(pattern)
    return b"".join(gaps.get(part[0][0]) or (part[1] or part[0]).encode() for part in parts)


def _compile_expression(pattern: str, *, ignoring_case: bool) -> list[TextProgram]:
    if pattern.startswith("(?i)"):
        pattern, ignoring_case = pattern[4:], True
    alternatives = None if r"\Q" in pattern else _split_alternatives(pattern, ignoring_case=ignoring_case)
    if alternatives is None:
        return [UNKNOWN]
    return [_join_parts(parts, ignoring_case=ignoring_case) for parts in alternatives]


def _join_parts(parts: list[bytes], *, ignoring_case: bool) -> TextProgram:
    begins, ends = parts[:1] == [_BEGIN], parts[-1:] == [_END]
    # An anchor in the middle is a gap: it matches no text, but restricts what is around it.
    inner = [GAP if part in (_BEGIN, _END) else part for part in parts[begins : len(parts) - ends]]
    code = b"".join([b"" if begins else MANY, *inner, b"" if ends else MANY])
    # RE2 folds characters one by one, unlike `casefold`: the runs are required, but they do not decide.
    return TextProgram(code, folded=ignoring_case, decides=not ignoring_case and GAP not in code)


def _split_alternatives(pattern: str, *, ignoring_case: bool) -> list[list[bytes]] | None:
    """Return the parts of each alternative, anchors as `_BEGIN` and `_END`; None when unsure."""
    alternatives: list[list[bytes]] = [[]]
    position = 0
    while position < len(pattern):
        if pattern[position] == "|":
            alternatives.append([])
            position += 1
            continue
        atom = _ATOM.match(pattern, position)
        end = atom.end() if atom else _find_group_end(pattern, position)
        if end is None:
            return None
        repetition = _REPETITION.match(pattern, end)
        position = repetition.end() if repetition else end
        anchored = atom is not None and atom.lastgroup in ("begin", "end")
        if pattern[position : position + 1] in ("*", "+", "?", "{") or (anchored and repetition):
            return None
        alternatives[-1].append(_compile_atom(atom, repetition[1] if repetition else "", ignoring_case=ignoring_case))
    return alternatives


def _compile_atom(atom: re.Match[str] | None, times: str, *, ignoring_case: bool) -> bytes:
    """Return the bytes of an atom, or of a group when there is no atom, repeated so many times."""
    match atom.lastgroup if atom else "gap":
        case "begin":
            return _BEGIN
        case "end":
            return _END
        case "any":
            return {"": ONE, "*": MANY, "+": ONE + MANY}.get(times, GAP)
        case "plain" | "escaped" | "control" if times in ("", "+"):
            assert atom is not None
            text = atom["plain"] or atom["escaped"] or _CONTROLS[atom["control"]]
            run = text.encode()
            if ignoring_case:
                run = b"".join(char.casefold().encode() if is_folded_alike(char) else GAP for char in text)
            return run + (GAP if times else b"")
    return GAP


def _find_group_end(pattern: str, position: int) -> int | None:
    """Return the end of the group that begins at `position`; None when none does, or when it sets flags."""
    if pattern[position] != "(" or _SETS_FLAGS.match(pattern, position):
        return None
    depth = 0
    while position < len(pattern):
        if pattern[position] in "()":
            depth += 1 if pattern[position] == "(" else -1
            position += 1
            if depth == 0:
                return position
        elif token := _INSIDE_GROUP.match(pattern, position):
            position = token.end()
        else:
            return None
    return None


def is_folded_alike(char: str) -> bool:
    """Tell whether all characters that RE2 takes for this one, ignoring case, have the same case-folded form.

    So it is in the scripts listed here, letter by letter (the tests look at every character there is). Others
    get new letters with new versions of Unicode, and RE2's version is not Python's.
    """
    return char < "\x80" or "À" <= char <= "ſ" or "Ά" <= char <= "ώ" or "Ѐ" <= char <= "ӿ"
