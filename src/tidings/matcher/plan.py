"""The plan that `explain` returns: printable, and plain values through `to_dict`.

A plan is a headline, sheets (small tables) and what makes it slow. `str()` sets them in columns of plain text; the
command line draws the same sheets on a terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidings.algebra import ReadSpec
from tidings.concepts.spelling import join_first
from tidings.engine.explain.report import pluralize
from tidings.matcher.mismatch_report import MismatchReport

SHOWN = 12
"""Lines of a long list that are printed; `to_dict` has all of them."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A small table for a terminal: the columns in `numbers` are aligned to the right; `notes` are lines below it."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [line for line in (self.head, *self.rows) if line]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        aligned = (self._align_cells(line, widths) for line in lines)
        return "\n".join([self.title, *(f"  {line}" for line in (*aligned, *self.notes))])

    def _align_cells(self, line: tuple[str, ...], widths: list[int]) -> str:
        cells = (
            cell.rjust(width) if column in self.numbers else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        return "  ".join(cells).rstrip()


@dataclass(frozen=True, slots=True)
class Plan:
    """How an algorithm goes about its subscriptions, and which attributes it reads."""

    kind: str
    work: Mapping[str, Any]
    attributes: Mapping[str, tuple[ReadSpec, ...]]
    mismatches: tuple[MismatchReport, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return plain values."""
        mismatches = {"mismatches": [report.to_dict() for report in self.mismatches]} if self.mismatches else {}
        return {"kind": self.kind, **self.work, "attributes": dict(self._describe_attributes()), **mismatches}

    def _describe_attributes(self) -> list[tuple[str, str]]:
        return [(name, _describe_specs(specs)) for name, specs in sorted(self.attributes.items())]

    @property
    def headline(self) -> str:
        """The plan in one line."""
        if "segments" not in self.work:
            return f"matcher {self.kind}"
        learnt = "sampled events" if self.work["statistics"] == "events" else "the values that filters name"
        about = f"about {format_time(self.work['nanoseconds'])} to judge an event, going by {learnt}"
        return f"matcher {self.kind}: {pluralize(self.work['subscriptions'], 'subscription')}, {about}"

    @property
    def slow(self) -> tuple[str, ...]:
        """What makes it slow, in plain words."""
        return tuple(self.work.get("slow", ()))

    def build_sheets(self) -> list[Sheet]:
        """Return the plan's tables: one for each segment, what waits, the attributes, the mismatches."""
        if "segments" in self.work:
            sheets = [_build_segment_sheet(number, segment) for number, segment in enumerate(self.work["segments"], 1)]
            waiting = self.work["waiting"]
            if waiting["subscriptions"]:
                cost = format_time(waiting["nanoseconds"])
                sheets.append(Sheet(f"waiting: {waiting['subscriptions']:,} asked one by one, {cost}", (), ()))
        else:
            sheets = [Sheet("work", (), tuple((name, str(value)) for name, value in self.work.items()))]
        lists: dict[str, Sequence[tuple[str, ...]]] = {
            "attributes": self._describe_attributes(),
            "values not as asked for": [(str(report),) for report in self.mismatches],
        }
        for title, rows in lists.items():
            if rows:
                more = len(rows) - 2 * SHOWN
                notes = (f"and {pluralize(more, 'more attribute')}",) if more > 0 else ()
                sheets.append(Sheet(title, (), tuple(rows[: 2 * SHOWN]), notes=notes))
        return sheets

    def __str__(self) -> str:
        slow = [f"slow: {reason}" for reason in self.slow]
        return "\n".join([self.headline, *slow, *map(str, self.build_sheets())])


def format_time(nanoseconds: float) -> str:
    """Return a time in the unit that suits it.

    >>> format_time(850), format_time(12_340), format_time(4_000_000)
    ('850 ns', '12 µs', '4.0 ms')
    """
    for unit, size in (("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            value = nanoseconds / size
            return f"{value:.1f} {unit}" if value < 10 else f"{value:,.0f} {unit}"
    return f"{nanoseconds:.0f} ns"


HEAD = ("found by", "how", "rows", "clusters", "tiles", "candidates", "time", "because")


def _build_segment_sheet(number: int, segment: Mapping[str, Any]) -> Sheet:
    size = f"{segment['rows']:,} rows, {segment['bytes a subscription']:,.0f} bytes a subscription"
    removed = f" ({segment['removed']:,} more are removed)" if segment["removed"] else ""
    title = f"segment {number}: {pluralize(segment['subscriptions'], 'subscription')}{removed}, {size}"
    listed, others = segment["paths"][:SHOWN], segment["paths"][SHOWN:]
    notes = []
    if others:
        cost = format_time(sum(path["nanoseconds"] for path in others))
        notes.append(f"and {len(others):,} more ways: {sum(path['rows'] for path in others):,} rows, {cost}")
    return Sheet(
        f"{title}, {format_time(segment['nanoseconds'])}",
        HEAD if listed else (),
        tuple(map(_format_path, listed)),
        frozenset(range(2, 7)),
        (*notes, *_describe_parts(segment)),
    )


def _format_path(path: Mapping[str, Any]) -> tuple[str, ...]:
    counts = (f"{path[name]:,}" for name in ("rows", "clusters", "tiles"))
    columns, candidates = ", ".join(path["columns"]) or "-", path["candidates"]
    average = f"{candidates:,.0f}" if candidates >= 10 else f"{candidates:.1f}"
    return columns, path["kind"], *counts, average, format_time(path["nanoseconds"]), path["reason"]


def _describe_parts(segment: Mapping[str, Any]) -> list[str]:
    """Return a line for each part of a segment beside its access paths: bitmaps, trees, text, exact checks."""
    lines = []
    if exact := segment["bitmaps"]["decide"]:
        lines.append(f"bitmaps of {pluralize(exact, 'tile')} decide")
    if rough := segment["bitmaps"]["need a check"]:
        lines.append(f"what bitmaps of {pluralize(rough, 'tile')} let through is checked")
    if trees := segment.get("trees"):
        shared = f"{trees['leaves']:,} leaves, {trees['shared']:,} sub-trees shared"
        lines.append(f"{pluralize(trees['trees'], 'tree')} over {shared}: {format_time(trees['nanoseconds'])}")
    if candidates := segment.get("found trees"):
        subject = "filter is found by some of its" if candidates["trees"] == 1 else "filters are found by some of their"
        possessive = "its" if candidates["trees"] == 1 else "their"
        parts = f"{candidates['trees']:,} {subject} literals and decided by {possessive} whole tree"
        lines.append(f"{parts}: {format_time(candidates['nanoseconds'])}")
    if text := segment.get("text"):
        without = f", {text['expressions without']:,} without a literal" if text["expressions without"] else ""
        kinds = f"{text['patterns']:,} patterns, {text['literals']:,} literals{without}"
        lines.append(f"text of {join_first(text['attributes'], 3)}: {kinds}: {format_time(text['nanoseconds'])}")
    if second := segment.get("second phase"):
        checks = []
        if filters := second["filters with areas"]:
            checks.append(f"{pluralize(second['areas'], 'area')} of {pluralize(filters, 'filter')}")
        if filters := second["filters by the law"]:
            tests = pluralize(second["tests by the law"], "test")
            checks.append(f"{tests} of {pluralize(filters, 'filter')} by the law")
        lines.append(f"second phase: {', '.join(checks)}: {format_time(second['nanoseconds'])}")
    return lines


def _describe_specs(specs: tuple[ReadSpec, ...]) -> str:
    """Return what an attribute is read as; where filters ask for several kinds, all of them."""
    kinds = dict.fromkeys(_describe_spec(spec) for spec in specs if spec.kind is not None or len(specs) == 1)
    return " ".join([*(["several"] if specs[0].several else []), " and ".join(kinds)])


def _describe_spec(spec: ReadSpec) -> str:
    parts = (spec.kind.value if spec.kind else "any", spec.tree, f"in {spec.unit}" if spec.unit else None)
    return " ".join(part for part in parts if part)
