"""Readers beside a writer see each change whole, and matching in several threads gives what one gives."""

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count, islice
from threading import Event, Thread

import pytest
from tests.differential.engine_worlds import NOW, Drawer, set_to
from tests.unit.engine.invariants import check_state

import tidings as td
from tidings.engine.tuning import EngineTuning, use_tuning

READERS = 4
ROUNDS = 60


@contextmanager
def hurry_threads(few, *, at_once):
    """Switch threads often, and build engines that merge often; with `at_once` 0, in the merging thread only."""
    before = sys.getswitchinterval()
    with use_tuning(EngineTuning(waiting_limit=few, inline_merge_limit=at_once)):
        sys.setswitchinterval(1e-5)
        try:
            yield
        finally:
            sys.setswitchinterval(before)


def watch_writes(matcher, write, look):
    """Run `write` here while readers go on to `look`; return what they found wrong."""
    over, wrong, looks = Event(), [], count()

    def read():
        try:
            while not over.is_set() and not wrong:
                wrong.extend(look())
                next(looks)
        except Exception as problem:  # noqa: BLE001 - handed to the thread of the test
            wrong.append(problem)

    readers = [Thread(target=read) for _ in range(READERS)]
    for reader in readers:
        reader.start()
    try:
        for step in range(ROUNDS):
            if wrong:
                break
            write(step)
    finally:
        over.set()
        for reader in readers:
            reader.join()
    assert next(looks) > READERS
    matcher.backend.settle()
    check_state(matcher.backend.state)
    return wrong


SETTINGS = [(0, 0), (0, 8192), (4, 0), (1000, 0)]
IDS = ["compiled, merged beside", "compiled, merged at once", "some wait", "all wait"]


@pytest.mark.parametrize(("few", "at_once"), SETTINGS, ids=IDS)
def test_of_two_that_are_swapped_one_is_always_seen(few, at_once):
    event = {"a": 1, "b": 2}
    yes, no = "a = 1", "a = 2"

    def write(step):
        matcher.add_many([("left", (no, yes)[step % 2]), ("right", (yes, no)[step % 2])])
        matcher.add(f"other {step}", f"b in [{step % 7} .. 9]")
        if step % 3 == 0:
            matcher.remove(f"other {step}")
        if step % 20 == 0:
            matcher.compact()

    def look():
        answers = [set(ids) & {"left", "right"} for ids in matcher.match_many([event, event, {}]).by_event()]
        matches = set(matcher.match(event)) & {"left", "right"}
        return [seen for seen in (matches, answers[0]) if len(seen) != 1] + [
            answers for _ in "." if answers[0] != answers[1] or answers[2]
        ]

    with hurry_threads(few, at_once=at_once):
        matcher = td.Matcher()
        matcher.add_many([("left", yes), ("right", no)])
        assert watch_writes(matcher, write, look) == []
    assert len(matcher) == 2 + ROUNDS - (ROUNDS + 2) // 3


@pytest.mark.parametrize(("few", "at_once"), SETTINGS, ids=IDS)
def test_a_filter_that_asks_for_another_attribute_is_seen_with_it(few, at_once):
    """What is read of an event must be what the subscriptions that are asked need: both, of one moment."""
    event = {"x": 1, "y": 1}
    forms = ("x = 1", "y = 1", "not (x = 2) and y exists", "none(y) = 2")

    def write(step):
        matcher.add_many([("it", forms[step % 4]), ("never", ("not (x = 1)", "not (y = 1)")[step % 2])])

    def look():
        matches = matcher.match_many([event] * 2).by_event()
        return [ids for ids in (matcher.match(event), *matches) if ids != ["it"]]

    with hurry_threads(few, at_once=at_once):
        matcher = td.Matcher()
        write(0)
        assert watch_writes(matcher, write, look) == []


def test_what_dies_while_a_merge_runs_stays_dead():
    """Each id is there or not as the writer left it, whatever the merging thread does meanwhile."""
    with hurry_threads(0, at_once=0):
        matcher = td.Matcher()
        living = set()

        def write(step):
            matcher.add_many([(f"{step}-{at}", f"a >= {at}") for at in range(8)])
            living.update(f"{step}-{at}" for at in range(8))
            ids = list(islice(sorted(living), 5))
            matcher.remove_many(ids)
            living.difference_update(ids)
            assert set(matcher.match({"a": 100})) == living

        assert (
            watch_writes(
                matcher, write, lambda: [ids for ids in [matcher.match({"a": 3})] if len(ids) != len(set(ids))]
            )
            == []
        )
        assert matcher.backend.merges > 3
        matcher.compact()
        assert set(matcher.match({"a": 100})) == set(matcher) == living


def test_several_threads_find_what_one_finds():
    world = Drawer(12).world(200, 60)
    with set_to("any plan"):
        matcher = world.build_matcher()
        matcher.add_many(world.filters.items())
    alone = [set(ids) for ids in matcher.match_many(world.events).by_event()]
    singles = [set(matcher.match(event)) for event in world.events]
    assert alone == singles == world.evaluate_by_law()
    with ThreadPoolExecutor(READERS) as pool:
        batches = list(pool.map(lambda _: matcher.match_many(world.events, now=NOW).by_event(), range(16)))
        each = list(pool.map(lambda event: set(matcher.match(event)), world.events * 4))
    assert all([set(ids) for ids in batch] == alone for batch in batches)
    assert each == singles * 4


def test_what_is_needed_can_be_asked_while_it_changes():
    def write(step):
        matcher.add_many([(step % 5, " or ".join(f"a{step}x{at} = 1" for at in range(40)))])
        matcher.add_many([(step % 5, "b = 1")])

    def look():
        names = {name.split("x")[0] for name in matcher.needs()} - {"b"}
        return [names for _ in "." if len(names) > 5] + [plan for plan in [matcher.explain()] if not str(plan)]

    with hurry_threads(1000, at_once=0):
        matcher = td.Matcher()
        assert watch_writes(matcher, write, look) == []
