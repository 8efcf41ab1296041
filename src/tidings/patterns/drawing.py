"""Machines as text, as Graphviz and as a self-contained SVG, all from one small description.

The SVG is laid out in columns by distance from the start, so an arrow leads at most one column to the right. Arrows
back, and those within a column, run below everything: each state that they lead to has lanes of its own there, in one
colour. Nothing but this module is needed to draw; up to about forty states stay readable.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class DrawnState:
    """A circle; a final one is drawn double, and an arrow from nowhere leads to an initial one."""

    name: str
    note: str = ""
    final: bool = False
    initial: bool = False


@dataclass(frozen=True, slots=True)
class Arrow:
    """From one state to another, by their names."""

    source: str
    target: str
    label: str


@dataclass(frozen=True, slots=True)
class Picture:
    """What is drawn of a machine."""

    title: str
    states: tuple[DrawnState, ...]
    arrows: tuple[Arrow, ...]


# Text and Graphviz ----------------------------------------------------------------------------------


def to_text(picture: Picture) -> str:
    """Return the picture as lines: each state (`>` initial, `!` final) and under it the arrows that leave it.

    >>> states = DrawnState("N0", initial=True), DrawnState("N1", final=True)
    >>> print(to_text(Picture("a", states, (Arrow("N0", "N1", "a"),))))
    a: 2 states, 1 arrows
    >  N0
         a -> N1
     ! N1
    """
    lines = [f"{picture.title}: {len(picture.states)} states, {len(picture.arrows)} arrows"]
    for state in picture.states:
        flags = (">" if state.initial else " ") + ("!" if state.final else " ")
        lines.append(f"{flags} {state.name}  {', '.join(state.note.splitlines())}".rstrip())
        arrows = (arrow for arrow in picture.arrows if arrow.source == state.name)
        leaving = [(", ".join(arrow.label.splitlines()), arrow.target) for arrow in arrows]
        width = max((len(label) for label, _ in leaving), default=0)
        lines += [f"     {label:{width}} -> {target}" for label, target in leaving]
    return "\n".join(lines)


def to_dot(picture: Picture) -> str:
    """Return the picture in Graphviz's language: `dot -Tsvg` draws it."""
    numbers = {state.name: place for place, state in enumerate(picture.states)}
    lines = [f"digraph {_quote(picture.title)} {{", "  rankdir=LR;"]
    for state, place in zip(picture.states, numbers.values(), strict=True):
        shape = "doublecircle" if state.final else "circle"
        lines.append(f"  n{place} [label={_quote(state.name)}, xlabel={_quote(state.note)}, shape={shape}];")
        if state.initial:
            lines += [f"  start{place} [shape=point, style=invis];", f"  start{place} -> n{place};"]
    lines += [f"  n{numbers[a.source]} -> n{numbers[a.target]} [label={_quote(a.label)}];" for a in picture.arrows]
    return "\n".join([*lines, "}"]) + "\n"


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


# SVG ------------------------------------------------------------------------------------------------

CHARACTER = 7.3
"""Pixels of one character of the type used, so that room can be made without asking a font."""

LINE, LANE, TRACK, MARGIN, WIDEST = 14, 9, 8, 28, 30
"""Pixels between lines of text, above a lane, between upright tracks, around it all; characters of a label's line."""

PAPER = '<rect width="100%" height="100%" fill="#fff"/>'
INK = "#222222"
"""The colour of everything but the lanes."""

COLOURS = ("#33658a", "#a23b3b", "#3a7d44", "#8a5a00", "#6b4c9a", "#0f766e")
"""The colours of the lanes, by the state they lead to."""


