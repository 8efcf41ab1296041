"""Filters in JSON notation: the object that `parse_json` reads back as the same tree."""

from __future__ import annotations

import json

from tidings import model


def render_json(tree: model.Filter) -> str:
    """Return the filter as JSON text."""
    return json.dumps(to_object(tree), ensure_ascii=False)


def to_object(tree: model.Filter) -> object:
    """Return the filter as the decoded JSON object."""
    match tree:
        case model.And(()):
            return True
        case model.Or(()):
            return False
        case model.And(parts):
            return {"and": [to_object(part) for part in parts]}
        case model.Or(parts):
            return {"or": [to_object(part) for part in parts]}
        case model.Not(part):
            return {"not": to_object(part)}
        case model.Test(attribute, condition, quantifier):
            fields = _to_fields(condition)
            if quantifier is not model.Quantifier.ANY:
                fields = {"op": fields.pop("op"), "quantifier": quantifier.value, **fields}
            return {"attr": attribute, **fields}


def _to_fields(condition: model.Condition) -> dict[str, object]:
    match condition:
        case model.Is(value):
            return {"op": "=", "value": _to_json_value(value)}
        case model.In(values):
            return {"op": "in", "values": [_to_json_value(value) for value in values]}
        case model.Range():
            return {"op": "range", **_to_bounds(condition)}
        case model.Age(span):
            return {"op": "age", **_to_bounds(span)}
        case model.SameText(values):
            return {**_to_fields(model.one_of(values)), "ignoring_case": True}
        case model.TextTest(op, pattern, ignoring_case):
            return {"op": op.value, "value": pattern, **({"ignoring_case": True} if ignoring_case else {})}
        case model.IsA(concept):
            return {"op": "is a", "value": concept}
        case model.Within(area):
            return {"op": "within", "geometry": area.to_geojson()}
        case model.WithinRegion(region):
            return {"op": "within", "region": region}
        case model.Near(center, metres):
            return {"op": "near", "lon": center.lon, "lat": center.lat, "metres": metres}
        case model.InNetworks(networks):
            return {"op": "in networks", "networks": [str(network) for network in networks]}
        case model.Compare(op, other):
            return {"op": op.value, "other": other}
        case model.Has(inner):
            return {"op": "has", "filter": to_object(inner)}
        case model.Exists():
            return {"op": "exists"}
        case model.IsNull():
            return {"op": "is null"}


def _to_bounds(span: model.Range) -> dict[str, object]:
    fields: dict[str, object] = {}
    for key, value, is_open in (("low", span.low, span.low_open), ("high", span.high, span.high_open)):
        if value is not None:
            fields[key] = _to_json_value(value)
        if is_open:
            fields[f"{key}_open"] = True
    return fields


def _to_json_value(value: model.Scalar) -> object:
    match value:
        case bool() | int() | float() | str():
            return value
        case model.Quantity(amount, unit):
            return {"number": amount, "unit": unit}
        case model.Point(lon, lat):
            return {"lon": lon, "lat": lat}
    return {"time": value.isoformat().replace("+00:00", "Z")}
