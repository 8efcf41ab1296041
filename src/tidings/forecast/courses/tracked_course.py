"""The course of a pattern that has no automaton: time conditions, an absence, joins, the mode `next`.

A cell is the furthest configuration that a partial match of the key stands at, and how old that match is against its
own limit, in quarters. Of each configuration one row of moments is followed, not the whole front, and variables
outside the key are not looked at: so the course is approximate. What completes is told by the detector, never guessed.
Cells of direct counts are told apart by the last few labels as well. Cost: see kernels.tracking.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.errors import PatternError, TooLarge
from tidings.forecast.courses.course import MOST_CELLS, Course, format_word, infer_single_values
from tidings.kernels.array_types import BoolArray, FloatArray, Int32Array, IntArray
from tidings.kernels.forecast import tracking as k
from tidings.model.patterns import Absence, Mode, Pattern
from tidings.patterns.compile.derivatives import Configuration, Configurations, Edge, configurations
from tidings.patterns.compile.minterms import minterms
from tidings.patterns.compile.terms import Mark

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

BINS = 6
"""Ages told apart where a condition asks for a least time: four before it has passed, two after."""

MOST_CHAIN = 256
"""Cells of the chain: the pattern's configurations are put together where they are more."""

MOST_LABELS = 16
"""Where there are more kinds of events, cells do not tell the last ones apart."""

MOST_NAMES = 62
"""Filters whose answers fit one number."""

MOST_WIDTH = 4096
"""Moments kept for each key."""

MOST_CALLED = 60
"""Letters of a cell's name."""


