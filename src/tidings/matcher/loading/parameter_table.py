"""Subscriptions in columns: a table with a column for each parameter, in the manner of the URL notation.

`make` is equality or, as a list, a set; `price_from` and `price_to` are the closed ends of one range,
`price_above` and `price_below` its open ones; `spot_within` is an area in WKT. A null asks nothing. This module defines
the meaning of a row, one row at a time; `matcher.loading.bulk_load` does the same for whole columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tidings.errors import FilterError, Mistake, TidingsError
from tidings.lang.filters import value_text
from tidings.model import Filter, InNetworks, Kind, Range, Test, Within, all_of, one_of
from tidings.model.arrow_types import is_arrow, is_list_type, is_text_type, limit_timestamp, to_values
from tidings.model.values import Unreadable

if TYPE_CHECKING:
    import pyarrow as pa

    from tidings.concepts import Vocabulary
    from tidings.model import Condition, Schema
    from tidings.model.areas import Area


class ColumnRole(StrEnum):
    """What a column is for its attribute; the value is the ending of the column's name."""

    EQUAL = ""
    FROM = "_from"
    ABOVE = "_above"
    TO = "_to"
    BELOW = "_below"
    WITHIN = "_within"


LOW, HIGH = (ColumnRole.FROM, ColumnRole.ABOVE), (ColumnRole.TO, ColumnRole.BELOW)
"""The ends of a range: closed, open."""


@dataclass(frozen=True, slots=True)
class TableParameter:
    """One test that a row may have, and its columns by their roles: one, or the ends of a range."""

    attribute: str
    columns: dict[ColumnRole, str]

    @property
    def is_range(self) -> bool:
        """Whether it is a range."""
        return not self.columns.keys() & {ColumnRole.EQUAL, ColumnRole.WITHIN}


def is_parameter_table(table: Any) -> bool:
    """Tell whether this is an Arrow table of parameters; other things of Arrow's, such as arrays, have no columns."""
    has_columns = is_arrow(table) and hasattr(table, "column") and hasattr(table, "schema")
    return has_columns and has_parameters(table.schema.names)


def has_parameters(names: Sequence[str]) -> bool:
    """Tell whether columns of these names are parameters: there is `id` and more, but no `filter`."""
    return "id" in names and "filter" not in names and len(names) > 1


def parse_column_names(names: Sequence[str], schema: Schema | None) -> list[TableParameter]:
    """Return the parameters that columns of these names make up, in the order of the first column of each.

    >>> [(test.attribute, test.is_range) for test in parse_column_names(["id", "make", "price_from", "price_to"], None)]
    [('make', False), ('price', True)]
    """
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        msg = f"the table of subscriptions has the column `{repeated}` twice"
        raise TidingsError(msg)
    attributes = set(schema or ())
    parameters: dict[tuple[str, str], TableParameter] = {}
    for name in names:
        if name == "id":
            continue
        roles = (
            role for role in ColumnRole if role and name.endswith(role) and name != role and name not in attributes
        )
        role = next(roles, ColumnRole.EQUAL)
        attribute = name.removesuffix(role)
        group = "range" if role in (*LOW, *HIGH) else role
        parameters.setdefault((attribute, group), TableParameter(attribute, {})).columns[role] = name
    return list(parameters.values())


class ParameterRows(Sequence[Filter]):
    """The filters of a table of parameters; each is made when it is read, and may be refused only then."""

    def __init__(self, table: pa.Table, parameters: Sequence[TableParameter], kinds: Mapping[str, Kind | None]) -> None:
        """Keep the table; `kinds` are the declared kinds of attributes."""
        self._table, self._parameters, self._kinds = table, parameters, kinds

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __getitem__(self, row: Any) -> Any:
        """Return the filter of a row, or raise what is wrong with it."""
        return next(iter(ParameterRows(self._table.slice(row, 1), self._parameters, self._kinds)))

    def __iter__(self) -> Iterator[Filter]:
        """Yield the filters of all rows; made together, they take a fraction of the time."""
        for tree in self.parse_rows():
            if isinstance(tree, TidingsError):
                raise tree
            yield tree

    def parse_rows(self) -> Iterator[Filter | TidingsError]:
        """Yield the filter of each row, or what is wrong with it."""
        columns = {name: self._table.column(name) for name in self._table.column_names if name != "id"}
        values_of = {
            name: to_values(column.cast(to_value_type(column.type), safe=False)) for name, column in columns.items()
        }
        kinds = [self._kinds.get(parameter.attribute) for parameter in self._parameters]
        groups = [
            (parameter.attribute, kind, [(role, values_of[name]) for role, name in parameter.columns.items()])
            for parameter, kind in zip(self._parameters, kinds, strict=True)
        ]
        for row in range(self._table.num_rows):
            try:
                yield all_of(
                    [
                        _make_test(attribute, kind, values)
                        for attribute, kind, columns in groups
                        if (values := {role: column[row] for role, column in columns if column[row] is not None})
                    ]
                )
            except TidingsError as problem:
                yield problem


