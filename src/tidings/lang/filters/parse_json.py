"""JSON notation: the tree itself, as `filter.schema.json` publishes it.

A test is an object with `attr`, `op` and what the operator needs; `and`, `or` and `not` hold filters;
`true` and `false` stand for themselves. `render_json` writes the same objects.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tidings import model
from tidings.concepts import did_you_mean
from tidings.errors import FilterError
from tidings.lang.diagnostics import MAX_DEPTH, decode_json, make_depth_mistake
from tidings.lang.filters import value_text
from tidings.lang.source_map import SourceMap, SourceSpan

if TYPE_CHECKING:
    from collections.abc import Callable


def parse_json(source: Any, *, levels: float = MAX_DEPTH) -> tuple[model.Filter, SourceMap]:
    """Return the filter of a JSON text or of its decoded object, and the paths of its tests."""
    if isinstance(source, str | bytes):
        source = decode_json(source, FilterError)
    reader = _JsonReader(levels)
    built = reader.read_filter(source, "$", 0)
    return built, reader.source_map


_UNEQUAL_QUANTIFIERS = ((None, "none"), ("all", "none"), ("none", "all"), ("any", "all"))


class _JsonReader:
    """Reads one filter top-down; a part that cannot be read is noted as a mistake and replaced by `TRUE`."""

    def __init__(self, levels: float) -> None:
        self.source_map, self._levels = SourceMap(), levels

    def read_filter(self, node: Any, path: str, depth: int) -> model.Filter:
        if depth > self._levels:
            return self._refuse(make_depth_mistake().message, path)
        if isinstance(node, bool):
            return model.TRUE if node else model.FALSE
        if not isinstance(node, dict):
            expected = "an object with `and`, `or`, `not` or `attr`, or true or false"
            return self._refuse(f"expected a filter: {expected}", path)
        if "attr" in node:
            return self._read_test(node, path, depth)
        if len(node) == 1:
            return self._read_connective(node, path, depth)
        return self._refuse("expected exactly one of `and`, `or`, `not`, or a test with `attr` and `op`", path)

    def _read_connective(self, node: dict[str, Any], path: str, depth: int) -> model.Filter:
        ((word, inner),) = node.items()
        if word == "not":
            return model.Not(self.read_filter(inner, f"{path}.not", depth + 1))
        if word not in ("and", "or"):
            return self._refuse(f"unknown key `{word}`{did_you_mean(str(word), ('and', 'or', 'not', 'attr'))}", path)
        if not isinstance(inner, list):
            return self._refuse(f"`{word}` holds a list of filters", f"{path}.{word}")
        parts = [self.read_filter(part, f"{path}.{word}[{i}]", depth + 1) for i, part in enumerate(inner)]
        return model.all_of(parts) if word == "and" else model.any_of(parts)

    def _read_test(self, node: dict[str, Any], path: str, depth: int) -> model.Filter:
        fields = dict(node)
        op, quantifier = fields.pop("op", None), fields.pop("quantifier", None)
        if op == "has":
            inner = self.read_filter(fields.pop("filter", None), f"{path}.filter", depth + 1)
            return self._build_test(path, fields, quantifier, lambda: model.Has(inner))
        if op == "!=":
            return self._read_unequal(fields, path, quantifier)
        if not isinstance(op, str) or op not in _READERS:
            operators = [*_READERS, "!=", "has"]
            near = did_you_mean(op, operators) if isinstance(op, str) else f"; one of {', '.join(operators)}"
            return self._refuse(f"unknown operator {_format_value(op)}{near}", f"{path}.op")
        return self._build_test(path, fields, quantifier, lambda: _READERS[op](op, fields))

    def _read_unequal(self, fields: dict[str, Any], path: str, quantifier: Any) -> model.Filter:
        """Read `!=` with the meaning of the text notation: none of the values is equal, unless quantified."""
        some = {"attr": fields["attr"]}
        # A scan, not a dict: a wrong quantifier may be a list, which has no hash.
        opposite = next((to for word, to in _UNEQUAL_QUANTIFIERS if quantifier == word), quantifier)
        equal = self._build_test(path, fields, opposite, lambda: _read_comparison("=", fields))
        if quantifier != "any":
            return equal
        return model.And((self._build_test(path, some, None, model.Exists), model.Not(equal)))

    def _build_test(
        self, path: str, fields: dict[str, Any], quantifier: Any, make: Callable[[], model.Condition]
    ) -> model.Filter:
        """Build a test of the attribute in `fields`, from which `make` takes what its operator needs."""
        attribute = fields.pop("attr")
        try:
            if not isinstance(attribute, str):
                msg = "`attr` is an attribute's name"
                raise ValueError(msg)
            condition = make()
            if fields:  # a misspelt key must not be ignored
                msg = f"unknown key `{next(iter(fields))}` beside this operator"
                raise ValueError(msg)
            test = model.Test(attribute, condition, _read_quantifier(quantifier))
        except ValueError as problem:
            return self._refuse(str(problem), path)
        span = SourceSpan(path=path)
        self.source_map.record(test, span, span)
        return test

    def _refuse(self, message: str, path: str) -> model.Filter:
        self.source_map.refuse(message, SourceSpan(path=path))
        return model.TRUE


def _read_quantifier(word: Any) -> model.Quantifier:
    try:
        return model.Quantifier("any" if word is None else word)
    except ValueError:
        msg = f"unknown quantifier {_format_value(word)}; one of any, all, none"
        raise ValueError(msg) from None


def _format_value(value: Any) -> str:
    """Return a wrong value as JSON for a message; a decoded object may hold values that JSON cannot write."""
    try:
        return json.dumps(value)[:60]
    except (TypeError, ValueError, RecursionError):
        return f"a {type(value).__name__}"


def _take(fields: dict[str, Any], key: str, *kinds: type) -> Any:
    if key not in fields:
        msg = f"this operator needs `{key}`"
        raise ValueError(msg)
    value = fields.pop(key)
    if type(value) not in kinds:
        wanted = " or ".join(dict.fromkeys(_KIND_WORDS[kind] for kind in kinds))
        msg = f"`{key}` is {_format_value(value)}; expected {wanted}"
        raise ValueError(msg)
    return value


_KIND_WORDS = {
    str: "text",
    int: "a number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}


def _take_flag(fields: dict[str, Any], key: str) -> bool:
    return bool(_take(fields, key, bool)) if key in fields else False


def _read_scalar(value: Any) -> Any:
    """Return the scalar that a JSON value stands for: itself, or a time, quantity or point written as an object."""
    match value:
        case bool() | int() | float() | str():
            return value
        case {"time": str(text), **rest} if not rest:
            return value_text.parse_moment(text)
        case {"number": (int() | float()) as amount, "unit": str(unit), **rest} if not rest:
            return model.Quantity(amount, unit)
        case {"lon": (int() | float()) as lon, "lat": (int() | float()) as lat, **rest} if not rest:
            return model.Point(lon, lat)
    forms = '{"time": ...}, {"number": ..., "unit": ...} or {"lon": ..., "lat": ...}'
    msg = f"a value is a number, text, true, false, {forms}"
    raise ValueError(msg)


def _take_value(fields: dict[str, Any], key: str = "value") -> Any:
    return _read_scalar(_take(fields, key, str, int, float, bool, dict))


def _read_comparison(op: str, fields: dict[str, Any]) -> model.Condition:
    if "other" in fields:
        return model.Compare(model.Comparison(op), _take(fields, "other", str))
    value = _take_value(fields)
    if "ignoring_case" in fields and op == "=" and _take_flag(fields, "ignoring_case"):
        return model.SameText((value,))
    return model.Is(value) if op == "=" else value_text.to_range(op, value)


def _read_range(_: str, fields: dict[str, Any]) -> model.Range:
    ends = [
        _take_value(fields, key) if fields.get(key) is not None else fields.pop(key, None) for key in ("low", "high")
    ]
    return model.Range(ends[0], ends[1], _take_flag(fields, "low_open"), _take_flag(fields, "high_open"))


def _read_age(op: str, fields: dict[str, Any]) -> model.Age:
    for key in ("low", "high"):
        if isinstance(fields.get(key), bool | str | dict | list):
            msg = "an age is given in seconds"
            raise ValueError(msg)
    return model.Age(_read_range(op, fields))


def _read_set(_: str, fields: dict[str, Any]) -> model.Condition:
    values = _take(fields, "values", list)
    if not values:
        msg = "a set needs at least one value"
        raise ValueError(msg)
    scalars = [_read_scalar(value) for value in values]
    return model.SameText(tuple(scalars)) if _take_flag(fields, "ignoring_case") else model.one_of(scalars)


def _read_text_test(op: str, fields: dict[str, Any]) -> model.TextTest:
    return model.TextTest(model.TextOp(op), _take(fields, "value", str), _take_flag(fields, "ignoring_case"))


def _read_within(_: str, fields: dict[str, Any]) -> model.Condition:
    if "region" in fields:
        return model.WithinRegion(_take(fields, "region", str))
    match _take(fields, "geometry", dict):
        case {"type": "Polygon", "coordinates": list(rings)}:
            polygons = [rings]
        case {"type": "MultiPolygon", "coordinates": list(polygons)}:
            pass
        case _:
            msg = "`geometry` is a GeoJSON Polygon or MultiPolygon"
            raise ValueError(msg)
    try:
        return model.Within(model.build_area(polygons))
    except TypeError:
        msg = "`coordinates` is not nested as GeoJSON nests it"
        raise ValueError(msg) from None


def _read_near(_: str, fields: dict[str, Any]) -> model.Near:
    lon, lat = _take(fields, "lon", int, float), _take(fields, "lat", int, float)
    return model.Near(model.Point(lon, lat), _take(fields, "metres", int, float))


def _read_networks(_: str, fields: dict[str, Any]) -> model.InNetworks:
    blocks = _take(fields, "networks", list)
    if not all(isinstance(block, str) for block in blocks):
        msg = "`networks` is a list of addresses and blocks as text"
        raise ValueError(msg)
    return model.InNetworks(tuple(value_text.parse_network(block) for block in blocks))


_READERS: dict[str, Callable[[str, dict[str, Any]], model.Condition]] = {
    **dict.fromkeys(("=", "<", "<=", ">", ">="), _read_comparison),
    "range": _read_range,
    "in": _read_set,
    **dict.fromkeys(tuple(op.value for op in model.TextOp), _read_text_test),
    "is a": lambda _, fields: model.IsA(_take(fields, "value", str)),
    "within": _read_within,
    "near": _read_near,
    "in networks": _read_networks,
    "age": _read_age,
    "exists": lambda _, __: model.Exists(),
    "is null": lambda _, __: model.IsNull(),
}