_WAIT = -1  # the number of the place where an absence is waited for


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a partial match may be: a configuration, or (`span`) the wait for an absence."""

    number: int = 0
    distance: tuple[int, int] = (0, 0)  # events to the end, at least and at most
    slots: tuple[Mark, ...] = ()
    contiguous: bool = False
    guards: tuple[str, ...] = ()
    limits: tuple[tuple[int, int], ...] = ()  # a moment of the row, and how long it may lie back
    earlier: bool = False
    span: int = 0
    aged: tuple[int, int] = (0, 0)  # the moment that age is counted from, and against what; 0: no age
    bins: int = 1
    called: str = "start"

    @property
    def width(self) -> int:
        """How many numbers its row has; where nothing has begun there is none."""
        return 0 if self.number == 0 else 2 if self.span else 1 + len(self.slots)


@dataclass(frozen=True, slots=True)
class _Way:
    """An edge to another place; `target=None`: the match is complete."""

    target: int | None
    edge: Edge


@dataclass(frozen=True, slots=True)
class _Map:
    """Places, the furthest first and the one where nothing has begun last, and the ways between them."""

    places: tuple[_Place, ...]
    ways: tuple[tuple[_Way, ...], ...]  # by their source
    first: tuple[int, ...]  # of each place its first cell
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Tracker:
    """Follows keys through a course. Bit j of an event's mask tells that it satisfies `names[j]`.

    A key's state is `width` numbers, made by `fresh`, moved on by `walk`. A pattern of more than 62 filters, or one
    whose rows need too much room, has no names and one cell: its course then tells how often it is matched, not when.
    """

    names: tuple[str, ...]
    width: int
    map: _Map
    nodes: IntArray
    order: IntArray
    edges: IntArray
    lists: IntArray
    minterms: IntArray
    settings: IntArray

    def fresh(self) -> IntArray:
        """Return the state of a key before its first event."""
        return np.append(np.full(self.width - 1, k.DEAD, np.int64), 0)

    def walk(
        self,
        states: IntArray,
        rows: IntArray,
        starts: IntArray,
        masks: IntArray,
        times: IntArray,
        hits: BoolArray,
    ) -> Int32Array:
        """Move states on and return the cell after each event.

        Entries `starts[s]:starts[s + 1]` are of the key whose state is `states[rows[s]]`. `hits` tells where the
        pattern was reported for the key: at this event, or (absence) at a deadline since the event before.
        """
        out = np.empty(len(masks), np.int32)
        whole = [np.ascontiguousarray(numbers, np.int64) for numbers in (rows, starts, masks, times)]
        k.walk(
            self.nodes, self.order, self.edges, self.lists, self.minterms, self.settings,
            states, *whole, np.ascontiguousarray(hits, np.bool_), out,
        )  # fmt: skip
        return out

    def cell(self, state: IntArray, now: int) -> int:
        """Return the cell of a key at a moment when no event came; rows that have expired by then do not count."""
        return int(k.find_cell(self.nodes, self.lists, self.settings, state, now))

    def prior(self, q: Mapping[str, float]) -> FloatArray:
        """Guess, before anything was counted, where an event leads from each cell of the chain, or to a match (last).

        `q` tells how often an event satisfies each filter. Time conditions are taken to hold.
        """
        size = len(self.map.cells)
        prior, share = np.zeros((size, size + 1)), np.zeros(size)
        for place, node in enumerate(self.map.places):
            for age in range(node.bins):
                cell = self.map.first[place] + age
                share[cell] += 1
                for target, chance in self._guess_moves(place, age, q):
                    prior[cell, target] += chance
        return np.asarray(prior / share[:, None])

    def _guess_moves(self, place: int, age: int, q: Mapping[str, float]) -> list[tuple[int, float]]:
        """Return where an event may lead from a place, with chances that make 1 together."""
        node, first = self.map.places[place], self.map.first
        moves = [(0, q.get(name, 0.0)) for name in node.guards]
        for way in self.map.ways[place]:
            # A step to a place that is less far is not seen while the source waits on.
            if way.target is None or way.target < place or node.contiguous:
                target = len(self.map.cells) if way.target is None else first[way.target]
                moves.append((target, q.get(way.edge.filter, 0.0)))
        total = sum(chance for _, chance in moves)
        if total > 1:
            return [(target, chance / total) for target, chance in moves]
        rest, stays = 1.0 - total, 0 if node.contiguous else first[place] + age
        if not node.span:
            return [*moves, (stays, rest)]
        # Nothing is known of time here: say that every other event finds the wait a quarter further.
        on = stays + 1 if age + 1 < node.bins else len(self.map.cells)
        return [*moves, (stays, rest / 2), (on, rest / 2)]


def build_tracked_course(pattern: Pattern, mode: Mode, *, context: int, **surroundings: Any) -> Course:
    """Return the approximate course of a pattern; its table is of the chain, its cells also know the last labels."""
    names, graph, absence = pattern.list_filters(), configurations(pattern), pattern.absence
    if len(names) > MOST_NAMES or sum(1 + len(node.uses) for node in graph.nodes) > MOST_WIDTH:
        names, graph, absence = (), _NOTHING, None
    drawn = _build_map(graph, absence)
    symbols = _list_symbols(pattern, names, **surroundings)
    size, width = len(drawn.cells), len(symbols)
    depth = 0
    while depth < context and width > 1 and size * width ** (depth + 1) <= MOST_CELLS:
        depth += 1
    chain = np.repeat(np.arange(size), width**depth)
    word = np.tile(np.arange(width**depth), size)
    return Course(
        approximate=True,
        states=drawn.cells,
        labels=(*drawn.cells, "match"),
        table=np.tile(np.append(np.arange(size, dtype=np.int32), np.int32(0)), (size, 1)),
        hits=np.tile(np.arange(size + 1) == size, (size, 1)),
        groups=np.array([chain * width**j + word % width**j for j in range(depth + 1)], np.int32),
        idle=chain == 0,
        chain=chain.astype(np.int32),
        start=0,
        depth=depth,
        tracker=_build_tracker(drawn, names, symbols, mode=mode, words=width**depth),
    )


_NOTHING = Configurations((Configuration(contiguous=False, guards=(), limits=(), uses=()),), (), None)


def _list_symbols(pattern: Pattern, names: tuple[str, ...], **surroundings: Any) -> list[int]:
    """Return the kinds of events as masks; one alone where they cannot be told, or are too many."""
    if surroundings.get("schema") is None:
        surroundings = surroundings | {"schema": infer_single_values(pattern, **surroundings)}
    try:
        alphabet = minterms([pattern[name] for name in names], budget=4 * MOST_LABELS, **surroundings)
    except (TooLarge, PatternError):
        return [0]
    return [_mask(symbol, names) for symbol in alphabet.symbols] if len(alphabet) <= MOST_LABELS else [0]


def _mask(chosen: Iterable[str], names: Sequence[str]) -> int:
    return sum(1 << names.index(name) for name in set(chosen))


# Places ---------------------------------------------------------------------------------------------


def _build_map(graph: Configurations, absence: Absence | None) -> _Map:
    """Put the configurations from which the end can be reached in the order of how far they are."""
    leaving: dict[int, list[Edge]] = {number: [] for number in range(len(graph.nodes))}
    for edge in graph.edges:
        leaving[edge.source].append(edge)
    words, distances = _find_words(leaving), _measure_distances(leaving)
    places = [
        replace(_place(graph, number, leaving[number]), distance=distances[number], called=words[number])
        for number in leaving
        if number in distances
    ]
    if absence is not None:
        places.append(_build_wait(absence, words.get(None, "")))
    # Nothing begun comes last, however near the end it is: it always lives, and would hide what has begun.
    places.sort(key=lambda place: (place.number == 0, place.distance[0], place.number))
    at: dict[int | None, int | None] = {None: None} | {place.number: rank for rank, place in enumerate(places)}
    at[None] = at.get(_WAIT)
    ways = [[_Way(at[out.target], out) for out in leaving.get(p.number, ()) if out.target in at] for p in places]
    return _number_cells(places, tuple(map(tuple, ways)))


def _measure_distances(leaving: Mapping[int, list[Edge]]) -> dict[int | None, tuple[int, int]]:
    """Return how many events lie between each configuration and the end, at least and at most, if it can be reached."""
    sources: dict[int | None, list[int]] = defaultdict(list)
    for source, edges in leaving.items():
        for edge in edges:
            sources[edge.target].append(source)
    waiting = {source: len(edges) for source, edges in leaving.items()}
    distances: dict[int | None, tuple[int, int]] = {0: (0, 0), None: (0, 0)}
    for target in (ready := [None, *(source for source, edges in leaving.items() if not edges)]):  # grows
        for source in sources[target]:
            if target in distances:
                least, most = distances[target]
                distance = distances.get(source, (0, 0))
                distances[source] = min(distance[0] or least + 1, least + 1), max(distance[1], most + 1)
            waiting[source] -= 1
            ready += [] if waiting[source] else [source]
    return distances


def _find_words(leaving: Mapping[int, list[Edge]]) -> dict[int | None, str]:
    """Return of each configuration, and of the end, a shortest word of filters that leads there."""
    words: dict[int | None, tuple[str, ...]] = {0: ()}
    for source in (queue := [0]):  # grows while it is read
        for edge in leaving[source]:
            if edge.target not in words:
                words[edge.target] = (*words[source], edge.filter)
                queue += [] if edge.target is None else [edge.target]
    texts = {place: format_word(word) for place, word in words.items()}
    return {place: word if len(word) <= MOST_CALLED else "…" + word[1 - MOST_CALLED :] for place, word in texts.items()}


def _place(graph: Configurations, number: int, edges: list[Edge]) -> _Place:
    node = graph.nodes[number]
    slots = tuple(mark for mark, _ in node.uses)
    limits = [(1 + slots.index(mark), high) for mark, high in node.limits]
    limits += [(0, graph.within)] if number and graph.within is not None else []
    waits = [
        (1 + slots.index(check.early), check.low)
        for edge in edges
        for check in edge.checks
        if check.late is None and check.early is not None and check.low is not None and check.low > 0
    ]
    # Past a limit a row is dead; past the least time that a step must wait it lives on.
    aged = min(limits or waits, key=lambda bound: bound[::-1], default=(0, 0))
    wishes = {wish for _, wish in node.uses}
    return _Place(
        number,
        slots=slots,
        contiguous=node.contiguous,
        guards=node.guards,
        limits=tuple(limits),
        earlier=-1 in wishes and 1 not in wishes,
        aged=aged,
        bins=1 if aged[1] <= 0 else 4 if limits else BINS,
    )


def _build_wait(absence: Absence, word: str) -> _Place:
    """Return the place where an absence is waited for: the first deadline to come, and the last one."""
    return _Place(
        _WAIT,
        guards=absence.without,
        limits=((1, absence.span - 1),),
        span=absence.span,
        aged=(0, absence.span),
        bins=4,
        called=f"{word} then not {' or '.join(absence.without)}",
    )


# Cells of the chain ---------------------------------------------------------------------------------


def _number_cells(places: list[_Place], ways: tuple[tuple[_Way, ...], ...]) -> _Map:
    """Give each place its cells, one for each age; places that are as far are put together until cells are few."""
    lefts = [place.distance[0] for place in places]
    bands = [left * (MOST_CHAIN - 2) // max(1, *lefts) for left in lefts]
    for chosen, bins in ((range(len(places)), BINS), (lefts, BINS), (lefts, 1), (bands, 1)):
        groups = [*chosen[:-1], -1]  # nothing begun stands alone
        ages: dict[int, int] = {}
        for place, group in zip(reversed(places), reversed(groups), strict=True):  # and is cell 0
            ages[group] = max(ages.get(group, 1), min(bins, place.bins))
        if sum(ages.values()) <= MOST_CHAIN:
            break
    first = dict(zip(ages, accumulate(ages.values(), initial=0), strict=False))
    return _Map(
        tuple(replace(place, bins=min(bins, place.bins)) for place in places),
        ways,
        tuple(first[group] for group in groups),
        _name_cells(places, groups, ages),
    )


def _name_cells(places: list[_Place], groups: list[int], ages: dict[int, int]) -> tuple[str, ...]:
    """Return distinct names of the cells."""
    members = Counter(groups)
    names = {
        group: place.called if members[group] == 1 else f"{place.distance[0]} to go"
        for place, group in zip(places, groups, strict=True)
    }
    counts: Counter[str] = Counter()
    cells = []
    for group, bins in ages.items():
        counts[names[group]] += 1
        again = f" ({counts[names[group]]})" if counts[names[group]] > 1 else ""
        cells += [f"{names[group]}{again}" + (f" age {age + 1}/{bins}" if bins > 1 else "") for age in range(bins)]
    return tuple(cells)


# Arrays ---------------------------------------------------------------------------------------------


def _build_tracker(drawn: _Map, names: tuple[str, ...], symbols: list[int], *, mode: Mode, words: int) -> Tracker:
    """Return the places and ways as arrays."""
    nodes, edges, lists = list[list[int]](), list[list[int]](), list[int]()
    starts = list(accumulate((place.width for place in drawn.places), initial=0))
    for rank, place in enumerate(drawn.places):
        ways = [way for way in drawn.ways[rank] if way.target is not None or mode is Mode.NEXT]
        limits = _put(lists, [number for limit in place.limits for number in limit])
        leaving = (len(edges), len(edges) + len(ways))
        edges += [_edge(way, place, drawn, names, lists) for way in ways]
        wanted = _mask((way.edge.filter for way in ways), names)
        nodes.append(
            [starts[rank] if place.width else -1, place.width, place.contiguous, _mask(place.guards, names), wanted,
             place.earlier, place.span, *limits, *leaving, place.aged[1], place.aged[0], place.bins, drawn.first[rank]]
        )  # fmt: skip
    awaits = any(place.span for place in drawn.places)
    settings = [mode is Mode.RESTART, awaits, mode is Mode.NEXT and not awaits, words]
    order = sorted(range(len(nodes)), key=lambda rank: drawn.places[rank].distance[1])
    arrays = [np.array(rows, np.int64) for rows in (nodes, order, edges, lists, symbols, settings)]
    arrays[2] = arrays[2].reshape(len(edges), k.EDGE_SIZE)
    return Tracker(names, starts[-1] + 1, drawn, *arrays)


def _edge(way: _Way, source: _Place, drawn: _Map, names: tuple[str, ...], lists: list[int]) -> list[int]:
    edge = way.edge
    slot = {mark: 1 + at for at, mark in enumerate(source.slots)} | {None: -1}
    checks: list[int] = []
    for check in edge.checks:
        low, high = k.DEAD if check.low is None else check.low, -k.DEAD if check.high is None else check.high
        checks += [slot[check.late], slot[check.early], low, high, int(check.absolute)]
    marks = () if way.target is None else drawn.places[way.target].slots
    begun = -1 if source.number == 0 else 0
    copies = [begun, *(-1 if mark in edge.stores else slot[mark] for mark in marks)]
    bounds, copied = _put(lists, checks), _put(lists, copies)
    target = -1 if way.target is None else way.target
    return [_mask([edge.filter], names), _mask(edge.forbid, names), target, *bounds, copied[0]]


def _put(lists: list[int], numbers: list[int]) -> tuple[int, int]:
    lists += numbers
    return len(lists) - len(numbers), len(lists)
