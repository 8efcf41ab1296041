"""Patterns as JSON: the tree itself, as `pattern.schema.json` publishes it.

A pattern is an object with `filters`, `pattern` and perhaps `absence`. A part is an object that one key tells:
`step`, `sequence`, `and`, `or` or `timed`. Durations are text with their unit, as in text notation: `"5 min"`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

from tidings.concepts import did_you_mean
from tidings.errors import FilterError, Mistake, PatternError
from tidings.lang.filters.notations import parse
from tidings.lang.filters.parse_json import refuse_constant
from tidings.lang.patterns.durations import duration_of
from tidings.lang.patterns.source_positions import (
    HOLE,
    MAX_LEVELS,
    Draft,
    Place,
    Places,
    check_length,
    moved,
    pattern_error,
)
from tidings.lang.patterns.time_conditions import NEVER, never_holds
from tidings.lang.patterns.tokens import Stop
from tidings.model import TRUE
from tidings.model.patterns import (
    Absence,
    Both,
    Either,
    Elapsed,
    Gap,
    Joint,
    Moment,
    NamedFilter,
    Repeat,
    Sequence,
    Step,
    Timed,
    Which,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.lang.patterns.named_filters import Surroundings
    from tidings.model import Filter
    from tidings.model.patterns import Node

_T = TypeVar("_T")
_PARTS = ("step", "sequence", "and", "or", "timed")


def read_json(source: Any, surroundings: Surroundings) -> Draft:
    """Return the pattern of a JSON text or a decoded object as it was read."""
    if isinstance(source, str | bytes):
        source = decoded(source)
    return _Reader(surroundings).pattern(source)


def decoded(source: str | bytes) -> Any:
    """Return the object of a JSON text, or report where it is none."""
    try:
        text = source.decode() if isinstance(source, bytes) else source
        check_length(text)
        return json.loads(text, parse_constant=refuse_constant)
    except json.JSONDecodeError as problem:
        mistake = Mistake(f"not JSON: {problem.msg}", problem.pos, problem.pos + 1)
        raise pattern_error([mistake], text) from None
    except PatternError:
        raise
    except (RecursionError, UnicodeDecodeError, ValueError) as problem:
        raise pattern_error([Mistake(f"not JSON: {problem}")], None) from None


class _Reader:
    """Builds a pattern top-down; a part that cannot be one is noted, and a stand-in goes on."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings, self._places = surroundings, Places()

    def pattern(self, node: Any) -> Draft:
        fields = self._fields(node, "$", "a pattern", ("filters", "pattern"), ("absence",))
        listed = self._list(fields.get("filters", []), "$.filters", "filters")
        filters = tuple(self._named(item, f"$.filters[{i}]") for i, item in enumerate(listed))
        root = self._part(fields["pattern"], "$.pattern", 0) if "pattern" in fields else None
        absence = self._absence(fields["absence"], "$.absence") if "absence" in fields else None
        return Draft(filters, root, absence, self._places)

    # Named filters ----------------------------------------------------------------------------------

    def _named(self, node: Any, path: str) -> NamedFilter:
        fields = self._fields(node, path, "a named filter", ("name", "filter"), ("variables",))
        name = self._text(fields.get("name", HOLE), f"{path}.name")
        tree = self._filter(fields["filter"], f"{path}.filter") if "filter" in fields else TRUE
        listed = self._list(fields.get("variables", []), f"{path}.variables", "variables")
        pairs = [self._variable(item, f"{path}.variables[{i}]") for i, item in enumerate(listed)]
        made = self._made(lambda: NamedFilter(name, tree, tuple(pairs)), f"{path}.variables") or NamedFilter(name, tree)
        self._places.note(made, Place(path=f"{path}.name"))
        return made

    def _filter(self, node: Any, path: str) -> Filter:
        try:
            return parse(node, notation="json", **self._surroundings.keywords)
        except FilterError as problem:
            self._places.mistakes += moved(problem, under=path)
            return TRUE

    def _variable(self, node: Any, path: str) -> tuple[str, str]:
        fields = self._fields(node, path, "a variable", ("attr", "variable"))
        attribute = self._text(fields.get("attr", "x"), f"{path}.attr")
        if "attr" in fields and attribute != HOLE:
            self._places.mistakes += self._surroundings.unknown(attribute, Place(path=f"{path}.attr"))
        return attribute, self._text(fields.get("variable", path), f"{path}.variable")

    # Parts ------------------------------------------------------------------------------------------

    def _part(self, node: Any, path: str, depth: int) -> Node:
        if depth > MAX_LEVELS:
            return self._hole(f"the pattern is nested more than {MAX_LEVELS} levels deep, which is the limit", path)
        kinds = [key for key in _PARTS if isinstance(node, dict) and key in node]
        if len(kinds) != 1:
            near = next((did_you_mean(str(key), _PARTS) for key in node), "") if isinstance(node, dict) else ""
            return self._hole(f"expected a part: an object with one of {', '.join(_PARTS)}{near}", path)
        match kinds[0]:
            case "step":
                return self._step(node, path)
            case "sequence":
                return self._sequence(node, path, depth)
            case "timed":
                return self._timed(node, path, depth)
            case word:
                return self._joined(node, path, depth, word)

    def _joined(self, node: Any, path: str, depth: int, word: str) -> Node:
        parts = self._parts(self._fields(node, path, f"`{word}`", (word,))[word], f"{path}.{word}", depth)
        kind = Both if word == "and" else Either
        return self._made(lambda: kind(parts), f"{path}.{word}") or Step(HOLE)

    def _parts(self, node: Any, path: str, depth: int) -> tuple[Node, ...]:
        listed = self._list(node, path, "parts")
        return tuple(self._part(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(listed))

    def _step(self, node: Any, path: str) -> Node:
        fields = self._fields(node, path, "a step", ("step",), ("label", "least", "most"))
        label = self._text(fields["label"], f"{path}.label") if "label" in fields else None
        step = Step(self._text(fields["step"], f"{path}.step"), label)
        self._places.note(step, Place(path=f"{path}.step"), Place(path=f"{path}.label"))
        if "least" not in fields and "most" not in fields:
            return step
        least = self._count(fields.get("least", 1), f"{path}.least")
        most = None if fields.get("most") is None else self._count(fields["most"], f"{path}.most")
        return self._made(lambda: Repeat(step, least, most), path) or Step(HOLE)

    def _sequence(self, node: Any, path: str, depth: int) -> Node:
        fields = self._fields(node, path, "a sequence", ("sequence",), ("joints",))
        parts = self._parts(fields["sequence"], f"{path}.sequence", depth)
        default = [Gap.LATER.value] * (len(parts) - 1)
        listed = self._list(fields.get("joints", default), f"{path}.joints", "joints")
        joints = tuple(self._joint(item, f"{path}.joints[{i}]") for i, item in enumerate(listed))
        return self._made(lambda: Sequence(parts, joints), path) or Step(HOLE)

    def _joint(self, node: Any, path: str) -> Joint:
        if isinstance(node, str) and node in (",", ";"):
            return Joint(Gap(node))
        if not isinstance(node, dict):
            self._places.refuse('a joint is ",", ";" or an object {"not": ["b"]}', Place(path=path))
            return Joint(Gap.LATER)
        names, places = self._guards(self._fields(node, path, "a joint", ("not",)).get("not", ["b"]), f"{path}.not")
        made = Joint(Gap.LATER, names)
        self._places.note(made, *places)
        return made

    def _guards(self, node: Any, path: str) -> tuple[tuple[str, ...], list[Place]]:
        listed = self._list(node, path, "filters' names")
        if not listed:
            self._places.refuse("`not` names at least one filter", Place(path=path))
        spots = [f"{path}[{i}]" for i in range(len(listed))]
        names = tuple(self._text(item, spot) for item, spot in zip(listed, spots, strict=True))
        return names, [Place(path=spot) for spot in spots]

    def _absence(self, node: Any, path: str) -> Absence | None:
        fields = self._fields(node, path, "an absence", ("not", "for"))
        names, places = self._guards(fields.get("not", ["b"]), f"{path}.not")
        span = self._duration(fields.get("for", "1 s"), f"{path}.for")
        made = self._made(lambda: Absence(names, span), f"{path}.for")
        if made is not None:
            self._places.note(made, *places)
        return made

    # Times ------------------------------------------------------------------------------------------

    def _timed(self, node: Any, path: str, depth: int) -> Node:
        fields = self._fields(node, path, "a timed part", ("timed",), ("conditions", "within"))
        part = self._part(fields["timed"], f"{path}.timed", depth + 1)
        listed = self._list(fields.get("conditions", []), f"{path}.conditions", "conditions")
        found = [self._condition(item, f"{path}.conditions[{i}]") for i, item in enumerate(listed)]
        within = self._duration(fields["within"], f"{path}.within") if "within" in fields else None
        if within is not None and within < 0:
            self._places.refuse("`within` takes a duration from zero on", Place(path=f"{path}.within"))
        conditions = tuple(one for one in found if one is not None)
        if listed and not conditions and within is None:
            return part
        return self._made(lambda: Timed(part, conditions, within), path) or Step(HOLE)

    def _condition(self, node: Any, path: str) -> Elapsed | None:
        more = ("low", "high", "low_open", "high_open", "absolute")
        fields = self._fields(node, path, "a condition", ("late", "early"), more)
        if not {"late", "early"} <= fields.keys():
            return None
        late, early = (self._moment(fields[key], f"{path}.{key}") for key in ("late", "early"))
        low, high = (self._duration(fields[k], f"{path}.{k}") if k in fields else None for k in more[:2])
        left, right, absolute = (self._flag(fields.get(key, False), f"{path}.{key}") for key in more[2:])
        made = self._made(lambda: Elapsed(late, early, low, high, left, right, absolute), path)
        if made is None:
            return None
        if never_holds(made):
            self._places.refuse(NEVER, Place(path=path))
        self._places.note(made, Place(path=path), Place(path=f"{path}.late"), Place(path=f"{path}.early"))
        return made

    def _moment(self, node: Any, path: str) -> Moment:
        if isinstance(node, dict):
            fields = self._fields(node, path, "a moment", ("first",))
            return Moment(self._text(fields.get("first", HOLE), f"{path}.first"), Which.FIRST)
        return Moment(self._text(node, path))

    def _duration(self, node: Any, path: str) -> int:
        try:
            return duration_of(self._text(node, path, 'a duration such as "5 min"'))
        except Stop as problem:
            if isinstance(node, str):
                self._places.refuse(problem.mistake.message, Place(path=path))
            return 1

    # Plain values -----------------------------------------------------------------------------------

    def _fields(
        self, node: Any, path: str, what: str, needed: tuple[str, ...], also: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Return the object's fields that are known; a key too many or too few is noted."""
        if not isinstance(node, dict):
            self._places.refuse(f"{what} is an object with {_keys(needed)}", Place(path=path))
            return {}
        known = (*needed, *also)
        for key in node:
            if key not in known:
                self._places.refuse(f"unknown key `{key}` in {what}{did_you_mean(str(key), known)}", Place(path=path))
        for key in needed:
            if key not in node:
                self._places.refuse(f"{what} needs `{key}`", Place(path=path))
        return {key: value for key, value in node.items() if key in known}

    def _list(self, node: Any, path: str, what: str) -> list[Any]:
        if isinstance(node, list):
            return node
        self._places.refuse(f"expected a list of {what}", Place(path=path))
        return []

    def _text(self, node: Any, path: str, wanted: str = "a name") -> str:
        if isinstance(node, str) and node and (node == HOLE or "\x00" not in node):
            return node
        self._places.refuse(f"expected {wanted}, as text", Place(path=path))
        return HOLE

    def _count(self, node: Any, path: str) -> int:
        if isinstance(node, int) and not isinstance(node, bool) and 0 < node < 10**9:
            return node
        self._places.refuse("expected how many times, as a whole number", Place(path=path))
        return 1

    def _flag(self, node: Any, path: str) -> bool:
        if not isinstance(node, bool):
            self._places.refuse("expected true or false", Place(path=path))
        return node is True

    def _made(self, make: Callable[[], _T], path: str) -> _T | None:
        try:
            return make()
        except PatternError as problem:
            # Where something at this place or below it was refused already, this follows from that.
            if not any((found.path or "").startswith(path) for found in self._places.mistakes):
                self._places.refuse(str(problem), Place(path=path))
            return None

    def _hole(self, message: str, path: str) -> Node:
        self._places.refuse(message, Place(path=path))
        return Step(HOLE)


def _keys(needed: tuple[str, ...]) -> str:
    return " and ".join(f"`{key}`" for key in needed)
