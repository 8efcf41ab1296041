"""Patterns written as JSON, as `jsonform` reads them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tidings.lang.filters.render_json import to_object as filter_object
from tidings.lang.patterns.durations import shown_duration
from tidings.model.patterns import Both, Either, Repeat, Sequence, Step, Timed, Which

if TYPE_CHECKING:
    from tidings.model.patterns import Elapsed, Joint, Moment, NamedFilter, Node, Pattern


def render_pattern_json(pattern: Pattern) -> str:
    """Return the pattern as JSON text."""
    return json.dumps(to_object(pattern), ensure_ascii=False)


def to_object(pattern: Pattern) -> dict[str, Any]:
    """Return the pattern as the decoded JSON object."""
    made: dict[str, Any] = {
        "filters": [_named(named) for named in pattern.filters],
        "pattern": _part(pattern.root),
    }
    if pattern.absence is not None:
        made["absence"] = {"not": [*pattern.absence.without], "for": shown_duration(pattern.absence.span)}
    return made


def _named(named: NamedFilter) -> dict[str, Any]:
    made: dict[str, Any] = {"name": named.name, "filter": filter_object(named.filter)}
    if named.variables:
        made["variables"] = [{"attr": attribute, "variable": name} for attribute, name in named.variables]
    return made


def _part(node: Node) -> dict[str, Any]:
    match node:
        case Step(name, label):
            return {"step": name} if label is None else {"step": name, "label": label}
        case Repeat(step, least, most):
            return {**_part(step), "least": least, **({} if most is None else {"most": most})}
        case Sequence(parts, joints):
            return {"sequence": [_part(part) for part in parts], "joints": [_joint(joint) for joint in joints]}
        case Both(parts):
            return {"and": [_part(part) for part in parts]}
        case Either(parts):
            return {"or": [_part(part) for part in parts]}
        case Timed(part, conditions, within):
            made: dict[str, Any] = {"timed": _part(part)}
            if conditions:
                made["conditions"] = [_condition(condition) for condition in conditions]
            return made if within is None else {**made, "within": shown_duration(within)}


def _joint(joint: Joint) -> Any:
    return {"not": [*joint.without]} if joint.without else joint.gap.value


def _condition(condition: Elapsed) -> dict[str, Any]:
    made: dict[str, Any] = {"late": _moment(condition.late), "early": _moment(condition.early)}
    for key, span in (("low", condition.low), ("high", condition.high)):
        if span is not None:
            made[key] = shown_duration(span)
    flags = ("low_open", "high_open", "absolute")
    return {**made, **{flag: True for flag in flags if getattr(condition, flag)}}


def _moment(moment: Moment) -> Any:
    return {"first": moment.label} if moment.which is Which.FIRST else moment.label
