"""Files of patterns: blocks that begin with `pattern NAME`, or JSON lines.

A block is `pattern NAME [mode MODE] [limit N]` and then the pattern's text. Every mistake of a file is reported
together, with its line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidings.concepts import Vocabulary, did_you_mean
from tidings.errors import Mistake, PatternError
from tidings.lang.diagnostics import build_error, decode_json
from tidings.lang.filters import value_text
from tidings.lang.filters.ambiguities import issue_warnings, shift_warnings
from tidings.lang.filters.render_text import RESERVED
from tidings.lang.patterns.notations import read_pattern, render_pattern
from tidings.model.patterns import Mode, Pattern

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.concepts import Ontology, Regions
    from tidings.errors import FilterWarning
    from tidings.model import Schema

_PLAIN = re.compile(r"[\w.-]+")
_LINE = re.compile(r"^(?![^\S\n]*(?:#|--|$))[^\n]+", re.MULTILINE)  # one that is neither empty nor a comment
# Not before a keyword: `pattern like 'x'` is a filter over an attribute called `pattern`.
_HEAD = re.compile(
    rf"^[ \t]*pattern[ \t]+(?!(?:{'|'.join(sorted(RESERVED))}|for)\b(?![.-]))(?=[\w`'\".-])(?P<rest>[^\n]*)",
    re.MULTILINE | re.IGNORECASE,
)
_WORD = re.compile(r"(?P<quoted>`(?:[^`\\]|\\.)+`)|(?P<comment>#.*|--.*)|(?P<plain>[\w.-]+)|(?P<other>\S)")
_MODES = tuple(mode.value for mode in Mode)


@dataclass(frozen=True, slots=True)
class WrittenPattern:
    """A pattern of a file: its name, its mode (which matches it reports) and its limit of matches for one event."""

    name: str
    pattern: Pattern
    mode: Mode = Mode.RESTART
    limit: int | None = None

    def __post_init__(self) -> None:
        """Refuse a limit in a mode other than `any`, the only one that may report many matches for one event."""
        if self.limit is not None and self.mode is not Mode.ANY:
            msg = f"`limit` goes with mode any, and `{self.name}` has mode {self.mode}"
            raise PatternError(msg)
        if self.limit is not None and self.limit < 1:
            msg = "a limit is 1 or more"
            raise PatternError(msg)


def read_patterns(
    text: str, *, schema: Schema | None = None, ontology: Ontology | None = None, regions: Regions | None = None
) -> list[WrittenPattern]:
    r"""Read a file's text: blocks, or JSON lines; `PatternError` reports every mistake with its line.

    >>> [found] = read_patterns("pattern twice mode overlap\n  a = kind = 'a'\n  a ; x:a")
    >>> found.name, found.mode.value
    ('twice', 'overlap')
    """
    reader = _PatternFileReader(text, Vocabulary.of(schema, ontology, regions))
    patterns = reader.read_json_lines() if re.match(r"(\s|(#|--)[^\n]*\n)*\{", text) else reader.read_blocks()
    if reader.mistakes:
        raise build_error(PatternError, reader.mistakes, text)
    issue_warnings(reader.filter_warnings)
    return [pattern for pattern in patterns if pattern is not None]


class _PatternFileReader:
    """Reads one file; collects its mistakes and warnings with positions in the file."""

    def __init__(self, text: str, vocabulary: Vocabulary) -> None:
        self._text, self._vocabulary = text, vocabulary
        self._names: set[str] = set()
        self.mistakes: list[Mistake] = []
        self.filter_warnings: list[FilterWarning] = []

    # Blocks -----------------------------------------------------------------------------------------

    def read_blocks(self) -> list[WrittenPattern | None]:
        heads = [*_HEAD.finditer(self._text)]
        ends = [*(head.start() for head in heads), len(self._text)]
        if line := _LINE.search(self._text[: ends[0]]):
            self._refuse("a pattern in a file begins with a line `pattern NAME`", *line.span())
        return [self._read_block(head, end) for head, end in zip(heads, ends[1:], strict=True)]

    def _read_block(self, head: re.Match[str], end: int) -> WrittenPattern | None:
        count = len(self.mistakes)
        name, mode, limit = self._read_header(head)
        body = self._text[head.end() : end]
        try:
            filter_warnings: list[FilterWarning] = []
            pattern = read_pattern(body, self._vocabulary, warnings=filter_warnings)
            self.filter_warnings += shift_warnings(filter_warnings, head.end(), self._text)
        except PatternError as problem:
            self._add_mistakes(problem, head.end())
        return None if len(self.mistakes) > count else WrittenPattern(name, pattern, mode, limit)

    def _read_header(self, head: re.Match[str]) -> tuple[str, Mode, int | None]:
        start = head.start("rest")
        words = [word for word in _WORD.finditer(head["rest"]) if word.lastgroup != "comment"]
        first = words[0] if words else None
        if first is None or first.lastgroup == "other":
            self._refuse("a pattern's name is a word, or stands in backticks: `pattern brute-force`", start, head.end())
            return "", Mode.RESTART, None
        span, name = (start + first.start(), start + first.end()), first[0]
        try:
            name = value_text.unquote(name) if first.lastgroup == "quoted" else name
        except ValueError as problem:
            self._refuse(str(problem), *span)
        self._add_name(name, *span)
        return name, *self._read_options(words[1:], start)

    def _read_options(self, words: list[re.Match[str]], start: int) -> tuple[Mode, int | None]:
        options: dict[str, str] = {}
        for key, value in zip(words[::2], [*words[1::2], None], strict=False):
            word = key[0].lower()
            if word not in ("mode", "limit") or value is None or word in options:
                message = f"expected `mode MODE` or `limit N` once, found `{key[0]}`"
                self._refuse(message, start + key.start(), start + key.end())
                return Mode.RESTART, None
            options[word] = value[0].lower()
        where = (start, start + words[-1].end()) if words else (start, start)
        return self._check_options(options.get("mode", "restart"), options.get("limit"), where)

    def _check_options(self, mode: Any, limit: Any, where: tuple[int, int]) -> tuple[Mode, int | None]:
        if mode not in _MODES:
            near = did_you_mean(str(mode), _MODES) or f"; one of {', '.join(_MODES)}"
            self._refuse(f"unknown mode `{mode}`{near}", *where)
            return Mode.RESTART, None
        number = int(limit) if re.fullmatch(r"[1-9]\d{0,17}", str(limit)) else None
        if limit is not None and number is None:
            self._refuse(f"a limit is a whole number from 1 on, not `{limit}`", *where)
        elif number is not None and mode != Mode.ANY:
            self._refuse(f"`limit` goes with mode any, not with mode {mode}", *where)
            number = None
        return Mode(mode), number

    # JSON lines -------------------------------------------------------------------------------------

    def read_json_lines(self) -> list[WrittenPattern | None]:
        return [self._read_json_line(line[0], line.start()) for line in _LINE.finditer(self._text)]

    def _read_json_line(self, line: str, start: int) -> WrittenPattern | None:
        count, where = len(self.mistakes), (start, start + len(line))
        try:
            node = decode_json(line, PatternError)
        except PatternError as problem:
            self._add_mistakes(problem, start)
            return None
        if not isinstance(node, dict) or not {"name", "pattern"} <= node.keys() <= {"name", "pattern", "mode", "limit"}:
            self._refuse("a line is an object with `name` and `pattern`, and perhaps `mode` and `limit`", *where)
            return None
        name = node["name"]
        if not isinstance(name, str) or not name:
            self._refuse("`name` is text", *where)
        else:
            self._add_name(name, *where)
        mode, limit = self._check_options(node.get("mode", "restart"), node.get("limit"), where)
        pattern = self._parse_pattern(node["pattern"], start)
        return None if len(self.mistakes) > count or pattern is None else WrittenPattern(name, pattern, mode, limit)

    def _parse_pattern(self, node: Any, start: int) -> Pattern | None:
        notation = "text" if isinstance(node, str) else "json"
        try:
            return read_pattern(node, self._vocabulary, notation=notation, warnings=self.filter_warnings)
        except PatternError as problem:
            for mistake in problem.mistakes:
                path, offset = f"$.pattern{(mistake.path or '$')[1:]}", mistake.start or 0
                if notation == "text":
                    line, column = node.count("\n", 0, offset) + 1, offset - node.rfind("\n", 0, offset)
                    path = f"$.pattern, line {line}, column {column}"
                self.mistakes.append(Mistake(f"line {self._find_line(start)}: {mistake.message}", path=path))
            return None

    # Mistakes ---------------------------------------------------------------------------------------

    def _add_name(self, name: str, start: int, end: int) -> None:
        if name in self._names:
            self._refuse(f"two patterns are called `{name}`", start, end)
        self._names.add(name)

    def _find_line(self, offset: int) -> int:
        return self._text.count("\n", 0, offset) + 1

    def _refuse(self, message: str, start: int, end: int) -> None:
        self.mistakes.append(Mistake(f"line {self._find_line(start)}: {message}", start, end))

    def _add_mistakes(self, problem: PatternError, offset: int) -> None:
        """Add the mistakes of a part of the file, which begins at `offset`."""
        for mistake in problem.mistakes:
            start = offset + (mistake.start or 0)
            message = f"line {self._find_line(start)}: {mistake.message}"
            self.mistakes.append(replace(mistake.shift(offset), message=message, start=start))


def render_patterns(patterns: Iterable[WrittenPattern]) -> str:
    r"""Write a file of blocks that `read_patterns` reads back as the same patterns.

    >>> text = "pattern twice\n  a = kind = 'a'\n  a ; x:a\n"
    >>> render_patterns(read_patterns(text)) == text
    True
    """
    return "\n".join(map(_render_block, patterns))


def _render_block(written: WrittenPattern) -> str:
    name = written.name if _PLAIN.fullmatch(written.name) else value_text.quote(written.name, "`")
    mode = "" if written.mode is Mode.RESTART else f" mode {written.mode}"
    limit = "" if written.limit is None else f" limit {written.limit}"
    body = "\n".join(f"  {line}" for line in render_pattern(written.pattern).split("\n"))
    return f"pattern {name}{mode}{limit}\n{body}\n"
