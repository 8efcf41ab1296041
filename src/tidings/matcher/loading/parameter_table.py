"""Subscriptions in columns: a table with a column for each parameter, in the manner of the URL notation.

`make` is equality or, as a list, a set; `price_from` and `price_to` are the closed ends of one range,
`price_above` and `price_below` its open ones; `spot_within` is an area in WKT. A null asks nothing. What a row
means is said here, one row at a time; `matcher.bulk` does the same for whole columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tidings.concepts import Vocabulary
from tidings.errors import FilterError, Mistake, TidingsError
from tidings.lang.filters import literals
from tidings.model import Filter, InNetworks, Kind, Range, Test, Within, all_of, one_of
from tidings.model.events import is_arrow

if TYPE_CHECKING:
    import pyarrow as pa

    from tidings.concepts import Ontology
    from tidings.model import Condition, Schema
    from tidings.model.areas import Area


class Says(StrEnum):
    """What a column says of its attribute; the value is the ending of the column's name."""

    IS = ""
    FROM = "_from"
    ABOVE = "_above"
    TO = "_to"
    BELOW = "_below"
    WITHIN = "_within"


LOW, HIGH = (Says.FROM, Says.ABOVE), (Says.TO, Says.BELOW)
"""The ends of a range: closed, open."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One test that a row may ask, and the columns that say what: one, or the ends of a range."""

    attribute: str
    columns: dict[Says, str]

    @property
    def ranged(self) -> bool:
        """Whether it is a range."""
        return not self.columns.keys() & {Says.IS, Says.WITHIN}


def in_parameters(table: Any) -> bool:
    """Tell whether this is an Arrow table of parameters; other things of Arrow's, such as arrays, have no columns."""
    return is_arrow(table) and hasattr(table, "column") and hasattr(table, "schema") and named(table.schema.names)


def named(names: Sequence[str]) -> bool:
    """Tell whether columns of these names are parameters: there is `id` and more, but no `filter`."""
    return "id" in names and "filter" not in names and len(names) > 1


def asked_of(names: Sequence[str], schema: Schema | None) -> list[Asked]:
    """Read the names of columns: the tests in the order of the first column of each.

    >>> [(one.attribute, one.ranged) for one in asked_of(["id", "make", "price_from", "price_to"], None)]
    [('make', False), ('price', True)]
    """
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        msg = f"the table of subscriptions has the column `{twice}` twice"
        raise TidingsError(msg)
    declared = set(schema or ())
    found: dict[tuple[str, str], Asked] = {}
    for name in names:
        if name == "id":
            continue
        says = next(
            (one for one in Says if one and name.endswith(one) and name != one and name not in declared), Says.IS
        )
        attribute = name.removesuffix(says)
        group = "range" if says in (*LOW, *HIGH) else says
        found.setdefault((attribute, group), Asked(attribute, {})).columns[says] = name
    return list(found.values())


class ParameterRows(Sequence[Filter]):
    """The filters of a table of parameters; each is made when it is asked for, and then may be refused."""

    def __init__(self, table: pa.Table, asked: Sequence[Asked], kinds: Mapping[str, Kind | None]) -> None:
        """Take the table as it is; `kinds` are those that are declared, of attributes that are."""
        self._table, self._asked, self._kinds = table, asked, kinds

    def __len__(self) -> int:
        """Count the rows."""
        return int(self._table.num_rows)

    def __getitem__(self, at: Any) -> Any:
        """Return the filter of a row, or raise what is wrong with it."""
        found = next(ParameterRows(self._table.slice(at, 1), self._asked, self._kinds).made())
        if isinstance(found, TidingsError):
            raise found
        return found

    def __iter__(self) -> Iterator[Filter]:
        """Yield the filters of all rows; made together, they take a fraction of the time."""
        for found in self.made():
            if isinstance(found, TidingsError):
                raise found
            yield found

    def made(self) -> Iterator[Filter | TidingsError]:
        """Yield the filter of each row, or what is wrong with it."""
        cells = {name: _cells(self._table.column(name)) for name in self._table.column_names if name != "id"}
        kinds = [self._kinds.get(one.attribute) for one in self._asked]
        groups = [
            (one, kind, [(says, cells[name]) for says, name in one.columns.items()])
            for one, kind in zip(self._asked, kinds, strict=True)
        ]
        for at in range(self._table.num_rows):
            try:
                yield all_of(
                    [
                        _test(one, kind, said)
                        for one, kind, columns in groups
                        if (said := {says: column[at] for says, column in columns if column[at] is not None})
                    ]
                )
            except TidingsError as problem:
                yield problem


