"""The course of a pattern that has no automaton: time conditions, an absence, joins, the mode `next`.

A cell is the furthest configuration that a partial match of the key stands at, and how old that match is against its
own limit, in quarters. Of each configuration one row of moments is followed, not the whole front, and variables
outside the key are not looked at: so the course is approximate. What completes is told by the detector, never guessed.
Cells of direct counts are told apart by the last few labels as well. Cost: see kernels.forecast.tracking.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from tidings.concepts import Vocabulary
from tidings.errors import PatternError, TooLarge
from tidings.forecast.courses import course
from tidings.forecast.courses.course import Course, TrackedMap, TrackedPlace, Tracker
from tidings.kernels.forecast import tracking
from tidings.model.patterns import Absence, Mode, Pattern
from tidings.patterns.compile.derivatives import Configuration, Configurations, Edge, derive_configurations
from tidings.patterns.compile.minterms import build_minterms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

BINS = 6
"""Ages told apart where a condition asks for a least time: four before it has passed, two after."""

MOST_CHAIN = 256
"""Chain states: the pattern's configurations are put together where they are more."""

MOST_LABELS = 16
"""Where there are more kinds of events, cells do not tell the last ones apart."""

MOST_NAMES = 62
"""Filters whose answers fit one number."""

MOST_WIDTH = 4096
"""Moments kept for each key."""

MOST_LETTERS = 60
"""Letters of a cell's name."""

_ABSENCE = -1  # the number of the place where an absence is waited for

_NOTHING = Configurations((Configuration(contiguous=False, guards=(), limits=(), uses=()),), (), None)


def build_tracked_course(pattern: Pattern, mode: Mode, *, context: int) -> Course:
    """Return the approximate course of a pattern; its table is of chain states, its cells also know the last labels."""
    names, graph, absence = pattern.list_filters(), derive_configurations(pattern), pattern.absence
    if len(names) > MOST_NAMES or sum(1 + len(node.uses) for node in graph.nodes) > MOST_WIDTH:
        names, graph, absence = (), _NOTHING, None
    tracked_map = _build_map(graph, absence)
    minterm_masks = _list_minterm_masks(pattern, names)
    size, width, depth = len(tracked_map.chain_states), len(minterm_masks), 0
    while depth < context and width > 1 and size * width ** (depth + 1) <= course.MOST_CELLS:
        depth += 1
    chain_state_of, word = np.divmod(np.arange(size * width**depth), width**depth)
    return Course(
        approximate=True,
        states=tracked_map.chain_states,
        labels=(*tracked_map.chain_states, "match"),
        table=np.tile(np.append(np.arange(size, dtype=np.int32), np.int32(0)), (size, 1)),
        hits=np.tile(np.arange(size + 1) == size, (size, 1)),
        groups=np.array([chain_state_of * width**j + word % width**j for j in range(depth + 1)], np.int32),
        idle=chain_state_of == 0,
        chain_state_of=chain_state_of.astype(np.int32),
        start=0,
        depth=depth,
        tracker=_build_tracker(tracked_map, names, minterm_masks, mode=mode, words=width**depth),
    )


def _list_minterm_masks(pattern: Pattern, names: tuple[str, ...]) -> list[int]:
    """Return the sets of filters that one event may satisfy exactly, as bit masks.

    Only the empty one if they are too many, or if the filters cannot be compared.
    """
    schema = course.infer_single_valued_schema(pattern)
    try:
        alphabet = build_minterms([pattern[name] for name in names], Vocabulary(schema), budget=4 * MOST_LABELS)
    except (TooLarge, PatternError):
        return [0]
    return [_make_mask(symbol, names) for symbol in alphabet.symbols] if len(alphabet) <= MOST_LABELS else [0]


def _make_mask(chosen: Iterable[str], names: Sequence[str]) -> int:
    return sum(1 << names.index(name) for name in set(chosen))