def to_svg(picture: Picture) -> str:
    """Return the picture as an SVG document of its natural size."""
    layout = _Layout(picture)
    drawn = [
        *(part for bundle in layout.back for part in _draw_lane(layout, bundle)),
        *(part for bundle in layout.ahead for part in _draw_ahead(layout, bundle)),
        *(part for bundle in layout.loops for part in _draw_loop(layout, bundle)),
        *(part for state in picture.states for part in _draw_state(layout, state)),
        *_write_lines(MARGIN, MARGIN - 8, [picture.title], anchor="start"),
    ]
    width, height = f"{layout.width:.0f}", f"{layout.height:.0f}"
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    kind = 'xmlns="http://www.w3.org/2000/svg" font-family="DejaVu Sans Mono, monospace" font-size="12"'
    heads = "".join(_draw_head(colour) for colour in (INK, *COLOURS))
    opening = [f"<svg {kind} {size}>", f"<title>{_escape_line(picture.title)}</title>", f"<defs>{heads}</defs>", PAPER]
    return "\n".join([*opening, *drawn, "</svg>\n"])


@dataclass(frozen=True, slots=True)
class _Bundle:
    """All arrows from one state to another, drawn as one; `number` tells those of one column and target apart."""

    source: str
    target: str
    label: tuple[str, ...]
    number: int = 0


class _Layout:
    """The layout of a drawing: the column and row of each state, and the room that labels occupy."""

    def __init__(self, picture: Picture) -> None:
        self.states = {state.name: state for state in picture.states}
        self.radius = max([20.0, *(len(name) * CHARACTER / 2 + 8 for name in self.states)])
        bundles = _join_labels(picture.arrows)
        self.columns = _order_rows(_split_columns(picture, bundles), bundles)
        self.column = {name: place for place, names in enumerate(self.columns) for name in names}
        self.loops = [bundle for bundle in bundles if bundle.source == bundle.target]
        self.ahead = [bundle for bundle in bundles if self.column[bundle.target] > self.column[bundle.source]]
        self.back = self._assign_lanes(bundle for bundle in bundles if bundle not in {*self.ahead, *self.loops})
        self.notes = {name: _wrap_label(state.note) for name, state in self.states.items()}
        self.occupied: list[tuple[float, float, float]] = []
        self._place_rows()
        self._place_columns()
        self._place_lanes()

    def get_colour(self, target: str) -> str:
        """Return the colour of the lanes that lead to a state."""
        return COLOURS[list(self.states).index(target) % len(COLOURS)]

    def place_label(self, bundle: _Bundle) -> tuple[float, float]:
        """Return a place for the label of an arrow ahead, on its curve and, if there is one, on no other label."""
        (left, right), tall = self.gap[self.column[bundle.source]], LINE * len(bundle.label)
        start, end, half = self.y[bundle.source], self.y[bundle.target], _measure_label(bundle.label) / 2
        x = y = 0.0
        for t in (0.5, 0.38, 0.62, 0.28, 0.72, 0.2, 0.8):
            along = left + (right - left) * (1.5 * t * (1 - t) + t**3)
            x, y = min(max(along, left + half), right - half), start + (end - start) * (3 - 2 * t) * t * t
            if not any(abs(x - at) < half + wide and abs(y - height) < tall for at, height, wide in self.occupied):
                break
        self.occupied.append((x, y, half + 4))
        return x, y

    def _assign_lanes(self, bundles: Iterable[_Bundle]) -> list[_Bundle]:
        """Give arrows from one column to one target a lane each, so that their labels do not meet."""
        seen: dict[tuple[int, str], int] = defaultdict(int)
        numbered = []
        for bundle in bundles:
            place = self.column[bundle.source], bundle.target
            numbered.append(replace(bundle, number=seen[place]))
            seen[place] += 1
        return numbered

    def _place_rows(self) -> None:
        loops = {bundle.source: bundle.label for bundle in self.loops}
        y = MARGIN
        self.y: dict[str, float] = {}
        for row in range(max(map(len, self.columns), default=0)):
            names = [column[row] for column in self.columns if row < len(column)]
            above = max(LINE * len(loops[name]) + 34 if name in loops else 10 for name in names)
            below = max(LINE * len(self.notes[name]) for name in names) + 14
            self.y |= dict.fromkeys(names, y + above + self.radius)
            y += int(above + 2 * self.radius + below)
        self.bottom = y

    def _place_columns(self) -> None:
        x = float(MARGIN + 24)
        self.x: dict[str, float] = {}
        self.down: dict[_Bundle, float] = {}
        self.up: dict[str, float] = {}
        self.gap: list[tuple[float, float]] = []
        for place, names in enumerate(self.columns):
            entered = [name for name in names if any(bundle.target == name for bundle in self.back)]
            leaving = [bundle for bundle in self.back if self.column[bundle.source] == place]
            self.up |= {name: x + TRACK * number for number, name in enumerate(entered)}
            labels = [self.notes[name] for name in names]
            labels += [bundle.label for bundle in self.loops if bundle.source in names]
            half = max([self.radius, *(_measure_label(label) / 2 for label in labels)])
            centre = x + TRACK * (len(entered) + 1) + half
            self.x |= dict.fromkeys(names, centre)
            self.down |= {bundle: centre + half + TRACK * (number + 1) for number, bundle in enumerate(leaving)}
            ahead = [_measure_label(bundle.label) for bundle in self.ahead if self.column[bundle.source] == place]
            left = centre + half + TRACK * (len(leaving) + 1)
            # Labels of lanes lie left of where their arrows come down: a column is as wide as its widest one.
            least = x + max((_measure_label(bundle.label) for bundle in leaving), default=0) + 2 * TRACK
            x = max(left + max(ahead, default=0) + 24 + 5 * min(len(ahead), 30), least)
            self.gap.append((left, x - TRACK))
        self.width = x + MARGIN

    def _place_lanes(self) -> None:
        """Lanes to the left lie lower, so that arrows cross seldom."""
        tall: dict[tuple[str, int], int] = defaultdict(int)
        for bundle in self.back:
            tall[bundle.target, bundle.number] = max(tall[bundle.target, bundle.number], len(bundle.label))
        y = self.bottom + 6.0
        self.lane: dict[tuple[str, int], float] = {}
        for key in sorted(tall, key=lambda key: (-self.column[key[0]], self.y[key[0]], key[1])):
            y += LINE * tall[key] + LANE
            self.lane[key] = y
        self.height = y + MARGIN