def declared_kinds(asked: Sequence[Asked], schema: Schema | None, ontology: Ontology) -> dict[str, Kind | None]:
    """Return the kinds that a schema or an ontology declares of the attributes, by the names in the table."""
    vocabulary = Vocabulary(schema, ontology)
    found = {one.attribute: vocabulary.find_attribute(ontology.attribute(one.attribute)) for one in asked}
    return {name: attribute.kind if attribute is not None else None for name, attribute in found.items()}


def _test(asked: Asked, kind: Kind | None, said: dict[Says, Any]) -> Test:
    try:
        return Test(asked.attribute, _condition(kind, said))
    except ValueError as problem:
        mistake = Mistake(f"`{asked.attribute}`: {problem}")
        raise FilterError(mistake.message, mistakes=(mistake,), text=None) from problem


def _condition(kind: Kind | None, said: dict[Says, Any]) -> Condition:
    if Says.WITHIN in said:
        return Within(area_of_text(said[Says.WITHIN]))
    if Says.IS in said:
        return _set(said[Says.IS], kind)
    low, low_open = _end(said, LOW, kind)
    high, high_open = _end(said, HIGH, kind)
    return Range(low, high, low_open=low_open, high_open=high_open)


def _set(given: Any, kind: Kind | None) -> Condition:
    values = [_value(one, kind) for one in (given if isinstance(given, list) else [given])]
    if not values:
        msg = "the set has no values; leave it null where nothing is asked"
        raise ValueError(msg)
    return InNetworks(tuple(values)) if hasattr(values[0], "prefixlen") else one_of(values)


def _end(said: dict[Says, Any], ends: tuple[Says, Says], kind: Kind | None) -> tuple[Any, bool]:
    there = [says for says in ends if says in said]
    if len(there) > 1:
        msg = f"the row has `{ends[0]}` and `{ends[1]}`, two {'low' if ends is LOW else 'high'} ends of one range"
        raise ValueError(msg)
    return (_value(said[there[0]], kind), there[0] == ends[1]) if there else (None, False)


def _value(given: Any, kind: Kind | None) -> Any:
    """Return a value as a filter has it; text takes the declared kind, as in the URL notation."""
    if given is None:
        msg = "the set has a null among its values"
        raise ValueError(msg)
    if isinstance(given, _Beyond):
        raise ValueError(given.reason)
    if not isinstance(given, str):
        return given
    match kind:
        case Kind.TIME:
            return literals.parse_moment(given)
        case Kind.IP:
            return literals.parse_network(given)
        case Kind.BOOL if given in ("true", "false"):
            return given == "true"
        case Kind.NUMBER | Kind.BOOL:
            if kind is Kind.NUMBER and literals.NUMBER.fullmatch(given):
                return literals.parse_number(given)
            msg = f"`{given}` is not {kind}"
            raise ValueError(msg)
    return given


@lru_cache(maxsize=65536)
def area_of_text(text: Any) -> Area:
    """Return the area that WKT says; the same object for the same text, while it is remembered."""
    if not isinstance(text, str):
        msg = f"an area is text such as POLYGON((lon lat, ...)), not {text!r}"
        raise ValueError(msg)
    return literals.parse_polygon(text)


# Cells -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Beyond:
    """A cell that Python cannot hold."""

    reason: str


def _cells(column: Any) -> list[Any]:
    """Return a column as Python has it: times in microseconds, small floats as floats."""
    column = column.cast(readable(column.type), safe=False)
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError, ArithmeticError):
        return [_cell(column[at]) for at in range(len(column))]


def _cell(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError, ArithmeticError) as problem:
        return _Beyond(f"{problem}")


def readable(kind: pa.DataType) -> pa.DataType:
    """Return the type that cells of this type are read as, or refuse it."""
    import pyarrow as pa
    import pyarrow.types as t

    if t.is_dictionary(kind):
        return readable(kind.value_type)
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        if t.is_nested(kind.value_type):
            raise TypeError(f"Arrow's `{kind}`")  # noqa: EM102 - said to no user as it is
        return pa.large_list(readable(kind.value_type))
    if t.is_timestamp(kind):
        return pa.timestamp("us" if kind.unit == "ns" else kind.unit, "UTC" if kind.tz else None)
    if t.is_date(kind):
        return pa.date32()
    if t.is_floating(kind):
        return pa.float64()
    if t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind):
        return pa.large_string()
    if t.is_integer(kind) or t.is_boolean(kind) or t.is_null(kind):
        return kind
    msg = f"Arrow's `{kind}`"
    raise TypeError(msg)


def check_types(table: pa.Table) -> None:
    """Refuse columns whose values no filter can name."""
    for field in table.schema:
        try:
            readable(field.type)
        except TypeError as problem:
            if field.name != "id":
                msg = f"the column `{field.name}` is {problem}; a parameter is a number, text, truth, time, or a list"
                raise TidingsError(msg) from None
