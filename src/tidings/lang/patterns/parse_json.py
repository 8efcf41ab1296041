"""Patterns as JSON: the tree itself, as `pattern.schema.json` publishes it.

A pattern is an object with `filters`, `pattern` and perhaps `absence`. A part is an object with exactly one of the keys
`step`, `sequence`, `and`, `or` and `timed`. Durations are text with their unit, as in text notation: `"5 min"`. A value
that cannot be read is noted as a mistake and replaced by a placeholder, so that one pass finds all mistakes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from tidings.concepts import did_you_mean
from tidings.errors import FilterError, PatternError
from tidings.lang.diagnostics import decode_json
from tidings.lang.filters.notations import parse_filter
from tidings.lang.patterns.check import HOLE, MAX_LEVELS, TOO_DEEP, PatternDraft
from tidings.lang.patterns.durations import parse_duration
from tidings.lang.patterns.named_filters import check_attribute
from tidings.lang.patterns.time_conditions import NEVER, is_unsatisfiable
from tidings.lang.patterns.tokens import PatternReadError
from tidings.lang.source_map import SourceMap, SourceSpan
from tidings.model import TRUE, patterns

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.concepts import Vocabulary
    from tidings.model import Filter

_T = TypeVar("_T")
_PARTS = ("step", "sequence", "and", "or", "timed")


def read_json_draft(source: Any, vocabulary: Vocabulary) -> PatternDraft:
    """Return the draft of a pattern from a JSON text or its decoded object."""
    if isinstance(source, str | bytes):
        source = decode_json(source, PatternError)
    return _PatternJsonReader(vocabulary).read_pattern(source)


class _PatternJsonReader:
    """Reads one pattern top-down; a part that cannot be read is noted and replaced by a placeholder."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary, self._source_map = vocabulary, SourceMap()

    def read_pattern(self, node: Any) -> PatternDraft:
        fields = self._read_fields(node, "$", "a pattern", ("filters", "pattern"), ("absence",))
        items = self._read_list(fields.get("filters", []), "$.filters", "filters")
        filters = tuple(self._read_named_filter(item, f"$.filters[{i}]") for i, item in enumerate(items))
        root = self._read_part(fields["pattern"], "$.pattern", 0) if "pattern" in fields else None
        absence = self._read_absence(fields["absence"], "$.absence") if "absence" in fields else None
        return PatternDraft(filters, root, absence, self._source_map)

    # Named filters ----------------------------------------------------------------------------------

    def _read_named_filter(self, node: Any, path: str) -> patterns.NamedFilter:
        fields = self._read_fields(node, path, "a named filter", ("name", "filter"), ("variables",))
        name = self._read_text(fields.get("name", HOLE), f"{path}.name")
        tree = self._read_filter(fields["filter"], f"{path}.filter") if "filter" in fields else TRUE
        items = self._read_list(fields.get("variables", []), f"{path}.variables", "variables")
        pairs = [self._read_variable(item, f"{path}.variables[{i}]") for i, item in enumerate(items)]
        named = self._build(
            lambda: patterns.NamedFilter(name, tree, tuple(pairs)), f"{path}.variables"
        ) or patterns.NamedFilter(name, tree)
        self._source_map.record(named, SourceSpan(path=f"{path}.name"))
        return named

    def _read_filter(self, node: Any, path: str) -> Filter:
        try:
            return parse_filter(node, self._vocabulary, notation="json")
        except FilterError as problem:
            for mistake in problem.mistakes:
                below = None if mistake.path is None else path + mistake.path.removeprefix("$")
                self._source_map.mistakes.append(replace(mistake, path=below))
            return TRUE

    def _read_variable(self, node: Any, path: str) -> tuple[str, str]:
        fields = self._read_fields(node, path, "a variable", ("attr", "variable"))
        attribute = self._read_text(fields.get("attr", "x"), f"{path}.attr")
        if "attr" in fields and attribute != HOLE:
            span = SourceSpan(path=f"{path}.attr")
            self._source_map.mistakes += check_attribute(attribute, span, self._vocabulary)
        return attribute, self._read_text(fields.get("variable", path), f"{path}.variable")

    # Parts ------------------------------------------------------------------------------------------

    def _read_part(self, node: Any, path: str, depth: int) -> patterns.Node:
        if depth > MAX_LEVELS:
            return self._refuse_part(TOO_DEEP, path)
        kinds = [key for key in _PARTS if isinstance(node, dict) and key in node]
        if len(kinds) != 1:
            near = next((did_you_mean(str(key), _PARTS) for key in node), "") if isinstance(node, dict) else ""
            return self._refuse_part(f"expected a part: an object with one of {', '.join(_PARTS)}{near}", path)
        match kinds[0]:
            case "step":
                return self._read_step(node, path)
            case "sequence":
                return self._read_sequence(node, path, depth)
            case "timed":
                return self._read_timed(node, path, depth)
            case word:
                return self._read_connective(node, path, depth, word)

    def _read_connective(self, node: Any, path: str, depth: int, word: str) -> patterns.Node:
        parts = self._read_parts(self._read_fields(node, path, f"`{word}`", (word,))[word], f"{path}.{word}", depth)
        kind = patterns.Conjunction if word == "and" else patterns.Disjunction
        return self._build(lambda: kind(parts), f"{path}.{word}") or patterns.Step(HOLE)

    def _read_parts(self, node: Any, path: str, depth: int) -> tuple[patterns.Node, ...]:
        items = self._read_list(node, path, "parts")
        return tuple(self._read_part(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(items))

    def _read_step(self, node: Any, path: str) -> patterns.Node:
        fields = self._read_fields(node, path, "a step", ("step",), ("label", "least", "most"))
        label = self._read_text(fields["label"], f"{path}.label") if "label" in fields else None
        step = patterns.Step(self._read_text(fields["step"], f"{path}.step"), label)
        self._source_map.record(step, SourceSpan(path=f"{path}.step"), SourceSpan(path=f"{path}.label"))
        if "least" not in fields and "most" not in fields:
            return step
        least = self._read_count(fields.get("least", 1), f"{path}.least")
        most = None if fields.get("most") is None else self._read_count(fields["most"], f"{path}.most")
        return self._build(lambda: patterns.Repeat(step, least, most), path) or patterns.Step(HOLE)

    def _read_sequence(self, node: Any, path: str, depth: int) -> patterns.Node:
        fields = self._read_fields(node, path, "a sequence", ("sequence",), ("joints",))
        parts = self._read_parts(fields["sequence"], f"{path}.sequence", depth)
        default = [patterns.Gap.LATER.value] * (len(parts) - 1)
        items = self._read_list(fields.get("joints", default), f"{path}.joints", "joints")
        joints = tuple(self._read_joint(item, f"{path}.joints[{i}]") for i, item in enumerate(items))
        return self._build(lambda: patterns.Sequence(parts, joints), path) or patterns.Step(HOLE)

    def _read_joint(self, node: Any, path: str) -> patterns.Joint:
        if isinstance(node, str) and node in (",", ";"):
            return patterns.Joint(patterns.Gap(node))
        if not isinstance(node, dict):
            self._refuse('a joint is ",", ";" or an object {"not": ["b"]}', path)
            return patterns.Joint(patterns.Gap.LATER)
        guards = self._read_fields(node, path, "a joint", ("not",)).get("not", ["b"])
        names, spans = self._read_guards(guards, f"{path}.not")
        joint = patterns.Joint(patterns.Gap.LATER, names)
        self._source_map.record(joint, *spans)
        return joint

    def _read_guards(self, node: Any, path: str) -> tuple[tuple[str, ...], list[SourceSpan]]:
        items = self._read_list(node, path, "filters' names")
        if not items:
            self._refuse("`not` names at least one filter", path)
        paths = [f"{path}[{i}]" for i in range(len(items))]
        names = tuple(self._read_text(item, item_path) for item, item_path in zip(items, paths, strict=True))
        return names, [SourceSpan(path=item_path) for item_path in paths]

    def _read_absence(self, node: Any, path: str) -> patterns.Absence | None:
        fields = self._read_fields(node, path, "an absence", ("not", "for"))
        names, spans = self._read_guards(fields.get("not", ["b"]), f"{path}.not")
        duration = self._read_duration(fields.get("for", "1 s"), f"{path}.for")
        absence = self._build(lambda: patterns.Absence(names, duration), f"{path}.for")
        if absence is not None:
            self._source_map.record(absence, *spans)
        return absence

    # Times ------------------------------------------------------------------------------------------

    def _read_timed(self, node: Any, path: str, depth: int) -> patterns.Node:
        fields = self._read_fields(node, path, "a timed part", ("timed",), ("conditions", "within"))
        part = self._read_part(fields["timed"], f"{path}.timed", depth + 1)
        items = self._read_list(fields.get("conditions", []), f"{path}.conditions", "conditions")
        optional = [self._read_condition(item, f"{path}.conditions[{i}]") for i, item in enumerate(items)]
        within = self._read_duration(fields["within"], f"{path}.within") if "within" in fields else None
        if within is not None and within < 0:
            self._refuse("`within` takes a duration from zero on", f"{path}.within")
        conditions = tuple(condition for condition in optional if condition is not None)
        if items and not conditions and within is None:
            return part
        return self._build(lambda: patterns.Timed(part, conditions, within), path) or patterns.Step(HOLE)

    def _read_condition(self, node: Any, path: str) -> patterns.Elapsed | None:
        more = ("low", "high", "low_open", "high_open", "absolute")
        fields = self._read_fields(node, path, "a condition", ("late", "early"), more)
        if not {"late", "early"} <= fields.keys():
            return None
        late, early = (self._read_moment(fields[key], f"{path}.{key}") for key in ("late", "early"))
        low, high = (self._read_duration(fields[k], f"{path}.{k}") if k in fields else None for k in more[:2])
        left, right, absolute = (self._read_flag(fields.get(key, False), f"{path}.{key}") for key in more[2:])
        condition = self._build(lambda: patterns.Elapsed(late, early, low, high, left, right, absolute), path)
        if condition is None:
            return None
        if is_unsatisfiable(condition):
            self._refuse(NEVER, path)
        spans = [SourceSpan(path=item_path) for item_path in (path, f"{path}.late", f"{path}.early")]
        self._source_map.record(condition, *spans)
        return condition

    def _read_moment(self, node: Any, path: str) -> patterns.Moment:
        if isinstance(node, dict):
            fields = self._read_fields(node, path, "a moment", ("first",))
            return patterns.Moment(self._read_text(fields.get("first", HOLE), f"{path}.first"), patterns.Which.FIRST)
        return patterns.Moment(self._read_text(node, path))

    def _read_duration(self, node: Any, path: str) -> int:
        try:
            return parse_duration(self._read_text(node, path, 'a duration such as "5 min"'))
        except PatternReadError as problem:
            if isinstance(node, str):
                self._refuse(problem.mistake.message, path)
            return 1

    # Plain values -----------------------------------------------------------------------------------

    def _read_fields(
        self, node: Any, path: str, subject: str, needed: tuple[str, ...], optional: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Return the fields of an object that are allowed; unknown and missing keys are noted as mistakes."""
        if not isinstance(node, dict):
            self._refuse(f"{subject} is an object with {' and '.join(f'`{key}`' for key in needed)}", path)
            return {}
        allowed = (*needed, *optional)
        for key in node:
            if key not in allowed:
                self._refuse(f"unknown key `{key}` in {subject}{did_you_mean(str(key), allowed)}", path)
        for key in needed:
            if key not in node:
                self._refuse(f"{subject} needs `{key}`", path)
        return {key: value for key, value in node.items() if key in allowed}

    def _read_list(self, node: Any, path: str, items: str) -> list[Any]:
        if isinstance(node, list):
            return node
        self._refuse(f"expected a list of {items}", path)
        return []

    def _read_text(self, node: Any, path: str, wanted: str = "a name") -> str:
        if isinstance(node, str) and node and (node == HOLE or "\x00" not in node):
            return node
        self._refuse(f"expected {wanted}, as text", path)
        return HOLE

    def _read_count(self, node: Any, path: str) -> int:
        if isinstance(node, int) and not isinstance(node, bool) and 0 < node < 10**9:
            return node
        self._refuse("expected how many times, as a whole number", path)
        return 1

    def _read_flag(self, node: Any, path: str) -> bool:
        if not isinstance(node, bool):
            self._refuse("expected true or false", path)
        return node is True

    def _build(self, make: Callable[[], _T], path: str) -> _T | None:
        try:
            return make()
        except PatternError as problem:
            # A mistake at this path or below it explains this one: the placeholder is what does not fit.
            if not any((mistake.path or "").startswith(path) for mistake in self._source_map.mistakes):
                self._refuse(str(problem), path)
            return None

    def _refuse(self, message: str, path: str) -> None:
        self._source_map.refuse(message, SourceSpan(path=path))

    def _refuse_part(self, message: str, path: str) -> patterns.Node:
        self._refuse(message, path)
        return patterns.Step(HOLE)