def _join_labels(arrows: Iterable[Arrow]) -> list[_Bundle]:
    labels: dict[tuple[str, str], list[str]] = defaultdict(list)
    for arrow in arrows:
        labels[arrow.source, arrow.target] += _wrap_label(arrow.label)
    return [_Bundle(source, target, tuple(label)) for (source, target), label in labels.items()]


def _wrap_label(text: str) -> tuple[str, ...]:
    return tuple(part for line in text.splitlines() for part in wrap(line, WIDEST))


def _split_columns(picture: Picture, bundles: list[_Bundle]) -> list[list[str]]:
    """Return the states by their distance from the start; those out of reach come last."""
    names = [state.name for state in picture.states]
    now = [state.name for state in picture.states if state.initial] or names[:1]
    columns, placed = [], set(now)
    while now:
        columns.append(now)
        targets = dict.fromkeys(bundle.target for bundle in bundles if bundle.source in now)
        now = [target for target in targets if target not in placed]
        placed |= set(now)
    rest = [name for name in names if name not in placed]
    return [*columns, *([rest] if rest else [])]


def _order_rows(columns: list[list[str]], bundles: list[_Bundle]) -> list[list[str]]:
    """Put each state near those that lead to it from the column before: fewer arrows cross."""
    ordered = columns[:1]
    for column in columns[1:]:
        before = {name: row for row, name in enumerate(ordered[-1])}
        rows: dict[str, list[int]] = {name: [] for name in column}
        for bundle in bundles:
            if bundle.source in before and bundle.target in rows:
                rows[bundle.target].append(before[bundle.source])
        ordered.append(sorted(column, key=lambda name: sum(rows[name]) / max(len(rows[name]), 1)))
    return ordered


def _measure_label(label: Sequence[str]) -> float:
    return max(map(len, label), default=0) * CHARACTER


