"""Tracked courses: the kernel against a slow twin, and against everything a detector holds."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tidings as td
from tidings import lang
from tidings.forecast.courses import course
from tidings.forecast.courses import tracked_course as tracked
from tidings.forecast.courses.tracked_course import build_tracked_course
from tidings.model import Is, Test
from tidings.model.patterns import Conjunction, Gap, Joint, Mode, NamedFilter, Pattern, Repeat, Sequence, Step, Timed
from tidings.patterns.compile.derivatives import derive_configurations
from tidings.testing.strategies.patterns import patterns, streams

S = 1_000_000
NAMES = ("a", "b", "c", "d")


def pattern_of(text, names="abcd", key=""):
    used = [name for name in names if name in "".join(sign if sign.isalpha() else " " for sign in text).split()]
    return lang.parse_pattern("".join(f"{name} = kind = '{name}'{key}\n" for name in used) + text)


def follow_word(course, word, hits=(), *, state=None):
    """Walk one key through a word of (names, seconds); return the chain's cells by name."""
    tracker, filters = course.tracker, course.tracker.filter_names
    state = tracker.make_state()[None] if state is None else state
    masks = [sum(1 << filters.index(name) for name in names if name in filters) for names, _ in word]
    times = [round(at * S) for _, at in word]
    hit = [place in hits for place in range(len(word))]
    cells = tracker.walk(
        state, np.array([0]), np.array([0, len(word)]), np.array(masks), np.array(times), np.array(hit)
    )
    return [course.states[course.chain_state_of[cell]] for cell in cells]


TEXTS = (
    "(a ; b ; c) @ t(c) - t(a) < 3 s",
    "(a ; b ; c) @ t(c) - t(b) > 2 s",
    "((a ; b ; c) @ (t(c) - t(a) < 4 s and t(c) - t(b) > 1 s)) within 3 s",
    "(((a ; not d ; b) and c) ; d) within 6 s",
    "((a and b) ; c) @ |t(a) - t(b)| < 2 s",
    "a ; b ; ((c @ t(b) - t(a) <= 1 s) or (d @ t(b) - t(a) > 1 s))",
    "(a and b) ; ((c @ |t(a) - t(b)| < 2 s) or d) ; d",
    "(x:a{2,} ; b) @ t(b) - t(first x) > 1 s",
    "(a , b ; c) within 3 s",
    "a ; b ; not c for 2 s",
    "(a and b and c) ; d",
)
"""Patterns in which rows meet, and conditions of all kinds are asked."""


