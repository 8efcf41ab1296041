"""A parsed settings file and its mistakes: pydantic's, in our words, and those that later checks add.

The file is validated as one dataclass, that of its `FileKeys`. Where pydantic refuses something, the refused keys are
left out and the rest is validated again, so that checks between tables see everything that is good. A key that was
refused still counts as present, so that no mistake is reported that only follows from another one.
"""

from __future__ import annotations

import copy
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import TypeAdapter, ValidationError

from tidings.concepts import did_you_mean, find_nearest
from tidings.concepts.text_files import read_text
from tidings.configuration.environment import Variables
from tidings.configuration.keys import FileKeys, summarize_key
from tidings.configuration.value_kinds import FileContext, WrongValue, name_type
from tidings.errors import BadSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pydantic_core import ErrorDetails

TomlPath: TypeAlias = tuple[str | int, ...]
"""Names of tables and keys, and numbers within arrays of tables: `("sink", 0, "path")`."""


@dataclass(frozen=True, slots=True)
class FileMistake:
    """Something wrong with a settings file: what it is about, and a message that names it."""

    path: TomlPath
    text: str

    def __str__(self) -> str:
        return self.text


def read_settings(
    path: Path, keys: FileKeys, environ: Mapping[str, str], *, error: type[BadSettings] = BadSettings
) -> FileReading:
    """Parse a settings file; one that cannot be opened is a `FileError`, one that is not TOML an `error`."""
    text = read_text(path)
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise build_error(path, (f"it is not TOML: {problem}",), error) from None
    return FileReading(keys, raw, text, FileContext(path.parent, Variables(environ)))


def build_error(path: Path, mistakes: tuple[str, ...], error: type[BadSettings] = BadSettings) -> BadSettings:
    """Return the error that lists the mistakes of a file."""
    count = "a mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
    return error("\n".join((f"`{path.name}` has {count}:", *mistakes)), mistakes=mistakes)


class FileReading:
    """A parsed file, the mistakes found so far, and which keys the file has."""

    def __init__(self, keys: FileKeys, raw: dict[str, Any], text: str, context: FileContext) -> None:
        self.keys, self.raw, self.context = keys, raw, context
        self.mistakes: list[FileMistake] = []
        self._text = text
        self.unusable: set[str | int] = set()  # tables with a key or value that was refused
        self._intended: set[TomlPath] = set()  # keys that a misspelled one probably means

    # What the file has ---------------------------------------------------------------------------

    def get(self, path: TomlPath) -> Any:
        """Return the raw value at a path, or None."""
        value: Any = self.raw
        for name in path:
            if isinstance(value, dict):
                value = value.get(name)
            else:
                value = value[name] if isinstance(value, list) and isinstance(name, int) else None
        return value

    def lacks(self, path: TomlPath) -> bool:
        """Tell whether a key is missing from a table that can be read; one with a wrong value is not missing."""
        table = self.get(path[:-1])
        return isinstance(table, dict) and path[-1] not in table and path not in self._intended

    def is_good(self, path: TomlPath) -> bool:
        """Tell whether the file has the key, and nothing was said against it."""
        return self.get(path) is not None and not any(mistake.path == path for mistake in self.mistakes)

    # Mistakes ------------------------------------------------------------------------------------

    def label_table(self, path: TomlPath) -> str:
        """Return how messages name a table: `[source]`, `[[sink]] 2:`, `[sink.options] 2:`, nothing for the top."""
        names = [name for name in path if isinstance(name, str)]
        numbers = [f" {number + 1}:" for number in path if isinstance(number, int) and len(self.get(path[:1])) > 1]
        label = f"[{'.'.join(names)}]" if names else ""
        return (f"[{label}]" if len(path) == 2 and len(names) == 1 else label) + "".join(numbers)

    def refuse_key(self, path: TomlPath, text: str, *, table: str | None = None) -> None:
        """Add a mistake about a key; `table` replaces the usual name of its table."""
        label = self.label_table(path[:-1]) if table is None else table
        self.unusable.add(path[0])
        self.mistakes.append(FileMistake(path, f"{label} `{path[-1]}` {text}".lstrip()))

    def refuse_table(self, path: TomlPath, text: str, *, label: str | None = None) -> None:
        """Add a mistake about a table as a whole, whose keys may be good."""
        self.mistakes.append(FileMistake(path, f"{label or self.label_table(path)} {text}"))

    def render(self, mistakes: list[FileMistake]) -> tuple[str, ...]:
        """Return messages, each prefixed with the line number of its key, or of its table."""
        return tuple(
            f"line {line}: {mistake}" if (line := self.find_line(mistake)) else str(mistake) for mistake in mistakes
        )

    def find_line(self, mistake: FileMistake) -> int:
        """Return the line of the key that a mistake is about, or else of its table; 0 where the file has neither."""
        names = list(map(str, mistake.path))
        lines = (self._lines.get(".".join(names[:end])) for end in range(len(names), 0, -1))
        return next(filter(None, lines), 0)

    @cached_property
    def _lines(self) -> dict[str, int]:
        return find_lines(self._text)

    # Validation ----------------------------------------------------------------------------------

    def validate(self) -> Any:
        """Return the settings of the file without its refused keys; `mistakes` has what was refused."""
        adapter, rest = TypeAdapter(self.keys.settings), copy.deepcopy(self.raw)
        while True:
            try:
                return adapter.validate_python(rest, context=self.context)
            except ValidationError as error:
                problems = error.errors(include_url=False, include_input=False)
            if not self.mistakes:
                self._add_problems(problems)
            for problem in problems:
                self._leave_out(rest, problem)

    def _add_problems(self, problems: list[ErrorDetails]) -> None:
        # Unknown keys first: one of them may be meant for a key that is missing.
        for problem in sorted(problems, key=lambda problem: problem["type"] != "unexpected_keyword_argument"):
            path: TomlPath = problem["loc"]
            self.unusable.add(path[0])
            match problem["type"]:
                case "unexpected_keyword_argument":
                    self._add_unknown(path)
                case "missing" if path not in self._intended:
                    key = self.keys.list(path[0] if len(path) > 1 else None)[str(path[-1])]
                    refuse = self.refuse_table if path[0] in self.keys.sections and len(path) == 1 else self.refuse_key
                    refuse(path, f"is missing: {summarize_key(key)}")
                case "dataclass_type" | "dict_type" | "mapping_type":
                    self.refuse_table(path, f"must be a table, not {name_type(self.get(path))}")
                case "tuple_type":
                    name, value = path[0], self.get(path)
                    text = (
                        f"written [[{name}]], since there may be several"
                        if isinstance(value, dict)
                        else name_type(value)
                    )
                    self.refuse_table(path, f"is {text}")
                case "value_error":
                    wrong: WrongValue = problem["ctx"]["error"]
                    for setting, text in wrong.mistakes:
                        self.refuse_key((*path, setting) if setting else path, text)

    def _add_unknown(self, path: TomlPath) -> None:
        name, value = str(path[-1]), self.get(path)
        items = value if isinstance(value, list) else [value]
        if len(path) == 1 and any(isinstance(item, dict) for item in items):
            hint = did_you_mean(name, self.keys.sections) or f"; the tables are {', '.join(self.keys.sections)}"
            self.refuse_table(path, f"is not a table of {self.keys.noun}{hint}")
            return
        keys = self.keys.top if len(path) == 1 else tuple(self.keys.list(path[0]))
        hint = did_you_mean(name, keys) or f"; the keys are {', '.join(keys)}"
        if len(path) > 1 and name in self.keys.top:
            hint = " of this table; it stands at the top of the file, before the first table"
        self.refuse_key(path, f"is not a key{hint}")
        self._intended.add((*path[:-1], find_nearest(name, keys) or name))

    def _leave_out(self, raw: dict[str, Any], problem: ErrorDetails) -> None:
        """Take what was refused out of the file; what must be there is None, or an empty table."""
        *parents, last = problem["loc"]
        table: Any = raw
        for name in parents:
            table = table[name]
        missing = problem["type"] == "missing"
        if problem["type"] == "dataclass_type" or (missing and not parents and last in self.keys.sections):
            table[last] = {}
        elif missing:
            table[last] = None
        else:
            del table[last]