def _draw_lane(layout: _Layout, bundle: _Bundle) -> list[str]:
    """Draw an arrow back: right and down from its source, along its lane, up and right to its target."""
    side, low = layout.radius * 0.87, layout.radius * 0.5
    down, along, up = layout.down[bundle], layout.lane[bundle.target, bundle.number], layout.up[bundle.target]
    start = f"M {layout.x[bundle.source] + side:.1f} {layout.y[bundle.source] + low:.1f}"
    end = f"V {layout.y[bundle.target] + low:.1f} H {layout.x[bundle.target] - side - 1:.1f}"
    line = _draw_path(f"{start} H {down:.1f} V {along:.1f} H {up:.1f} {end}", layout.get_colour(bundle.target))
    top = along - 4 - LINE * (len(bundle.label) - 1)
    return [line, *_write_lines(down - 4, top, bundle.label, anchor="end", colour=layout.get_colour(bundle.target))]


def _draw_ahead(layout: _Layout, bundle: _Bundle) -> list[str]:
    """Draw an arrow to the next column: a curve between where arrows back come down and where they go up."""
    y, to_y = layout.y[bundle.source], layout.y[bundle.target]
    left, right = layout.gap[layout.column[bundle.source]]
    start, end = layout.x[bundle.source] + layout.radius, layout.x[bundle.target] - layout.radius - 1
    curve = f"C {(left + right) / 2:.1f} {y:.1f} {(left + right) / 2:.1f} {to_y:.1f} {right:.1f} {to_y:.1f}"
    x, at = layout.place_label(bundle)
    line = _draw_path(f"M {start:.1f} {y:.1f} H {left:.1f} {curve} H {end:.1f}", INK)
    rise = 8 if y == to_y else 12  # above a straight line, across a curve
    return [line, *_write_lines(x, at + rise - LINE * len(bundle.label), bundle.label)]


def _draw_loop(layout: _Layout, bundle: _Bundle) -> list[str]:
    x, y = layout.x[bundle.source], layout.y[bundle.source] - layout.radius + 1
    curve = f"C {x - 26:.1f} {y - 32:.1f} {x + 26:.1f} {y - 32:.1f} {x + 8:.1f} {y:.1f}"
    line = _draw_path(f"M {x - 8:.1f} {y + 1:.1f} {curve}", INK)
    return [line, *_write_lines(x, y - 29 - LINE * (len(bundle.label) - 1), bundle.label)]


def _draw_state(layout: _Layout, state: DrawnState) -> list[str]:
    x, y, radius = layout.x[state.name], layout.y[state.name], layout.radius
    look = f'cx="{x:.1f}" cy="{y:.1f}" fill="#fff" stroke="{INK}" stroke-width="1.5"'
    drawn = [f'<circle r="{radius - 4 * inner:.1f}" {look}/>' for inner in range(1 + state.final)]
    if state.initial:
        drawn.append(_draw_path(f"M {x - radius - 26:.1f} {y:.1f} H {x - radius - 1:.1f}", INK))
    below = _write_lines(x, y + radius + LINE, layout.notes[state.name], colour="#555")
    return [*drawn, *_write_lines(x, y + 4, [state.name]), *below]


def _draw_path(path: str, colour: str) -> str:
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.3" marker-end="url(#to-{colour[1:]})"/>'


def _write_lines(x: float, y: float, lines: Sequence[str], *, anchor: str = "middle", colour: str = INK) -> list[str]:
    """Write lines from `y` down; a white edge keeps them readable on what they cross."""
    look = f'text-anchor="{anchor}" fill="{colour}" stroke="#fff" stroke-width="4" paint-order="stroke"'
    return [
        f'<text x="{x:.1f}" y="{y + LINE * i:.1f}" {look}>{_escape_line(line)}</text>' for i, line in enumerate(lines)
    ]


def _escape_line(line: str) -> str:
    return escape("".join(sign if sign.isprintable() else "?" for sign in line))


def _draw_head(colour: str) -> str:
    shape = f'<path d="M 0 0 L 8 4 L 0 8 z" fill="{colour}"/>'
    size = 'viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"'
    return f'<marker id="to-{colour[1:]}" {size}>{shape}</marker>'
