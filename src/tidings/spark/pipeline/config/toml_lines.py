"""The line of every key and table in a TOML text, which `tomllib` does not tell.

The text is cut into statements (a header, or a key with its value) and each is parsed by itself. A statement may span
lines, within brackets or a multi-line string. A part that ends within such a value is never valid TOML, so lines are
added until the statement parses. The text as a whole must be valid. Cost: one parse for each line.
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def find_lines(text: str) -> dict[str, int]:
    r"""Return the line of each key and table, by its dotted path; tables of an array are numbered from 0.

    >>> find_lines('name = "x"\n[[sink]]\nkind = "json"\n[sink.options]\na = 1\n')
    {'name': 1, 'sink': 2, 'sink.0': 2, 'sink.0.kind': 3, 'sink.0.options': 4, 'sink.0.options.a': 5}
    """
    lines: dict[str, int] = {}
    counts: dict[str, int] = {}  # tables of each array so far
    table = ""
    for number, statement in _split_statements(text):
        paths = list(_list_paths(tomllib.loads(statement)))
        if not statement.lstrip().startswith("["):
            for path in paths:
                lines.setdefault(f"{table}.{path}" if table else path, number)
            continue
        is_array = statement.lstrip().startswith("[[")
        table = _enter_arrays(paths[-1].removesuffix(".0") if is_array else paths[-1], counts)
        lines.setdefault(table, number)
        if is_array:
            counts[table] = counts.get(table, 0) + 1
            table = f"{table}.{counts[table] - 1}"
            lines[table] = number
    return lines


def _split_statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield each statement with the number of its first line."""
    statement, first = "", 1
    for number, line in enumerate(text.split("\n"), start=1):
        if not statement:
            first = number
        statement += line + "\n"
        try:
            tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        yield first, statement
        statement = ""


def _list_paths(value: Any, path: str = "") -> Iterator[str]:
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