def _build_map(graph: Configurations, absence: Absence | None) -> TrackedMap:
    """Sort the configurations from which the end can be reached by how many events are missing."""
    leaving: dict[int, list[Edge]] = {number: [] for number in range(len(graph.nodes))}
    for edge in graph.edges:
        leaving[edge.source].append(edge)
    words, distances = _find_words(leaving), _measure_distances(leaving)
    places = [
        _make_place(graph, number, leaving[number])._replace(distance=distances[number], name=words[number])
        for number in leaving
        if number in distances
    ]
    if absence is not None:
        places.append(_make_absence_place(absence, words.get(None, "")))
    # Nothing begun comes last, however near the end it is: it always lives, and would hide what has begun.
    places.sort(key=lambda place: (place.number == 0, place.distance[0], place.number))
    at: dict[int | None, int | None] = {place.number: rank for rank, place in enumerate(places)}
    at[None] = at.get(_ABSENCE)
    edges = [[(at[out.target], out) for out in leaving.get(p.number, ()) if out.target in at] for p in places]
    return _number_states(places, tuple(map(tuple, edges)))


def _measure_distances(leaving: Mapping[int, list[Edge]]) -> dict[int | None, tuple[int, int]]:
    """Return how many events lie between each configuration and the end, at least and at most, if it can be reached."""
    sources: dict[int | None, list[int]] = defaultdict(list)
    for source, edges in leaving.items():
        for edge in edges:
            sources[edge.target].append(source)
    open_edges = {source: len(edges) for source, edges in leaving.items()}
    distances: dict[int | None, tuple[int, int]] = {0: (0, 0), None: (0, 0)}
    for target in (ready := [None, *(source for source, edges in leaving.items() if not edges)]):  # grows
        for source in sources[target]:
            if target in distances:
                least, most = distances[target]
                distance = distances.get(source, (0, 0))
                distances[source] = min(distance[0] or least + 1, least + 1), max(distance[1], most + 1)
            open_edges[source] -= 1
            ready += [] if open_edges[source] else [source]
    return distances


def _find_words(leaving: Mapping[int, list[Edge]]) -> dict[int | None, str]:
    """Return of each configuration, and of the end, a shortest word of filters that leads there."""
    words: dict[int | None, tuple[str, ...]] = {0: ()}
    for source in (queue := [0]):  # grows while it is read
        for edge in leaving[source]:
            if edge.target not in words:
                words[edge.target] = (*words[source], edge.filter)
                queue += [] if edge.target is None else [edge.target]
    texts = {place: course.format_word(word) for place, word in words.items()}
    return {at: text if len(text) <= MOST_LETTERS else "…" + text[1 - MOST_LETTERS :] for at, text in texts.items()}


def _make_place(graph: Configurations, number: int, edges: list[Edge]) -> TrackedPlace:
    node = graph.nodes[number]
    moments = tuple(moment for moment, _ in node.uses)
    limits = [(1 + moments.index(moment), high) for moment, high in node.limits]
    limits += [(0, graph.within)] if number and graph.within is not None else []
    least_delays = [
        (1 + moments.index(check.early), check.low)
        for edge in edges
        for check in edge.checks
        if check.late is None and check.early is not None and check.low is not None and check.low > 0
    ]
    # Past a limit a row is dead; past the least time that a step must wait it lives on.
    age_moment, age_limit = min(limits or least_delays, key=lambda bound: bound[::-1], default=(0, 0))
    directions = {direction for _, direction in node.uses}
    return TrackedPlace(
        number,
        moments=moments,
        contiguous=node.contiguous,
        guards=node.guards,
        limits=tuple(limits),
        prefers_earlier=-1 in directions and 1 not in directions,
        age_moment=age_moment,
        age_limit=age_limit,
        bins=1 if age_limit <= 0 else 4 if limits else BINS,
    )


def _make_absence_place(absence: Absence, word: str) -> TrackedPlace:
    """Return the place where an absence is waited for: the first deadline to come, and the last one."""
    return TrackedPlace(
        _ABSENCE,
        guards=absence.without,
        limits=((1, absence.span - 1),),
        span=absence.span,
        age_limit=absence.span,
        bins=4,
        name=f"{word} then not {' or '.join(absence.without)}",
    )


