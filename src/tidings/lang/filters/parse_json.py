"""JSON notation: the tree itself, as `filter.schema.json` publishes it.

A test is an object with `attr`, `op` and what the operator needs; `and`, `or` and `not` hold filters;
`true` and `false` stand for themselves. `jsonwrite` is the way back.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tidings.concepts import did_you_mean
from tidings.errors import BadRegion, Mistake
from tidings.lang.diagnostics import MAX_DEPTH, check_length, refused, too_deep
from tidings.lang.filters import literals
from tidings.lang.filters.source_spans import Spot, Spots
from tidings.model import (
    FALSE,
    TRUE,
    Age,
    And,
    Compare,
    Comparison,
    Exists,
    Has,
    InNetworks,
    Is,
    IsA,
    IsNull,
    Near,
    Not,
    Point,
    Quantifier,
    Quantity,
    Range,
    SameText,
    Test,
    TextOp,
    TextTest,
    Within,
    WithinRegion,
    all_of,
    any_of,
    area_of,
    one_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.model import Area, Condition, Filter


def parse_json(source: Any) -> tuple[Filter, Spots]:
    """Return the filter of a JSON text or a decoded object, and where its tests stand."""
    if isinstance(source, str | bytes):
        source = _decoded(source)
    reader = _Reader()
    built = reader.filter(source, "$", 0)
    return built, reader.spots


def _decoded(source: str | bytes) -> Any:
    try:
        text = source.decode() if isinstance(source, bytes) else source
        check_length(text)
        return json.loads(text, parse_constant=refuse_constant)
    except json.JSONDecodeError as problem:
        mistake = Mistake(f"not JSON: {problem.msg}", problem.pos, problem.pos + 1)
        raise refused([mistake], str(source)) from None
    except RecursionError:
        raise refused([too_deep(path="$")], None) from None
    except (UnicodeDecodeError, ValueError) as problem:
        if hasattr(problem, "mistakes"):
            raise
        raise refused([Mistake(f"not JSON: {problem}")], None) from None


def refuse_constant(name: str) -> Any:
    """Refuse the NaN and infinities that Python's JSON reader would let in."""
    msg = f"{name} is not a finite number"
    raise ValueError(msg)


_TURNED = ((None, "none"), ("all", "none"), ("none", "all"))


class _Reader:
    """Builds filters top-down; a part that cannot be one is noted, and a stand-in goes on."""

    def __init__(self) -> None:
        self.spots = Spots()

    def filter(self, node: Any, path: str, depth: int) -> Filter:
        if depth > MAX_DEPTH:
            return self._refuse(too_deep().message, path)
        if isinstance(node, bool):
            return TRUE if node else FALSE
        if not isinstance(node, dict):
            expected = "an object with `and`, `or`, `not` or `attr`, or true or false"
            return self._refuse(f"expected a filter: {expected}", path)
        if "attr" in node:
            return self._test(node, path, depth)
        if len(node) == 1:
            return self._connective(node, path, depth)
        return self._refuse("expected exactly one of `and`, `or`, `not`, or a test with `attr` and `op`", path)

    def _connective(self, node: dict[str, Any], path: str, depth: int) -> Filter:
        ((word, inner),) = node.items()
        if word == "not":
            return Not(self.filter(inner, f"{path}.not", depth + 1))
        if word not in ("and", "or"):
            return self._refuse(f"unknown key `{word}`{did_you_mean(str(word), ('and', 'or', 'not', 'attr'))}", path)
        if not isinstance(inner, list):
            return self._refuse(f"`{word}` holds a list of filters", f"{path}.{word}")
        parts = [self.filter(part, f"{path}.{word}[{i}]", depth + 1) for i, part in enumerate(inner)]
        return all_of(parts) if word == "and" else any_of(parts)

    def _test(self, node: dict[str, Any], path: str, depth: int) -> Filter:
        fields = dict(node)
        attribute, op = fields.pop("attr"), fields.pop("op", None)
        quantifier = fields.pop("quantifier", None)
        if op == "has":
            inner = self.filter(fields.pop("filter", None), f"{path}.filter", depth + 1)
            return self._made(path, attribute, quantifier, lambda: _only(fields, Has(inner)))
        if op == "!=":
            return self._unequal(fields, path, attribute, quantifier)
        if not isinstance(op, str) or op not in _READERS:
            known = [*_READERS, "!=", "has"]
            near = did_you_mean(op, known) if isinstance(op, str) else f"; one of {', '.join(known)}"
            return self._refuse(f"unknown operator {_said(op)}{near}", f"{path}.op")
        return self._made(path, attribute, quantifier, lambda: _only(fields, _READERS[op](op, fields)))

    def _unequal(self, fields: dict[str, Any], path: str, attribute: Any, quantifier: Any) -> Filter:
        """`!=` as the text notation reads it: about the attribute, or with a quantifier about its values."""
        if quantifier == "any":
            every = self._made(path, attribute, "all", lambda: _only(fields, _comparison("=", fields)))
            return And((self._made(path, attribute, None, Exists), Not(every)))
        turned = next((to for given, to in _TURNED if quantifier == given), quantifier)
        return self._made(path, attribute, turned, lambda: _only(fields, _comparison("=", fields)))

    def _made(self, path: str, attribute: Any, quantifier: Any, make: Callable[[], Condition]) -> Filter:
        try:
            if not isinstance(attribute, str):
                msg = "`attr` is an attribute's name"
                raise ValueError(msg)
            made = Test(attribute, make(), _quantifier(quantifier))
        except (ValueError, BadRegion) as problem:
            return self._refuse(str(problem), path)
        self.spots.note(made, Spot(path=path))
        return made

    def _refuse(self, message: str, path: str) -> Filter:
        self.spots.mistakes.append(Mistake(message, path=path))
        return TRUE