def find_kinds(parameters: Sequence[TableParameter], vocabulary: Vocabulary) -> dict[str, Kind | None]:
    """Return the declared kinds of the attributes, by their names in the table."""
    canonical = vocabulary.concepts.attribute
    names = {parameter.attribute for parameter in parameters}
    attributes = {name: vocabulary.find_attribute(canonical(name)) for name in names}
    return {name: attribute.kind if attribute is not None else None for name, attribute in attributes.items()}


def _make_test(attribute: str, kind: Kind | None, values: dict[ColumnRole, Any]) -> Test:
    try:
        return Test(attribute, _make_condition(kind, values))
    except ValueError as problem:
        mistake = Mistake(f"`{attribute}`: {problem}")
        raise FilterError(mistake.message, mistakes=(mistake,), text=None) from problem


def _make_condition(kind: Kind | None, values: dict[ColumnRole, Any]) -> Condition:
    if ColumnRole.WITHIN in values:
        return Within(parse_area(values[ColumnRole.WITHIN]))
    if ColumnRole.EQUAL in values:
        return _make_set(values[ColumnRole.EQUAL], kind)
    low, low_open = _find_end(values, LOW, kind)
    high, high_open = _find_end(values, HIGH, kind)
    return Range(low, high, low_open=low_open, high_open=high_open)


def _make_set(value: Any, kind: Kind | None) -> Condition:
    values = [_to_literal(element, kind) for element in (value if isinstance(value, list) else [value])]
    if not values:
        msg = "the set has no values; leave it null where nothing is asked"
        raise ValueError(msg)
    return InNetworks(tuple(values)) if hasattr(values[0], "prefixlen") else one_of(values)


def _find_end(
    values: dict[ColumnRole, Any], ends: tuple[ColumnRole, ColumnRole], kind: Kind | None
) -> tuple[Any, bool]:
    """Return one end of a range, and whether it is open; None where there is none."""
    roles = [role for role in ends if role in values]
    if len(roles) > 1:
        msg = f"the row has `{ends[0]}` and `{ends[1]}`, two {'low' if ends is LOW else 'high'} ends of one range"
        raise ValueError(msg)
    return (_to_literal(values[roles[0]], kind), roles[0] == ends[1]) if roles else (None, False)


def _to_literal(value: Any, kind: Kind | None) -> Any:
    """Return a value as a filter has it; text takes the declared kind, as in the URL notation."""
    if value is None:
        msg = "the set has a null among its values"
        raise ValueError(msg)
    if isinstance(value, Unreadable):
        raise ValueError(value.reason)
    if not isinstance(value, str):
        return value
    match kind:
        case Kind.TIME:
            return value_text.parse_moment(value)
        case Kind.IP:
            return value_text.parse_network(value)
        case Kind.BOOL if value in ("true", "false"):
            return value == "true"
        case Kind.NUMBER | Kind.BOOL:
            if kind is Kind.NUMBER and value_text.NUMBER.fullmatch(value):
                return value_text.parse_number(value)
            msg = f"`{value}` is not {kind}"
            raise ValueError(msg)
    return value


@lru_cache(maxsize=65536)
def parse_area(text: Any) -> Area:
    """Return the area of a WKT text; the same object for the same text, while it is in the cache."""
    if not isinstance(text, str):
        msg = f"an area is text such as POLYGON((lon lat, ...)), not {text!r}"
        raise ValueError(msg)
    return value_text.parse_polygon(text)


# Cells -----------------------------------------------------------------------------------------


def to_value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that cells of this type are read as; what no filter can name raises `TypeError`."""
    import pyarrow as pa
    import pyarrow.types as t

    if t.is_dictionary(kind):
        return to_value_type(kind.value_type)
    if is_list_type(kind):
        if t.is_nested(kind.value_type):
            raise TypeError(f"Arrow's `{kind}`")  # noqa: EM102 - completed by `check_types`
        return pa.large_list(to_value_type(kind.value_type))
    if t.is_timestamp(kind):
        return limit_timestamp(kind)
    if t.is_date(kind):
        return pa.date32()
    if t.is_floating(kind):
        return pa.float64()
    if is_text_type(kind):
        return pa.large_string()
    if t.is_integer(kind) or t.is_boolean(kind) or t.is_null(kind):
        return kind
    msg = f"Arrow's `{kind}`"
    raise TypeError(msg)


def check_types(table: pa.Table) -> None:
    """Refuse columns whose values no filter can name."""
    for field in table.schema:
        try:
            to_value_type(field.type)
        except TypeError as problem:
            if field.name != "id":
                msg = f"the column `{field.name}` is {problem}; a parameter is a number, text, truth, time, or a list"
                raise TidingsError(msg) from None