def _number_states(places: list[TrackedPlace], leaving: tuple[tuple[tuple[int | None, Edge], ...], ...]) -> TrackedMap:
    """Give each place its chain states, one for each age.

    While there are too many, places with as many events to go share theirs, then ages are not told apart, and at
    last places share theirs that have about as many events to go.
    """
    lefts = [place.distance[0] for place in places]
    bands = [left * (MOST_CHAIN - 2) // max(1, *lefts) for left in lefts]
    for chosen, bins in ((range(len(places)), BINS), (lefts, BINS), (lefts, 1), (bands, 1)):
        groups = [*chosen[:-1], -1]  # nothing begun stands alone
        ages: dict[int, int] = {}
        for place, group in zip(reversed(places), reversed(groups), strict=True):  # and is state 0
            ages[group] = max(ages.get(group, 1), min(bins, place.bins))
        if sum(ages.values()) <= MOST_CHAIN:
            break
    first = dict(zip(ages, accumulate(ages.values(), initial=0), strict=False))
    binned = tuple(place._replace(bins=min(bins, place.bins)) for place in places)
    return TrackedMap(binned, leaving, tuple(first[group] for group in groups), _name_states(places, groups, ages))


def _name_states(places: list[TrackedPlace], groups: list[int], ages: dict[int, int]) -> tuple[str, ...]:
    members = Counter(groups)
    names = {
        group: place.name if members[group] == 1 else f"{place.distance[0]} to go"
        for place, group in zip(places, groups, strict=True)
    }
    counts: Counter[str] = Counter()
    states = []
    for group, bins in ages.items():
        counts[names[group]] += 1
        suffix = f" ({counts[names[group]]})" if counts[names[group]] > 1 else ""
        states += [f"{names[group]}{suffix}" + (f" age {age + 1}/{bins}" if bins > 1 else "") for age in range(bins)]
    return tuple(states)


def _build_tracker(
    tracked_map: TrackedMap, names: tuple[str, ...], minterm_masks: list[int], *, mode: Mode, words: int
) -> Tracker:
    nodes, edges, lists = list[list[int]](), list[list[int]](), list[int]()
    places, starts = tracked_map.places, list(accumulate((place.width for place in tracked_map.places), initial=0))
    for rank, place in enumerate(places):
        leaving = [out for out in tracked_map.leaving[rank] if out[0] is not None or mode is Mode.NEXT]
        limits = _append(lists, [number for limit in place.limits for number in limit])
        bounds = (len(edges), len(edges) + len(leaving))
        edges += [_list_edge(edge, target, place, places, names, lists) for target, edge in leaving]
        wanted = _make_mask((edge.filter for _, edge in leaving), names)
        nodes.append(
            [starts[rank] if place.width else -1, place.width, place.contiguous, _make_mask(place.guards, names),
             wanted, place.prefers_earlier, place.span, *limits, *bounds, place.age_limit, place.age_moment, place.bins,
             tracked_map.first[rank]]
        )  # fmt: skip
    awaits = any(place.span for place in places)
    settings = [mode is Mode.RESTART, awaits, mode is Mode.NEXT and not awaits, words]
    order = sorted(range(len(nodes)), key=lambda rank: places[rank].distance[1])
    arrays = [np.array(rows, np.int64) for rows in (nodes, order, edges, lists, minterm_masks, settings)]
    arrays[2] = arrays[2].reshape(len(edges), tracking.EDGE_SIZE)
    return Tracker(names, starts[-1] + 1, tracked_map, tracking.TrackedTables(*arrays))


def _list_edge(
    edge: Edge,
    target: int | None,
    source: TrackedPlace,
    places: tuple[TrackedPlace, ...],
    names: tuple[str, ...],
    lists: list[int],
) -> list[int]:
    moment_of = {moment: 1 + at for at, moment in enumerate(source.moments)} | {None: -1}
    checks: list[int] = []
    for check in edge.checks:
        low = tracking.DEAD if check.low is None else check.low
        high = -tracking.DEAD if check.high is None else check.high
        checks += [moment_of[check.late], moment_of[check.early], low, high, int(check.absolute)]
    moments = () if target is None else places[target].moments
    begun = -1 if source.number == 0 else 0
    copies = [begun, *(-1 if moment in edge.stores else moment_of[moment] for moment in moments)]
    bounds, copied = _append(lists, checks), _append(lists, copies)
    masks = _make_mask([edge.filter], names), _make_mask(edge.forbid, names)
    return [*masks, -1 if target is None else target, *bounds, copied[0]]


def _append(lists: list[int], numbers: list[int]) -> tuple[int, int]:
    lists += numbers
    return len(lists) - len(numbers), len(lists)
