"""The plan that `explain` returns: printable, and plain values through `to_dict`.

A plan is a headline, sheets (small tables) and what makes it slow. `str()` sets them in columns of plain text; the
command line draws the same sheets on a terminal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidings.algebra import ReadSpec
from tidings.matcher.mismatch_report import MismatchReport

SHOWN = 12
"""Lines of a long list that are printed; `to_dict` has all of them."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A small table: `numbers` says which of its columns stand to the right; `notes` come below it."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [line for line in (self.head, *self.rows) if line]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        set_lines = (self._line(line, widths) for line in lines)
        return "\n".join([self.title, *(f"  {line}" for line in (*set_lines, *self.notes))])

    def _line(self, line: tuple[str, ...], widths: list[int]) -> str:
        cells = (
            cell.rjust(width) if at in self.numbers else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
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
        attributes = {name: _words(need) for name, need in sorted(self.attributes.items())}
        mismatches = {"mismatches": [report.to_dict() for report in self.mismatches]} if self.mismatches else {}
        return {"kind": self.kind, **self.work, "attributes": attributes, **mismatches}

    @property
    def headline(self) -> str:
        """The plan in one line."""
        if "segments" not in self.work:
            return f"matcher {self.kind}"
        learnt = "sampled events" if self.work["statistics"] == "events" else "the values that filters name"
        about = f"about {time_of(self.work['nanoseconds'])} to judge an event, going by {learnt}"
        return f"matcher {self.kind}: {_many(self.work['subscriptions'], 'subscription')}, {about}"

    @property
    def slow(self) -> tuple[str, ...]:
        """What makes it slow, in plain words."""
        return tuple(self.work.get("slow", ()))

    def sheets(self) -> list[Sheet]:
        """Return the plan's tables: one for each segment, what waits, the attributes."""
        if "segments" in self.work:
            made = [_segment(number, segment) for number, segment in enumerate(self.work["segments"], 1)]
            waiting = self.work["waiting"]
            if waiting["subscriptions"]:
                cost = time_of(waiting["nanoseconds"])
                made.append(Sheet(f"waiting: {waiting['subscriptions']:,} asked one by one, {cost}", (), ()))
        else:
            made = [Sheet("work", (), tuple((name, str(value)) for name, value in self.work.items()))]
        if self.attributes:
            rows = tuple((name, _words(need)) for name, need in sorted(self.attributes.items()))
            made.append(Sheet("attributes", (), rows[: 2 * SHOWN], notes=_rest(len(rows), "attribute")))
        if self.mismatches:
            lines = tuple((str(report),) for report in self.mismatches)
            rest = _rest(len(lines), "attribute")
            made.append(Sheet("values not as asked for", (), lines[: 2 * SHOWN], notes=rest))
        return made

    def __str__(self) -> str:
        return "\n".join([self.headline, *(f"slow: {reason}" for reason in self.slow), *map(str, self.sheets())])


def time_of(nanoseconds: float) -> str:
    """Return a time in the unit that suits it.

    >>> time_of(850), time_of(12_340), time_of(4_000_000)
    ('850 ns', '12 µs', '4.0 ms')
    """
    for unit, size in (("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            value = nanoseconds / size
            return f"{value:.1f} {unit}" if value < 10 else f"{value:,.0f} {unit}"
    return f"{nanoseconds:.0f} ns"


HEAD = ("found by", "how", "rows", "clusters", "tiles", "candidates", "time", "because")


def _segment(number: int, segment: Mapping[str, Any]) -> Sheet:
    size = f"{segment['rows']:,} rows, {segment['bytes a subscription']:,.0f} bytes a subscription"
    removed = f" ({segment['removed']:,} more are removed)" if segment["removed"] else ""
    title = f"segment {number}: {_many(segment['subscriptions'], 'subscription')}{removed}, {size}"
    paths = segment["paths"]
    shown, rest = paths[:SHOWN], paths[SHOWN:]
    notes = []
    if rest:
        cost = time_of(sum(path["nanoseconds"] for path in rest))
        notes.append(f"and {len(rest):,} more ways: {sum(path['rows'] for path in rest):,} rows, {cost}")
    return Sheet(
        f"{title}, {time_of(segment['nanoseconds'])}",
        HEAD if shown else (),
        tuple(_path(path) for path in shown),
        frozenset(range(2, 7)),
        (*notes, *_parts(segment)),
    )


def _path(path: Mapping[str, Any]) -> tuple[str, ...]:
    counts = (f"{path[name]:,}" for name in ("rows", "clusters", "tiles"))
    columns, candidates = ", ".join(path["columns"]) or "-", path["candidates"]
    few = f"{candidates:,.0f}" if candidates >= 10 else f"{candidates:.1f}"
    return columns, path["kind"], *counts, few, time_of(path["nanoseconds"]), path["reason"]


def _parts(segment: Mapping[str, Any]) -> list[str]:
    lines = []
    if exact := segment["bitmaps"]["decide"]:
        lines.append(f"bitmaps of {_many(exact, 'tile')} decide")
    if rough := segment["bitmaps"]["need a check"]:
        lines.append(f"what bitmaps of {_many(rough, 'tile')} let through is checked")
    if trees := segment.get("trees"):
        parts = f"{_many(trees['trees'], 'tree')} over {trees['leaves']:,} leaves, {trees['shared']:,} sub-trees shared"
        lines.append(f"{parts}: {time_of(trees['nanoseconds'])}")
    if candidates := segment.get("found trees"):
        who = "filter is found by some of its" if candidates["trees"] == 1 else "filters are found by some of their"
        whose = "its" if candidates["trees"] == 1 else "their"
        parts = f"{candidates['trees']:,} {who} literals and decided by {whose} whole tree"
        lines.append(f"{parts}: {time_of(candidates['nanoseconds'])}")
    if text := segment.get("text"):
        without = f", {text['expressions without']:,} without a literal" if text["expressions without"] else ""
        kinds = f"{text['patterns']:,} patterns, {text['literals']:,} literals{without}"
        lines.append(f"text of {_join_names(text['attributes'])}: {kinds}: {time_of(text['nanoseconds'])}")
    if second := segment.get("second phase"):
        areas, law = second["filters with areas"], second["filters by the law"]
        left = [f"{_many(second['areas'], 'area')} of {_many(areas, 'filter')}"] if areas else []
        left += [f"{_many(second['tests by the law'], 'test')} of {_many(law, 'filter')} by the law"] if law else []
        lines.append(f"second phase: {', '.join(left)}: {time_of(second['nanoseconds'])}")
    return lines


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _join_names(names: list[str]) -> str:
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _rest(count: int, noun: str) -> tuple[str, ...]:
    return (f"and {_many(count - 2 * SHOWN, f'more {noun}')}",) if count > 2 * SHOWN else ()


def _words(needs: tuple[ReadSpec, ...]) -> str:
    """Return what an attribute is read as; where filters ask for several kinds, all of them."""
    ways = dict.fromkeys(_way(need) for need in needs if need.kind is not None or len(needs) == 1)
    return " ".join([*(["several"] if needs[0].several else []), " and ".join(ways)])


def _way(need: ReadSpec) -> str:
    parts = (need.kind.value if need.kind else "any", need.tree, f"in {need.unit}" if need.unit else None)
    return " ".join(part for part in parts if part)