# Lines -------------------------------------------------------------------------------------------


def find_lines(text: str) -> dict[str, int]:
    r"""Return the line of each key and table, by its dotted path; tables of an array are numbered from 0.

    `tomllib` does not tell lines. So the text, which must be valid, is cut into statements (a header, or a key with
    its value), and each is parsed by itself. A statement may span lines, within brackets or a multi-line string; a part
    that ends within such a value is never valid, so lines are added until it parses. Cost: one parse for each line.

    >>> find_lines('name = "x"\n[[sink]]\nkind = "json"\n[sink.options]\na = 1\n')
    {'name': 1, 'sink': 2, 'sink.0': 2, 'sink.0.kind': 3, 'sink.0.options': 4, 'sink.0.options.a': 5}
    """
    lines: dict[str, int] = {}
    counts: dict[str, int] = {}  # tables of each array so far
    table = ""
    for number, statement, content in _split_statements(text):
        paths = list(_list_paths(content))
        if not statement.startswith("["):
            for path in paths:
                lines.setdefault(f"{table}.{path}" if table else path, number)
            continue
        is_array = statement.startswith("[[")
        table = _enter_arrays(paths[-1].removesuffix(".0") if is_array else paths[-1], counts)
        lines.setdefault(table, number)
        if is_array:
            counts[table] = counts.get(table, 0) + 1
            table = f"{table}.{counts[table] - 1}"
            lines[table] = number
    return lines


def _split_statements(text: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield the number of each statement's first line, its text and its content."""
    statement, first = "", 1
    for number, line in enumerate(text.split("\n"), start=1):
        statement += line + "\n"
        with suppress(tomllib.TOMLDecodeError):
            content = tomllib.loads(statement)
            yield first, statement.lstrip(), content
            statement, first = "", number + 1


def _list_paths(value: object, path: str = "") -> Iterator[str]:
    """Yield the dotted paths of all keys and tables within a parsed value, outer ones first."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        if isinstance(value, dict) or isinstance(inner, dict):
            yield f"{path}{name}"
            yield from _list_paths(inner, f"{path}{name}.")


def _enter_arrays(table: str, counts: dict[str, int]) -> str:
    """Return the path of a header with the number of the current table after each array on the way."""
    path = ""
    for name in table.split("."):
        if path in counts:
            path += f".{counts[path] - 1}"
        path += f".{name}" if path else name
    return path