def _quantifier(word: Any) -> Quantifier:
    try:
        return Quantifier("any" if word is None else word)
    except ValueError:
        msg = f"unknown quantifier {_said(word)}; one of any, all, none"
        raise ValueError(msg) from None


def _said(value: Any) -> str:
    """Show a wrong value as JSON writes it; a decoded object may hold what JSON cannot write at all."""
    try:
        return json.dumps(value)[:60]
    except (TypeError, ValueError, RecursionError):
        return f"a {type(value).__name__}"


def _only(fields: dict[str, Any], condition: Condition) -> Condition:
    """Refuse what the operator did not ask for: a misspelt key must not vanish."""
    if fields:
        msg = f"unknown key `{next(iter(fields))}` beside this operator"
        raise ValueError(msg)
    return condition


def _take(fields: dict[str, Any], key: str, *kinds: type) -> Any:
    if key not in fields:
        msg = f"this operator needs `{key}`"
        raise ValueError(msg)
    value = fields.pop(key)
    if type(value) not in kinds:
        wanted = " or ".join(dict.fromkeys(_KIND_WORDS[kind] for kind in kinds))
        msg = f"`{key}` is {_said(value)}; expected {wanted}"
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


def _flag(fields: dict[str, Any], key: str) -> bool:
    return bool(_take(fields, key, bool)) if key in fields else False


def _scalar(value: Any) -> Any:
    """Read a scalar: as it is, or an object for a time, a quantity or a place."""
    match value:
        case bool() | int() | float() | str():
            return value
        case {"time": str(text), **rest} if not rest:
            return literals.moment(text)
        case {"number": (int() | float()) as amount, "unit": str(unit), **rest} if not rest:
            return Quantity(amount, unit)
        case {"lon": (int() | float()) as lon, "lat": (int() | float()) as lat, **rest} if not rest:
            return Point(lon, lat)
    forms = '{"time": ...}, {"number": ..., "unit": ...} or {"lon": ..., "lat": ...}'
    msg = f"a value is a number, text, true, false, {forms}"
    raise ValueError(msg)


def _value(fields: dict[str, Any], key: str = "value") -> Any:
    return _scalar(_take(fields, key, str, int, float, bool, dict))


def _comparison(op: str, fields: dict[str, Any]) -> Condition:
    if "other" in fields:
        return Compare(Comparison(op), _take(fields, "other", str))
    value = _value(fields)
    if "ignoring_case" in fields and op == "=" and _flag(fields, "ignoring_case"):
        return SameText((value,))
    match op:
        case "=":
            return Is(value)
        case "<" | "<=":
            return Range(high=value, high_open=op == "<")
        case _:
            return Range(low=value, low_open=op == ">")


def _range(_: str, fields: dict[str, Any]) -> Range:
    ends = [_value(fields, key) if fields.get(key) is not None else fields.pop(key, None) for key in ("low", "high")]
    return Range(ends[0], ends[1], _flag(fields, "low_open"), _flag(fields, "high_open"))


def _age(op: str, fields: dict[str, Any]) -> Age:
    for key in ("low", "high"):
        if isinstance(fields.get(key), bool | str | dict | list):
            msg = "an age is given in seconds"
            raise ValueError(msg)
    return Age(_range(op, fields))


def _in(_: str, fields: dict[str, Any]) -> Condition:
    values = _take(fields, "values", list)
    if not values:
        msg = "a set needs at least one value"
        raise ValueError(msg)
    scalars = [_scalar(value) for value in values]
    return SameText(tuple(scalars)) if _flag(fields, "ignoring_case") else one_of(scalars)


def _text(op: str, fields: dict[str, Any]) -> TextTest:
    return TextTest(TextOp(op), _take(fields, "value", str), _flag(fields, "ignoring_case"))


def _within(_: str, fields: dict[str, Any]) -> Condition:
    if "region" in fields:
        return WithinRegion(_take(fields, "region", str))
    geometry = _take(fields, "geometry", dict)
    match geometry:
        case {"type": "Polygon", "coordinates": list(rings)}:
            return Within(_area([rings]))
        case {"type": "MultiPolygon", "coordinates": list(polygons)}:
            return Within(_area(polygons))
    msg = "`geometry` is a GeoJSON Polygon or MultiPolygon"
    raise ValueError(msg)


def _area(polygons: Any) -> Area:
    try:
        return area_of(polygons)
    except TypeError:
        msg = "`coordinates` is not nested as GeoJSON nests it"
        raise ValueError(msg) from None


def _near(_: str, fields: dict[str, Any]) -> Near:
    lon, lat = _take(fields, "lon", int, float), _take(fields, "lat", int, float)
    return Near(Point(lon, lat), _take(fields, "metres", int, float))


def _networks(_: str, fields: dict[str, Any]) -> InNetworks:
    blocks = _take(fields, "networks", list)
    if not all(isinstance(block, str) for block in blocks):
        msg = "`networks` is a list of addresses and blocks as text"
        raise ValueError(msg)
    return InNetworks(tuple(literals.network(block) for block in blocks))


_READERS: dict[str, Callable[[str, dict[str, Any]], Condition]] = {
    **dict.fromkeys(("=", "<", "<=", ">", ">="), _comparison),
    "range": _range,
    "in": _in,
    **dict.fromkeys(tuple(op.value for op in TextOp), _text),
    "is a": lambda _, fields: IsA(_take(fields, "value", str)),
    "within": _within,
    "near": _near,
    "in networks": _networks,
    "age": _age,
    "exists": lambda _, __: Exists(),
    "is null": lambda _, __: IsNull(),
}
