"""Statements that are compiled once: SQLAlchemy writes the SQL, the driver runs it.

SQLAlchemy's own execution costs more than a row of SQLite does. So a statement of its Core is compiled for a dialect
when it is first used; from then on it is a text, and names in the order in which the text wants its values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Insert, bindparam

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Column, Table
    from sqlalchemy.engine import Dialect
    from sqlalchemy.sql import Executable
    from sqlalchemy.sql.elements import BindParameter


@dataclass(frozen=True, slots=True)
class PreparedText:
    """SQL, the names of its values in their order, and the values that are part of the statement itself."""

    sql: str
    names: tuple[str, ...]
    constants: Mapping[str, Any]
    table: str | None  # that an INSERT is into

    def bind(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return values in the order in which the SQL wants them."""
        constants = self.constants
        return tuple([values[name] if name in values else constants[name] for name in self.names])


class StatementCache:
    """Statements of one dialect, by the statement itself."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._texts: dict[Executable, PreparedText] = {}

    def get(self, statement: Executable) -> PreparedText:
        """Return the text of a statement, which is one of a module's constants."""
        text = self._texts.get(statement)
        return text if text is not None else self._prepare(statement)

    def _prepare(self, statement: Executable) -> PreparedText:
        compiled: Any = statement.compile(dialect=self._dialect)  # type: ignore[attr-defined]
        values = {name: value for name, value in compiled.params.items() if value is not None}
        table = statement.table.name if isinstance(statement, Insert) else None
        text = PreparedText(compiled.string, tuple(compiled.positiontup or ()), values, table)
        self._texts[statement] = text
        return text


def bind_columns(columns: Iterable[Column[Any]]) -> dict[str, BindParameter[Any]]:
    """Return a parameter for each column, of its name and type: the values of an INSERT."""
    return {column.name: bindparam(column.name, type_=column.type) for column in columns}


def make_insert(table: Table, *, without: Iterable[str] = ()) -> Any:
    """Return the INSERT of a row of a table; its values are in the order of the columns."""
    columns = [column for column in table.c if column.name not in without]
    return table.insert().values(bind_columns(columns)).inline()


def bind(column: Column[Any], name: str | None = None) -> BindParameter[Any]:
    """Return a parameter of a column's type; in an UPDATE its name must not be that of a column."""
    return bindparam(name or column.name, type_=column.type)
