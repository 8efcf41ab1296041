"""Whole worlds of filters and events, drawn from a seed: thirty to sixty of each, so that pairs come cheaply.

Hypothesis gives a few filters and a few events at a time, which is what shrinking wants; an index shows its
faults where many filters stand beside each other. Pools are small, so that values meet the ends of filters; they
hold the corners: integers beyond 2**53 beside floats, times before 1970, empty text, text that folds to another
length, several values, ranges with every kind of end, places on boundaries.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from ipaddress import ip_address, ip_network
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

import tidings as td
from tidings.algebra import AttributeReader, Binder, RequirementTracker, Setting, fold_names, holds
from tidings.concepts import Vocabulary
from tidings.engine.index.planner import AccessPlan, EventStatistics, plan_rows
from tidings.engine.tuning import EngineTuning, IndexTuning, use_tuning
from tidings.kernels.match import access_choice as kernel
from tidings.kernels.match.layout import OP_BITS
from tidings.model import (
    FALSE,
    TRUE,
    Age,
    And,
    Area,
    Compare,
    Comparison,
    Exists,
    Filter,
    Has,
    InNetworks,
    Is,
    IsA,
    IsNull,
    Near,
    Not,
    Or,
    Point,
    Quantifier,
    Range,
    Test,
    TextOp,
    TextTest,
    Within,
    one_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from tidings.engine.compile.row_table import RowTable


NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)

ONTOLOGY = td.Ontology.from_dict(
    {
        "trees": {
            "goods": {
                "parents": {
                    "goods": [],
                    "computer": ["goods"],
                    "tablet": ["goods"],
                    "netbook": ["computer", "tablet"],
                    "laptop": ["computer"],
                    "phone": ["goods"],
                    "phablet": ["tablet", "phone"],
                },
            }
        }
    }
)

NUMBERS = (0, 1, 2, 3, 4, 5, 7, 10, -1, -5, 0.5, 2.5, 0.1, -0.0, 1e300, 5e-324, -1e300)
LARGE = (
    2**53,
    2**53 + 1,
    2**53 + 2,
    2**53 - 1,
    float(2**53),
    -(2**53) - 1,
    2**63 - 1,
    2**63 - 2,
    -(2**63),
    2.0**63 * 0.5,
)
WORDS = ("", "a", "A", "ab", "b", "ford", "FORD", "Ford focus", "focus", "straße", "STRASSE", "ﬁx", "é", "e\u0301",
         "İ", "\n", "a\nb", "🚗", "\x00", "\U0010ffff", "\ud7ff", "fo", "xford", "fordx", "ÿ", "ÿÿ", "zz",
         "g", "fp", "ac", "foy", "SU", "ST", "se")  # fmt: skip
PATTERNS = {
    TextOp.STARTS_WITH: ("", "f", "fo", "FO", "ST", "straß", "\U0010ffff", "ÿ", "é", "ab"),
    TextOp.ENDS_WITH: ("", "d", "rd", "RD", "ss", "ße", "us", "\u0301", "ÿ", "x"),
    TextOp.CONTAINS: ("", "o", "or", "OR", "ss", "fi", "a\n", "🚗", "q"),
    TextOp.LIKE: ("*", "?", "f*", "*d", "?o*d", "a*b", "FOR?", "", "*or*", "\\*"),
    TextOp.MATCHES: ("^f", "o.", "^$", "[a-c]+", "a|b", "(fo)+", "s{2}", r"\d", "d$", "é"),
}
MOMENTS = (NOW, NOW - timedelta(hours=1), NOW - timedelta(days=7), NOW - timedelta(days=7, microseconds=1),
           NOW + timedelta(days=1), datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), datetime(1970, 1, 1, tzinfo=UTC),
           datetime(1900, 2, 28, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC),
           datetime(2024, 5, 1, tzinfo=UTC))  # fmt: skip
SECONDS = (0, 60, 3600, 86_400, 7 * 86_400, -86_400, 0.5, 3600.000001, 1e9)
CONCEPTS = ("goods", "computer", "tablet", "netbook", "laptop", "phone", "phablet")
BLOCKS = tuple(
    map(
        ip_network,
        (
            "10.0.0.0/8",
            "10.1.0.0/16",
            "10.1.2.3/32",
            "192.168.0.0/24",
            "0.0.0.0/0",
            "::/0",
            "2001:db8::/32",
            "::1/128",
            "255.255.255.255/32",
            "10.0.0.0/9",
            "10.128.0.0/9",
        ),
    )
)


def _close_box(west: float, south: float, east: float, north: float) -> tuple[tuple[float, float], ...]:
    return ((west, south), (east, south), (east, north), (west, north), (west, south))


AREAS = (
    Area(((_close_box(0, 0, 4, 4),),)),
    Area(((_close_box(-1, -1, 5, 5), _close_box(1, 1, 2, 3)),)),
    Area(((((0, 0), (4, 0), (0, 4), (0, 0)),),)),
    Area(((_close_box(178, -2, 183, 2),),)),
    Area(((_close_box(0, 0, 1, 1),), (_close_box(3, 3, 5, 5),))),
    Area(((_close_box(-180, -90, 180, 90),),)),
)
DEGREES = (0.0, 1.0, 2.0, 4.0, 0.5, 3.5, 5.0, -1.0, -179.0, 179.5, 180.0, -180.0)
SEVERAL = (Quantifier.ANY, Quantifier.ANY, Quantifier.ANY, Quantifier.ALL, Quantifier.NONE)

KINDS = {
    "n": "number", "m": "number", "big": "number", "k": "integer", "t": "text", "tags": "text", "when": "time",
    "ok": "bool", "c": "concept", "p": "place", "ip": "ip", "r": "record",
}  # fmt: skip


@dataclass
class EngineWorld:
    """Filters by id, events, and what both are understood by."""

    filters: dict[Any, Filter]
    events: list[dict[str, Any]]
    keywords: dict[str, Any] = field(default_factory=lambda: {"ontology": ONTOLOGY, "now": NOW})

    def build_matcher(self, kind: str = "engine") -> td.Matcher:
        """Return an empty matcher for this world."""
        return td.Matcher(kind, **self.keywords)

    def evaluate_by_law(self) -> list[set[Any]]:
        """Return for each event the ids whose filters hold, by `algebra.holds` alone."""
        return evaluate_by_law(self.filters, self.events, self.keywords)


def evaluate_by_law(filters: dict[Any, Filter], events: Sequence[Any], keywords: dict[str, Any]) -> list[set[Any]]:
    """Return for each event the ids whose filters hold."""
    schema, regions = keywords.get("schema"), keywords.get("regions")
    ontology = keywords.get("ontology") or td.Ontology()
    vocabulary = Vocabulary(schema, ontology, regions)
    needs, binder = RequirementTracker(vocabulary), Binder(vocabulary)
    bound = {}
    for id, tree in filters.items():
        folded = fold_names(tree, ontology)
        needs.add(folded, str(id))
        bound[id] = binder.bind_filter(folded)
    setting = Setting(ontology, keywords.get("now") or NOW)
    reader = AttributeReader(needs.to_requirements(), ontology)
    readings = [reader.read(event, setting.now) for event in events]
    return [{id for id, tree in bound.items() if holds(tree, reading, setting)} for reading in readings]


class Drawer:
    """Draws filters and events of one world."""

    def __init__(self, seed: int, *, names: Sequence[str] = tuple(KINDS)) -> None:
        """Choose a few attributes, so that filters and events meet."""
        self.random = Random(seed)
        count = min(len(names), self.random.choice((1, 2, 3, 4, 6, len(names))))
        self.names = self.random.sample(list(names), count)
        self.large = self.random.random() < 0.3

    def world(self, filters: int, events: int) -> EngineWorld:
        """Return a world; ids are all integers or all text, and some filters come more than once."""
        ids = self.random.sample(range(-5, 10_000), filters)
        named = ids if self.random.random() < 0.5 else [f"s{id}" if id % 7 else "é" * (id // 7) for id in ids]
        pool = [self.filter() for _ in range(max(1, int(filters * self.random.choice((0.3, 0.8, 1)))))]
        chosen = {id: self.random.choice(pool) for id in named}
        return EngineWorld(chosen, [self.event() for _ in range(events)])

    # Filters -----------------------------------------------------------------------------------

    def filter(self) -> Filter:
        """Return a filter: mostly a conjunction, as people write them; else any tree."""
        chance = self.random.random()
        if chance < 0.02:
            return self.random.choice((TRUE, FALSE, Not(FALSE)))
        if chance < 0.45:
            return self.conjunction()
        if chance < 0.6:
            return self.draw_repeated()
        if chance < 0.75:
            return Or(tuple(self.conjunction() for _ in range(self.random.randint(2, 6))))
        return self.tree(self.random.randint(1, 4))

    def conjunction(self) -> Filter:
        """Return one to five tests, some of them negated."""
        parts = tuple(self.leaf() for _ in range(self.random.choice((1, 1, 2, 2, 3, 5))))
        return parts[0] if len(parts) == 1 else And(parts)

    def draw_repeated(self) -> Filter:
        """Return several tests of one attribute: contradictions, ranges in two halves, literals said twice."""
        name = self.random.choice(self.names)
        parts = [self.leaf(name) for _ in range(self.random.choice((2, 2, 3)))]
        if self.random.random() < 0.5:
            parts.append(self.leaf())
        return And(tuple(parts))

    def tree(self, depth: int) -> Filter:
        """Return any tree."""
        if depth == 0 or self.random.random() < 0.2:
            return self.leaf()
        shape = self.random.choice(("and", "or", "or", "not"))
        if shape == "not":
            return Not(self.tree(depth - 1))
        parts = tuple(self.tree(depth - 1) for _ in range(self.random.choice((2, 2, 3, 5))))
        return And(parts) if shape == "and" else Or(parts)

    def leaf(self, name: str | None = None) -> Filter:
        """Return a test or its negation."""
        test = self.test(name or self.random.choice(self.names))
        return Not(test) if self.random.random() < 0.15 else test

    def test(self, name: str) -> Test:
        """Return a test of an attribute."""
        chance = self.random.random()
        if chance < 0.05:
            return Test(name, Exists())
        if chance < 0.08:
            return Test(name, IsNull())
        return Test(name, self.condition(name, KINDS[name]), self.random.choice(SEVERAL))

    def condition(self, name: str, kind: str) -> Any:
        """Return a condition on a kind of attribute."""
        pick = self.random.choice
        match kind:
            case "number" | "integer":
                others = [other for other in self.names if KINDS[other] == "number"]
                if kind == "number" and others and self.random.random() < 0.1:
                    return Compare(pick(list(Comparison)), pick(others))
                return self.draw_ordered(lambda: self.number(name))
            case "text":
                return self.text() if self.random.random() < 0.5 else self.draw_ordered(lambda: pick(WORDS))
            case "time":
                if self.random.random() < 0.3:
                    return Age(self.span(lambda: pick(SECONDS)))
                return self.draw_ordered(lambda: pick(MOMENTS))
            case "bool":
                return one_of([pick((True, False)) for _ in range(self.random.randint(1, 3))])
            case "concept":
                if self.random.random() < 0.7:
                    return IsA(pick(CONCEPTS))
                return one_of([pick(CONCEPTS) for _ in range(self.random.randint(1, 3))])
            case "place":
                return self.place()
            case "ip":
                return InNetworks(tuple(pick(BLOCKS) for _ in range(self.random.randint(1, 4))))
        return Has(self.inner(self.random.randint(0, 2)))

    def inner(self, depth: int) -> Filter:
        """Return a filter on one element of an array of records."""
        if depth == 0:
            if self.random.random() < 0.5:
                return Test("sku", Is(self.random.choice(WORDS[:6])), self.random.choice(SEVERAL))
            return Test("qty", self.span(lambda: self.random.choice(NUMBERS[:8])))
        parts = (self.inner(depth - 1), self.inner(depth - 1))
        return self.random.choice((And(parts), Or(parts), Not(parts[0])))

    def text(self) -> TextTest:
        """Return a test of text."""
        op = self.random.choice(list(TextOp))
        return TextTest(op, self.random.choice(PATTERNS[op]), self.random.random() < 0.4)

    def place(self) -> Any:
        """Return an area, a circle or some points."""
        chance = self.random.random()
        if chance < 0.5:
            return Within(self.random.choice(AREAS))
        if chance < 0.8:
            return Near(Point(*self.spot()), self.random.choice((0, 1000, 111_195, 300_000, 20_100_000)))
        return one_of([Point(*self.spot()) for _ in range(self.random.randint(1, 3))])

    def draw_ordered(self, value: Any) -> Any:
        """Return equality, a set or a range of values."""
        chance = self.random.random()
        if chance < 0.3:
            return Is(value())
        if chance < 0.45:
            return one_of([value() for _ in range(self.random.choice((1, 2, 3, 12)))])
        return self.span(value)

    def span(self, value: Any) -> Range:
        """Return a range with ends of every kind; also `[x .. x]` and the empty `(x .. x)`."""
        low, high = sorted((value(), value()))
        if self.random.random() < 0.1:
            high = low
        shape = self.random.choice(("both", "both", "low", "high"))
        ends = (None if shape == "high" else low, None if shape == "low" else high)
        return Range(*ends, low_open=self.random.random() < 0.4, high_open=self.random.random() < 0.4)

    # Values ------------------------------------------------------------------------------------

    def number(self, name: str) -> int | float:
        """Return a number; integers up to the ends of 64 bits where the attribute is large."""
        if KINDS[name] == "integer":
            return self.random.randint(-3, 60)
        if (name == "big" or self.large) and self.random.random() < 0.5:
            return self.random.choice(LARGE)
        return self.random.choice(NUMBERS)

    def spot(self) -> tuple[float, float]:
        """Return a place, often on a boundary."""
        return self.random.choice(DEGREES), max(-90.0, min(90.0, self.random.choice(DEGREES)))

    def event(self) -> dict[str, Any]:
        """Return an event: each attribute absent, null, empty, one value, several or a range."""
        values: dict[str, Any] = {}
        dense = self.random.random() < 0.5
        for name in self.names:
            mode = self.random.choice(
                ("absent", "null", "empty", *("one",) * (20 if dense else 4), "list", "list", "range")
            )
            if mode == "absent":
                continue
            values[name] = self.draw_held_value(name, KINDS[name], mode)
        return values

    def draw_held_value(self, name: str, kind: str, mode: str) -> Any:
        """Return what stands in an event for an attribute."""
        match mode:
            case "null":
                return None
            case "empty":
                return []
            case "list":
                values = [self.value(name, kind) for _ in range(self.random.choice((1, 2, 2, 3, 6)))]
                return [*values, None] if self.random.random() < 0.2 else values
            case "range" if kind in ("number", "integer", "time"):
                ranges = [self.range(name, kind) for _ in range(self.random.choice((1, 1, 2)))]
                return ranges[0] if len(ranges) == 1 else [*ranges, self.value(name, kind)]
        return self.value(name, kind)

    def value(self, name: str, kind: str) -> Any:
        """Return one value, in one of the forms an event may have it in."""
        pick = self.random.choice
        match kind:
            case "number" | "integer":
                value = self.number(name)
                return pick((value, value, value, Decimal(repr(value))))
            case "text":
                return pick(WORDS)
            case "time":
                value = pick(MOMENTS)
                return pick((value, value, value.replace(tzinfo=None), value.isoformat(), date(2024, 5, 1)))
            case "bool":
                return pick((True, False))
            case "concept":
                return pick((*CONCEPTS, "unheard of"))
            case "place":
                return pick((self.spot(), Point(*self.spot())))
            case "ip":
                block = pick(BLOCKS)
                return str(pick((block.network_address, block.broadcast_address, ip_address("10.200.0.1"))))
        return {"sku": pick((pick(WORDS[:6]), [pick(WORDS[:6]), pick(WORDS[:6])])), "qty": pick(NUMBERS[:8])}

    def range(self, name: str, kind: str) -> Range:
        """Return a value that is a range, never an empty one."""
        values = [self.number(name) if kind != "time" else self.random.choice(MOMENTS) for _ in range(2)]
        low, high = sorted(values)
        wide = low < high
        first, last = self.random.choice(((low, high), (low, high), (low, None), (None, high)))
        opened = [wide and self.random.random() < 0.4 for _ in range(2)]
        return Range(first, last, low_open=opened[0], high_open=opened[1])


# --- the ways an engine can be set --------------------------------------------------------------------


def choose_any_plan(table: RowTable, statistics: EventStatistics, tuning: IndexTuning) -> AccessPlan:
    """Choose for each row any way in which it can be found, whatever it costs: every choice must find every row."""
    real = plan_rows(table, statistics, tuning)
    random = Random(len(table.start) * 31 + len(table.literals.head))
    head, start = table.literals.head, table.start
    kind, first, second = real.kind.copy(), np.full_like(real.first, -1), np.full_like(real.second, -1)
    for row in range(len(kind)):
        usable = [at for at in range(start[row], start[row + 1]) if real.use[at] != kernel.NO_USE]
        points = [at for at in usable if real.use[at] >= kernel.POINT]
        kind[row] = random.choice((kernel.ALWAYS, *WANTED))
        pool = points if kind[row] >= kernel.KEYED else usable
        wanted = {kernel.ALWAYS: 0, kernel.PACKED: 1, kernel.KEYED: 1}.get(int(kind[row]), 2)
        chosen = sorted(random.sample(pool, wanted), key=lambda at: head[at]) if len(pool) >= wanted else []
        copies = [_count_copies(table.literals, at) if real.use[at] == kernel.POINTS else 1 for at in chosen]
        apart = len({int(head[at]) >> OP_BITS for at in chosen}) == wanted
        if not chosen or not apart or (kind[row] >= kernel.KEYED and math.prod(copies) > kernel.MOST_COPIES):
            kind[row] = kernel.ALWAYS
            continue
        first[row] = chosen[0]
        second[row] = chosen[1] if wanted == 2 else -1
    return AccessPlan(kind, first, second, real.use)


WANTED = (kernel.PACKED, kernel.PACKED_PAIR, kernel.KEYED, kernel.KEYED, kernel.KEYED_PAIR, kernel.KEYED_PAIR)


def _count_copies(literals: Any, at: int) -> int:
    return int(literals.union_start[literals.low[at] + 1]) - int(literals.union_start[literals.low[at]])


COMPILED = EngineTuning(waiting_limit=0)
_FOUND = replace(COMPILED, row_limit=0, any_literal_finds_trees=True)


def tune_index(tuning: EngineTuning = COMPILED, **index: Any) -> EngineTuning:
    return replace(tuning, index=IndexTuning(**index))


WAYS: dict[str, EngineTuning] = {
    "everything waits": EngineTuning(waiting_limit=10**6),
    "compiled": COMPILED,
    "any plan": tune_index(planner=choose_any_plan),
    "any plan, hash tables": tune_index(planner=choose_any_plan, direct_up_to=-(10**6)),
    "any plan, tiny tiles": tune_index(planner=choose_any_plan, tile_rows=4, tiled_from=1),
    "any plan, few buckets": tune_index(
        planner=choose_any_plan, tile_rows=64, tiled_from=1, exact_up_to=2, bitmap_bits=8
    ),
    "keys wherever they can be": tune_index(look_ns=0.0, tile_ns=1e9),
    "hulls wherever they can be": tune_index(look_ns=1e9, tile_rows=2, tiled_from=1),
    "tiles without bitmaps": tune_index(planner=choose_any_plan, tiled_from=1, scan_ns=0.0),
    "trees": replace(COMPILED, row_limit=0),
    "integers without a list": replace(COMPILED, listed_ends=0),
    "trees found by anything": replace(_FOUND, pair_cost=0),
    "trees found by any plan": tune_index(replace(_FOUND, pair_cost=0), planner=choose_any_plan),
    "trees found in vain": replace(_FOUND, pair_cost=10**9),
}
"""Tunings that lead matching down each of its ways."""


def set_to(way: str) -> AbstractContextManager[None]:
    """Build engines inside the block with the tuning of a way."""
    return use_tuning(WAYS[way])