@st.composite
def worlds(draw):
    """Return a pattern, a mode, and events of one key: masks, times and reports, whatever a detector would say."""
    generated = patterns(NAMES, most_steps=4, overlapping=draw(st.booleans()))
    pattern = draw(st.one_of(generated, st.sampled_from(TEXTS).map(pattern_of)))
    size = draw(st.integers(0, 30))
    kinds = [0, *(1 << bit for bit in range(len(pattern.list_filters())))]
    masks = st.one_of(st.sampled_from(kinds), st.sampled_from(kinds), st.integers(0, 2 * kinds[-1] - 1))
    masks = draw(st.lists(masks, min_size=size, max_size=size))
    gaps = draw(st.lists(st.sampled_from((0, 0, 1, 2, 3, 5, 9)), min_size=size, max_size=size))
    hits = draw(st.lists(st.sampled_from((False, False, False, True)), min_size=size, max_size=size))
    times = np.cumsum(np.array(gaps, np.int64)) * (S // 2)
    return pattern, draw(st.sampled_from(Mode)), np.array(masks, np.int64), times, np.array(hits, bool)


# The slow twin --------------------------------------------------------------------------------------


class Twin:
    """One row for each configuration, as dictionaries of moments; told straight from the graph."""

    def __init__(self, pattern, mode, depth, minterms):
        self.graph, self.absence, self.mode = derive_configurations(pattern), pattern.absence, mode
        self.names, self.depth, self.minterms = pattern.list_filters(), depth, minterms
        self.rows, self.waits, self.word = {}, [], [0] * depth
        self.out = {number: [] for number in range(len(self.graph.nodes))}
        for edge in self.graph.edges:
            self.out[edge.source].append(edge)

    def count_left(self, number):
        """Count the events to the end; nothing where it cannot be reached."""
        distances = [0 if edge.target is None else self.count_left(edge.target) for edge in self.out[number]]
        return min((distance + 1 for distance in distances if distance is not None), default=None)

    def bounds(self, number):
        node = self.graph.nodes[number]
        return [*node.limits, *([] if self.graph.within is None else [("first", self.graph.within)])]

    def alive(self, number, row, now):
        return self.count_left(number) is not None and all(
            now - row[mark] <= high for mark, high in self.bounds(number)
        )

    def better(self, number, rows):
        wishes = {wish for _, wish in self.graph.nodes[number].uses}
        marks = [mark for mark, _ in self.graph.nodes[number].uses]
        if -1 in wishes and 1 not in wishes:
            return min(rows, key=lambda row: ([row[mark] for mark in marks], -row["first"]))
        return max(rows, key=lambda row: (row["first"], [row[mark] for mark in marks]))

    def serves(self, edge, row, names, now):
        def at(mark):
            return now if mark is None else row[mark]

        for check in edge.checks:
            apart = at(check.late) - at(check.early)
            apart = abs(apart) if check.absolute else apart
            if (check.low is not None and apart < check.low) or (check.high is not None and apart > check.high):
                return False
        return edge.filter in names and not edge.forbid & names

    def on_event(self, mask, now, hit):
        names = {name for bit, name in enumerate(self.names) if mask >> bit & 1}
        clears = hit and self.mode is Mode.RESTART
        if clears:
            self.rows, self.waits = {}, []
        if self.absence or not clears:
            self.serve(names, now, hit)
        if self.depth:
            apart = [bin(minterm ^ mask).count("1") for minterm in self.minterms]
            self.word = [*self.word[1:], apart.index(min(apart))]

    def serve(self, names, now, hit):
        before = {number: row for number, row in self.rows.items() if self.alive(number, row, now)} | {0: {}}
        after = {n: [row] for n, row in before.items() if n and not self.graph.nodes[n].contiguous}
        after = {n: rows for n, rows in after.items() if not names & set(self.graph.nodes[n].guards)}
        if self.absence:
            self.waits = [at for at in self.waits if now - at < self.absence.span]
            self.waits = [] if names & set(self.absence.without) else self.waits
        ended = []
        for number, row in before.items():
            for edge in (edge for edge in self.out[number] if self.serves(edge, row, names, now)):
                if edge.target is None:
                    ended.append(row.get("first"))
                    self.waits += [now] if self.absence and now not in self.waits else []
                else:
                    made = {"first": now} | row | dict.fromkeys(edge.stores, now)
                    after.setdefault(edge.target, []).append(made)
        self.waits = self.waits[:1] + self.waits[-1:] if len(self.waits) > 1 else self.waits
        self.rows = {number: self.better(number, rows) for number, rows in after.items()}
        if hit and self.mode is Mode.NEXT and not self.absence and any(run is not None for run in ended):
            last = max(run for run in ended if run is not None)
            self.rows = {number: row for number, row in self.rows.items() if row["first"] != last}

    def place(self, now):
        """Return the furthest configuration (-1: an absence is waited for) and the bin of its age."""
        waits = [at for at in self.waits if now - at < self.absence.span]
        if waits:
            return -1, min(3, 4 * (now - waits[0]) // self.absence.span)
        live = [number for number, row in self.rows.items() if self.alive(number, row, now)]
        if not live:
            return 0, 0
        number = min(live, key=lambda number: (self.count_left(number), number))
        return number, self.age(number, now)

    def age(self, number, now):
        bounds, most = self.bounds(number), 3
        if not bounds:
            checks = [check for edge in self.out[number] for check in edge.checks if check.late is None]
            bounds = [(check.early, check.low) for check in checks if check.early and (check.low or 0) > 0]
            most = tracked.BINS - 1
        slots = ["first", *(mark for mark, _ in self.graph.nodes[number].uses)]
        mark, scale = min(bounds, key=lambda bound: (bound[1], slots.index(bound[0])), default=("first", 0))
        return min(most, 4 * (now - self.rows[number][mark]) // scale) if scale > 0 else 0


@given(worlds(), st.integers(0, 3))
def test_a_walk_goes_where_the_slow_twin_goes(world, context):
    pattern, mode, masks, times, hits = world
    course = build_tracked_course(pattern, mode, context=context)
    tracker, state = course.tracker, course.tracker.make_state()[None]
    twin = Twin(pattern, mode, course.depth, tracker.tables.minterms.tolist())
    first = {place.number: cell for place, cell in zip(tracker.map.places, tracker.map.first, strict=True)}
    cells = tracker.walk(state, np.array([0]), np.array([0, len(masks)]), masks, times, hits)
    later = int(times[-1]) + 3 * S if len(times) else 0
    for cell, mask, now, hit in zip(cells.tolist(), masks.tolist(), times.tolist(), hits.tolist(), strict=True):
        twin.on_event(mask, now, hit)
        assert cell == expect_cell(twin, first, now)
    assert tracker.find_cell(state[0], later) == expect_cell(twin, first, later)


def expect_cell(twin, first, now):
    number, age = twin.place(now)
    cell = first[number] + age
    for label in twin.word:
        cell = cell * len(twin.minterms) + label
    return cell


# Laws of walks and courses --------------------------------------------------------------------------


@given(worlds(), st.data())
def test_a_walk_may_be_cut_anywhere(world, data):
    pattern, mode, masks, times, hits = world
    tracker = build_tracked_course(pattern, mode, context=2).tracker
    cut = data.draw(st.integers(0, len(masks)))
    whole, parts = tracker.make_state()[None], tracker.make_state()[None]
    start = np.array([0])
    cells = tracker.walk(whole, start, np.array([0, len(masks)]), masks, times, hits)
    pieces = [
        tracker.walk(parts, start, np.array([0, len(masks[part])]), masks[part], times[part], hits[part])
        for part in (slice(cut), slice(cut, None))
    ]
    assert np.concatenate(pieces).tolist() == cells.tolist()
    assert parts.tolist() == whole.tolist()


@given(worlds(), st.data())
def test_keys_do_not_see_each_other(world, data):
    pattern, mode, masks, times, hits = world
    tracker = build_tracked_course(pattern, mode, context=1).tracker
    cut = data.draw(st.integers(0, len(masks)))
    states = np.tile(tracker.make_state(), (3, 1))
    cells = tracker.walk(states, np.array([2, 0]), np.array([0, cut, len(masks)]), masks, times, hits)
    for row, part in ((2, slice(cut)), (0, slice(cut, None))):
        alone = tracker.make_state()[None]
        size = len(masks[part])
        walked_cells = tracker.walk(alone, np.array([0]), np.array([0, size]), masks[part], times[part], hits[part])
        assert (walked_cells.tolist(), alone[0].tolist()) == (cells[part].tolist(), states[row].tolist())
    assert states[1].tolist() == tracker.make_state().tolist()


@given(worlds(), st.integers(0, 4), st.floats(0, 1))
def test_a_course_holds_together(world, context, share):
    pattern, mode, masks, times, hits = world
    tracked = build_tracked_course(pattern, mode, context=context)
    size, tracker = len(tracked.states), tracked.tracker
    assert tracked.approximate
    assert tracked.table.shape == tracked.hits.shape == (size, size + 1)
    assert len(tracked.labels) == size + 1 == len(set(tracked.labels))
    assert tracked.cells <= course.MOST_CELLS
    assert tracked.depth <= context
    assert tracked.groups.shape == (tracked.depth + 1, tracked.cells)
    assert tracked.groups[0].tolist() == tracked.chain_state_of.tolist()
    assert tracked.groups[-1].tolist() == list(range(tracked.cells))
    for coarse, fine in zip(tracked.groups[:-1], tracked.groups[1:], strict=True):
        assert len({(a, b) for a, b in zip(coarse.tolist(), fine.tolist(), strict=True)}) == fine.max() + 1
    prior = tracker.guess_prior(dict.fromkeys(tracker.filter_names, share))
    assert prior.shape == (size, size + 1)
    assert (prior >= 0).all()
    np.testing.assert_allclose(prior.sum(axis=1), 1)
    state = tracker.make_state()[None]
    assert tracker.find_cell(state[0], 0) == tracked.start
    cells = tracker.walk(state, np.array([0]), np.array([0, len(masks)]), masks, times, hits)
    assert ((cells >= 0) & (cells < tracked.cells)).all()


@given(worlds())
def test_a_tracker_pickles(world):
    pattern, mode, masks, times, hits = world
    tracker = build_tracked_course(pattern, mode, context=2).tracker
    start, all_of = np.array([0]), np.array([0, len(masks)])
    again = pickle.loads(pickle.dumps(tracker))
    cells = [
        each.walk(each.make_state()[None], start, all_of, masks, times, hits).tolist() for each in (tracker, again)
    ]
    assert cells[0] == cells[1]
    assert tracker.map == again.map


def test_every_process_numbers_cells_alike():
    text = "(((a and b) ; not d ; c) @ |t(a) - t(b)| < 5 s) within 9 s"
    program = (
        "import hashlib, pickle, sys\n"
        "from tidings import lang\n"
        "from tidings.model.patterns import Mode\n"
        "from tidings.forecast.courses.tracked_course import build_tracked_course\n"
        "course = build_tracked_course(lang.parse_pattern(sys.stdin.read()), Mode.RESTART, context=2)\n"
        "print(course.states, [table.tolist() for table in course.tracker.tables], course.tracker.filter_names)\n"
    )
    filters = "".join(f"{name} = kind = '{name}'\n" for name in NAMES)
    output = {
        subprocess.run(
            [sys.executable, "-c", program],
            input=filters + text,
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(output) == 1


# Against all that a detector holds ------------------------------------------------------------------


class Everything(Twin):
    """Keeps every partial match; what completes is what a detector reports."""

    def on_event(self, mask, now, hit=False):
        names = {name for bit, name in enumerate(self.names) if mask >> bit & 1}
        rows = [(number, row) for number, row in (self.rows or []) if self.alive(number, row, now)] + [(0, {})]
        stays = [
            (number, row)
            for number, row in rows
            if number and not self.graph.nodes[number].contiguous and not names & set(self.graph.nodes[number].guards)
        ]
        served = [
            (edge.target, {"first": now} | row | dict.fromkeys(edge.stores, now))
            for number, row in rows
            for edge in self.out[number]
            if self.serves(edge, row, names, now)
        ]
        hit = any(target is None for target, _ in served)
        self.rows = [*stays, *((target, row) for target, row in served if target is not None)]
        if hit and self.mode is Mode.RESTART:
            self.rows = []
        return hit

    def furthest(self, now):
        live = [number for number, row in self.rows if self.alive(number, row, now)]
        return min((self.count_left(number) for number in live), default=None)


def is_bounded_above(pattern):
    """Tell whether time conditions say `<` alone, of steps in their order, so that the latest beginning is the best."""
    graph = derive_configurations(pattern)
    return all(use == 1 for node in graph.nodes for _, use in node.uses)


@pytest.mark.parametrize("variables", [False, True])
@given(st.data(), streams(NAMES, 10), st.sampled_from((Mode.RESTART, Mode.OVERLAP)))
def test_what_is_followed_is_as_far_as_the_furthest_partial_match(variables, data, events, mode):
    pattern = data.draw(patterns(NAMES, absence=False, variables=variables, most_steps=4))
    assume(is_bounded_above(pattern))
    course = build_tracked_course(pattern, mode, context=0)
    if variables:
        events = [event | {"key": 1} for event in events]
    detector = td.Detector()
    detector.add("it", pattern, mode=mode)
    whole, state = Everything(pattern, mode, 0, [0]), course.tracker.make_state()[None]
    for event in events:
        mask = sum(1 << bit for bit, name in enumerate(course.tracker.filter_names) if name == event["kind"])
        now = round(event["time"].timestamp() * S)
        hit = bool(detector.on_event(event))
        assert whole.on_event(mask, now) == hit, "everything is what a detector holds"
        course.tracker.walk(state, np.array([0]), np.array([0, 1]), np.array([mask]), np.array([now]), np.array([hit]))
        cell = course.tracker.find_cell(state[0], now)
        distances = {
            first + age: place.distance[0]
            for place, first in zip(course.tracker.map.places, course.tracker.map.first, strict=True)
            for age in range(place.bins)
        }
        assert (None if course.idle[cell] else distances[cell]) == whole.furthest(now)


# One thing at a time --------------------------------------------------------------------------------


def test_a_report_clears_what_a_restarting_pattern_holds():
    pattern, word = pattern_of("(a ; b ; c) within 8 s"), [("a", 0), ("b", 1), ("c", 2), ("b", 3)]
    course = {mode: build_tracked_course(pattern, mode, context=0) for mode in (Mode.RESTART, Mode.OVERLAP)}
    assert follow_word(course[Mode.RESTART], word, [2])[1:] == ["a b age 1/4", "start", "start"]
    assert follow_word(course[Mode.OVERLAP], word, [2])[1:] == ["a b age 1/4", "a b age 2/4", "a b age 2/4"]


def test_in_mode_next_a_beginning_leaves_when_it_is_reported():
    course = build_tracked_course(pattern_of("a ; b"), Mode.NEXT, context=0)
    assert follow_word(course, [("a", 0), ("b", 1), ("b", 2), ("a", 3)], [1]) == ["a", "start", "start", "a"]
    course = build_tracked_course(pattern_of("(a ; b) or (c ; d)"), Mode.NEXT, context=0)
    assert follow_word(course, [("c", 0), ("a", 1), ("b", 2)], [2])[-1] == "c", "others stay"


def test_age_is_counted_in_quarters_of_the_limit_and_ends_with_it():
    course = build_tracked_course(pattern_of("(a ; b) @ t(b) - t(a) <= 8 s"), Mode.RESTART, context=0)
    word = [("a", 0), ("", 1.9), ("", 2), ("", 4), ("", 6), ("", 8), ("", 8.1)]
    ages = ["1/4", "1/4", "2/4", "3/4", "4/4", "4/4"]
    assert follow_word(course, word) == [*(f"a age {age}" for age in ages), "start"]


def test_age_goes_on_where_a_step_must_wait():
    course = build_tracked_course(pattern_of("(a ; b) @ t(b) - t(a) >= 4 s"), Mode.RESTART, context=0)
    word = [("a", 0), ("a", 1), ("", 4), ("", 5), ("", 90)]
    assert follow_word(course, word) == [f"a age {age}/6" for age in (1, 2, 5, 6, 6)], "the earlier moment stays"


def test_an_absence_is_waited_for_until_something_comes_or_the_time_is_up():
    pattern = pattern_of("a ; not b for 4 s")
    course = build_tracked_course(pattern, Mode.RESTART, context=0)
    wait = "a then not b age "
    assert follow_word(course, [("a", 0), ("", 3), ("b", 3.9), ("", 5)]) == [
        wait + "1/4",
        wait + "4/4",
        "start",
        "start",
    ]
    assert follow_word(course, [("a", 0), ("", 4)], [1]) == [wait + "1/4", "start"]
    assert follow_word(course, [("a", 0), ("a", 3), ("a", 5)], [2]) == [wait + "1/4", wait + "4/4", wait + "1/4"]
    overlap = build_tracked_course(pattern, Mode.OVERLAP, context=0)
    word = [("a", 0), ("a", 1), ("a", 3), ("", 4.5)]
    assert follow_word(overlap, word, [3])[-1] == wait + "2/4", "of the last deadline, when the first has passed"


def test_what_has_begun_is_not_hidden_by_a_shorter_way():
    course = build_tracked_course(pattern_of("(a or (b ; c ; d)) within 9 s"), Mode.OVERLAP, context=0)
    assert follow_word(course, [("b", 0), ("a", 1)], [1]) == ["b age 1/4"] * 2


@pytest.mark.parametrize(("first", "second"), ["ab", "ba"])
def test_a_difference_without_its_sign_is_asked_of_two_moments(first, second):
    course = build_tracked_course(
        pattern_of("(a and b) ; ((c @ |t(a) - t(b)| < 2 s) or d) ; d"), Mode.OVERLAP, context=0
    )
    assert follow_word(course, [(first, 0), (second, 1), ("c", 6)])[-1] == "a b c"
    assert follow_word(course, [(first, 0), (second, 5), ("c", 6)])[-1] == "a b"


def test_the_last_labels_tell_cells_apart():
    course = build_tracked_course(pattern_of("(a ; b) within 9 s"), Mode.OVERLAP, context=9)
    assert course.depth == 4, "three labels: 5 * 3 ** 4 cells are few enough, 5 * 3 ** 5 are not"
    tracker, state = course.tracker, course.tracker.make_state()[None]
    for mask, word in ((1, [0, 0, 0, 1]), (2, [0, 0, 1, 2]), (0, [0, 1, 2, 0]), (3, [1, 2, 0, 1])):
        cell = tracker.walk(state, np.zeros(1), np.array([0, 1]), np.array([mask]), np.zeros(1), np.zeros(1))[0]
        assert [cell // 3**place % 3 for place in (3, 2, 1, 0)] == word, (
            "no event is both: the first label that is near"
        )


def test_the_prior_takes_each_edge_as_often_as_its_filter_is_satisfied():
    course = build_tracked_course(pattern_of("(a , b ; c) within 9 s"), Mode.RESTART, context=0)
    prior = course.tracker.guess_prior({"a": 0.5, "b": 0.2, "c": 0.1})
    at = {name: place for place, name in enumerate(course.labels)}
    chances = {name: prior[at[f"{name} age 2/4"]] for name in ("a", "a b")}
    assert prior[0, at["start"]] == prior[0, at["a age 1/4"]] == 0.5
    assert (chances["a"][at["a b age 1/4"]], chances["a"][at["start"]]) == pytest.approx((0.2, 0.8))
    assert (chances["a b"][at["match"]], chances["a b"][at["a b age 2/4"]]) == pytest.approx((0.1, 0.9))


def test_many_configurations_share_the_cells_of_those_as_far_as_they():
    steps = tuple(Step(f"n{place}") for place in range(7))
    filters = tuple(NamedFilter(step.filter, Test("kind", Is(step.filter))) for step in steps)
    course = build_tracked_course(Pattern(filters, Timed(Conjunction(steps), within=9 * S)), Mode.RESTART, context=1)
    assert course.states == ("start", *(f"{left} to go age {age}/4" for left in range(6, 0, -1) for age in range(1, 5)))
    assert follow_word(course, [(["n3"], 0), (["n3"], 1), (["n5"], 2), (["n1"], 10)])[1:] == [
        "6 to go age 1/4",
        "5 to go age 1/4",
        "4 to go age 4/4",
    ]
    np.testing.assert_allclose(course.tracker.guess_prior({"n1": 0.9, "n2": 0.9}).sum(axis=1), 1)


@pytest.mark.parametrize(("count", "cells"), [(200, 200), (1000, 256), (5000, 1)])
def test_long_patterns_have_few_cells(count, cells):
    named = NamedFilter("a", Test("kind", Is("a")))
    course = build_tracked_course(Pattern((named,), Timed(Repeat(Step("a"), count), within=S)), Mode.RESTART, context=0)
    assert len(course.states) <= cells
    assert follow_word(course, [("a", 0)] * 100)[-1] in course.states


@pytest.mark.parametrize(("count", "cells"), [(62, 62 * 4 - 3), (63, 1)])
def test_a_pattern_of_too_many_filters_has_one_cell(count, cells):
    steps = tuple(Step(f"n{place}") for place in range(count))
    filters = tuple(NamedFilter(step.filter, Test("kind", Is(step.filter))) for step in steps)
    root = Timed(Sequence(steps, (Joint(Gap.LATER),) * (count - 1)), within=9 * S)
    course = build_tracked_course(Pattern(filters, root), Mode.RESTART, context=3)
    assert (len(course.states), course.depth, course.approximate) == (cells, 0, True)
    assert follow_word(course, [(["n0"], 0), (["n1"], 1)])[-1] == ("n0 n1 age 1/4" if cells > 1 else "start")
