"""Patterns in JSON notation: the object that `parse_json` reads back as the same tree."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tidings.lang.filters.render_json import to_object as filter_object
from tidings.lang.patterns.durations import format_duration
from tidings.model.patterns import Conjunction, Disjunction, Repeat, Sequence, Step, Timed, Which

if TYPE_CHECKING:
    from tidings.model.patterns import Elapsed, Moment, Node, Pattern


def render_pattern_json(pattern: Pattern) -> str:
    """Return the pattern as JSON text."""
    return json.dumps(to_object(pattern), ensure_ascii=False)


def to_object(pattern: Pattern) -> dict[str, Any]:
    """Return the pattern as the decoded JSON object."""
    filters = []
    for named in pattern.filters:
        variables = [{"attr": attribute, "variable": name} for attribute, name in named.variables]
        fields = {"name": named.name, "filter": filter_object(named.filter)}
        filters.append({**fields, "variables": variables} if variables else fields)
    written: dict[str, Any] = {"filters": filters, "pattern": _to_part(pattern.root)}
    if pattern.absence is not None:
        written["absence"] = {"not": [*pattern.absence.without], "for": format_duration(pattern.absence.span)}
    return written


def _to_part(node: Node) -> dict[str, Any]:
    match node:
        case Step(name, label):
            return {"step": name} if label is None else {"step": name, "label": label}
        case Repeat(step, least, most):
            return {**_to_part(step), "least": least, **({} if most is None else {"most": most})}
        case Sequence(parts, joints):
            gaps = [{"not": [*joint.without]} if joint.without else joint.gap.value for joint in joints]
            return {"sequence": [_to_part(part) for part in parts], "joints": gaps}
        case Conjunction(parts):
            return {"and": [_to_part(part) for part in parts]}
        case Disjunction(parts):
            return {"or": [_to_part(part) for part in parts]}
        case Timed(part, conditions, within):
            fields: dict[str, Any] = {"timed": _to_part(part)}
            if conditions:
                fields["conditions"] = [_to_condition(condition) for condition in conditions]
            return fields if within is None else {**fields, "within": format_duration(within)}


def _to_condition(condition: Elapsed) -> dict[str, Any]:
    fields: dict[str, Any] = {"late": _to_moment(condition.late), "early": _to_moment(condition.early)}
    for key, bound in (("low", condition.low), ("high", condition.high)):
        if bound is not None:
            fields[key] = format_duration(bound)
    flags = ("low_open", "high_open", "absolute")
    return {**fields, **{flag: True for flag in flags if getattr(condition, flag)}}


def _to_moment(moment: Moment) -> Any:
    return {"first": moment.label} if moment.which is Which.FIRST else moment.label
