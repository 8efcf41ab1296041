"""The engine against its law: whole worlds of pairs, down each of the ways that matching can take."""

from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest
from tests.corpus.test_corpus import CASES, decode_value, judge_case
from tests.differential.engine_worlds import KINDS, MOMENTS, NOW, WAYS, Drawer, EngineWorld, evaluate_by_law, set_to

import tidings as td
from tidings.engine.tuning import use_tuning
from tidings.model import And, Or, Test
from tidings.model.arrow_types import to_rows
from tidings.testing.checks.base import run_on_cases
from tidings.testing.checks.matching import check_agrees_with_evaluate_on_car_ads, compare_with_evaluate
from tidings.testing.strategies import cases

WORLDS, FILTERS, EVENTS = 16, 50, 64
PAIRS = WORLDS * FILTERS * EVENTS
SEEDS = {way: 1000 * at for at, way in enumerate(WAYS)}


def assert_as_the_law_says(world, matcher, truth, *, events=None):
    """Compare batch and scalar answers, and name the first pair that is wrong."""
    events = world.events if events is None else events
    matches = matcher.match_many(events)
    answers = [set(ids) for ids in matches.by_event()]
    for event, ids, wanted in zip(events, answers, truth, strict=True):
        wrong = ids ^ wanted
        assert not wrong, next(
            ("too many" if id in ids else "missed", td.render(world.filters[id]), event) for id in wrong
        )
    assert len(matches) == sum(map(len, answers)), "some pair came twice"
    for event, wanted in zip(events[:6], truth[:6], strict=True):
        single = matcher.match(event)
        assert (len(single), set(single)) == (len(wanted), wanted)


def test_the_ways_make_more_pairs_than_asked_for():
    assert len(WAYS) * PAIRS >= 500_000


@pytest.mark.parametrize("way", WAYS)
def test_every_pair_is_as_the_law_says(way):
    pairs = hits = 0
    for seed in range(WORLDS):
        world = Drawer(SEEDS[way] + seed).world(FILTERS, EVENTS)
        truth = world.evaluate_by_law()
        with set_to(way):
            matcher = world.build_matcher()
            matcher.add_many(world.filters.items())
            assert_as_the_law_says(world, matcher, truth)
            assert {id: matcher[id] for id in matcher} == world.filters
            assert all(repr(matcher[id]) == repr(tree) for id, tree in world.filters.items())
        pairs += len(world.filters) * len(world.events)
        hits += sum(map(len, truth))
    assert pairs == PAIRS > 50_000
    assert 0.1 < hits / pairs < 0.9


@pytest.mark.parametrize("way", WAYS)
def test_drawn_cases_are_as_the_law_says(way):
    with set_to(way):
        run_on_cases(
            cases(bad=True, filters=6, events=6), lambda case: compare_with_evaluate(td.Matcher, case), examples=40
        )
        check_agrees_with_evaluate_on_car_ads(td.Matcher)


@pytest.mark.parametrize("way", ["compiled", "any plan", "trees", "tiles without bitmaps"])
def test_named_cases_hold_when_they_are_compiled(way):
    with set_to(way):
        for case in CASES:
            schema = td.Schema(case["schema"]) if "schema" in case else None
            outcome = judge_case("engine", td.parse(case["filter"]), decode_value(case["event"]), schema)
            verdict = {True: "yes", False: "no", None: "bad"}[outcome]
            assert verdict == case["verdict"], case["name"]


@pytest.mark.parametrize("way", ["trees", "trees found by anything", "trees found by any plan", "trees found in vain"])
def test_trees_that_literals_find_are_as_the_law_says(way, tmp_path):
    matches = 0
    for seed in range(8):
        drawer = Drawer(33_000 + seed, names=["n", "k", "t", "tags", "ok", "when"])
        world = drawer.world(120, EVENTS)
        keys = [tree for tree in world.filters.values() if isinstance(tree, Test)]
        others = list(world.filters.values())
        filters = {
            id: And((*drawer.random.sample(keys, 2), Or(tuple(drawer.random.sample(others, 3))))) for id in range(60)
        }
        world = EngineWorld(filters, world.events, world.keywords)
        truth = world.evaluate_by_law()
        with set_to(way):
            matcher = world.build_matcher()
            matcher.add_many(filters.items())
            assert_as_the_law_says(world, matcher, truth)
            matcher.remove(0)
            matcher.compact()
            matcher = reopen(matcher, tmp_path)
            assert_as_the_law_says(world, matcher, [ids - {0} for ids in truth])
            matches += sum(
                len(part.segment.candidate_trees.forest)
                for part in matcher.backend.state.parts
                if part.segment.candidate_trees
            )
    assert matches > (30 if way == "trees" else 100)


# --- while subscriptions come and go -------------------------------------------------------------------


def draw_steps(world, random):
    """Yield what is in force after each of several steps, and how to get there from the step before."""
    ids, now = list(world.filters), {}
    for _ in range(8):
        new = {id: world.filters[random.choice(ids)] for id in random.sample(ids, random.choice((1, 5, 20)))}
        removed_ids = random.sample(sorted(now, key=str), len(now) // 4)
        now = {id: tree for id, tree in {**now, **new}.items() if id not in removed_ids or id in new}
        yield now, new, [id for id in removed_ids if id not in new]


def leave_as_it_comes(matcher, folder):
    return matcher


def compact(matcher, folder):
    matcher.compact()
    assert all(not part.deleted_count for part in matcher.backend.state.parts)
    assert len(matcher.backend.state.parts) <= 1
    return matcher


def settle(matcher, folder):
    matcher.backend.settle()
    return matcher


def reopen(matcher, folder):
    matcher.save(folder / "snapshot")
    return td.Matcher.open(folder / "snapshot")


def compact_and_reopen(matcher, folder):
    return reopen(compact(matcher, folder), folder)


@pytest.mark.parametrize(
    "way", ["everything waits", "compiled", "any plan", "any plan, tiny tiles", "trees", "trees found by anything"]
)
@pytest.mark.parametrize("after", [leave_as_it_comes, compact, settle, reopen, compact_and_reopen])
def test_after_every_step_it_is_as_the_law_says(way, after, tmp_path):
    for seed in range(3):
        drawer = Drawer(77_000 + SEEDS[way] + seed)
        world = drawer.world(40, 64 if seed else 20)  # from 64 events on, the planner learns from them
        tuning = replace(WAYS[way], inline_merge_limit=0) if after is settle else WAYS[way]
        with use_tuning(tuning):
            matcher = world.build_matcher()
            for now, new, removed_ids in draw_steps(world, Random(seed)):
                matcher.remove_many(removed_ids)
                matcher.add_many(new.items())
                matcher = after(matcher, tmp_path)
                moment_world = EngineWorld(now, world.events, world.keywords)
                assert_as_the_law_says(moment_world, matcher, moment_world.evaluate_by_law())
                assert (len(matcher), set(matcher)) == (len(now), set(now))
                assert {id: matcher[id] for id in matcher} == now


# --- tables --------------------------------------------------------------------------------------------

TABLE = pa.schema(
    [
        ("n", pa.float64()),
        ("big", pa.int64()),
        ("k", pa.int32()),
        ("t", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("when", pa.timestamp("us", tz="UTC")),
        ("ok", pa.bool_()),
        ("c", pa.dictionary(pa.int32(), pa.string())),
        ("p", pa.struct([("lon", pa.float64()), ("lat", pa.float64())])),
        ("ip", pa.string()),
        ("r", pa.list_(pa.struct([("sku", pa.string()), ("qty", pa.float64())]))),
    ]
)
"""Columns as tables have them: one value or null, lists, records."""


def draw_cell(drawer, name):
    """Return what stands in one place of a table."""
    if drawer.random.random() < 0.15:
        return None
    match name:
        case "n":
            return float(drawer.number("n"))
        case "big":
            return int(max(-(2**63), min(2**63 - 1, drawer.number("big"))))
        case "tags":
            return [drawer.value(name, "text") for _ in range(drawer.random.randint(0, 3))]
        case "p":
            return dict(zip(("lon", "lat"), drawer.spot(), strict=True))
        case "r":
            return [
                {"sku": drawer.random.choice(("a", "A", None)), "qty": 1.0} for _ in range(drawer.random.randint(0, 2))
            ]
        case "when":
            return drawer.random.choice([moment for moment in MOMENTS if moment.year > 1])
        case "k":
            return drawer.random.randint(-3, 60)
    return drawer.value(name, KINDS[name])


@pytest.mark.parametrize("way", ["everything waits", "compiled", "any plan", "any plan, tiny tiles", "trees"])
def test_tables_are_as_the_law_says(way):
    for seed in range(12):
        drawer = Drawer(55_000 + SEEDS[way] + seed, names=TABLE.names)
        world = drawer.world(40, 0)
        rows = [{name: draw_cell(drawer, name) for name in TABLE.names} for _ in range(70)]
        table = pa.Table.from_pylist(rows, schema=TABLE)
        if seed % 3 == 0:
            table = pa.concat_tables([table.slice(0, 30), table.slice(30)])
        truth = evaluate_by_law(world.filters, to_rows(table), world.keywords)
        with set_to(way):
            matcher = td.Matcher(**world.keywords)
            matcher.add_many(world.filters.items())
            answers = [set(ids) for ids in matcher.match_many(table).by_event()]
        for row, ids, wanted in zip(rows, answers, truth, strict=True):
            assert ids == wanted, next((id in ids, td.render(world.filters[id]), row) for id in ids ^ wanted)


# --- what small worlds do not reach ---------------------------------------------------------------------


def draw_numbers(count, columns, seed, *, width):
    """Return filters of two ranges or points over many attributes, and events that meet them."""
    random = Random(seed)
    filters = {}
    for id in range(count):
        parts = []
        for name in random.sample(range(columns), 2):
            low = random.randint(0, width)
            high = low if random.random() < 0.5 else low + random.randint(0, max(2, width // 3))
            parts.append(f"a{name} in [{low} .. {high}]" if high > low else f"a{name} = {low}")
        filters[id] = td.parse(" and ".join(parts))
    events = [
        {
            f"a{name}": random.randint(0, width)
            if random.random() < 0.9
            else [random.randint(0, width) for _ in range(3)]
            for name in random.sample(range(columns), min(columns, 40))
        }
        for _ in range(30)
    ]
    return EngineWorld(filters, events, {"now": NOW})


@pytest.mark.parametrize(
    ("count", "columns", "width"),
    [(3000, 3, 20), (2000, 80, 6), (1500, 700, 4), (3000, 12, 1_000_000)],
    ids=["dense", "more columns than are sorted", "more columns than bitmaps pay for", "many ends"],
)
def test_larger_worlds_are_as_the_law_says(count, columns, width):
    world = draw_numbers(count, columns, count + columns, width=width)
    matcher = world.build_matcher()
    matcher.add_many(world.filters.items())
    assert_as_the_law_says(world, matcher, world.evaluate_by_law())
    matcher.match_many(world.events * 3)  # enough to learn from
    matcher.remove_many(range(0, count, 3))
    matcher.compact()
    living = EngineWorld({id: tree for id, tree in world.filters.items() if id % 3}, world.events, world.keywords)
    assert_as_the_law_says(living, matcher, living.evaluate_by_law())


def test_codes_beyond_16_bits_are_as_the_law_says():
    random = Random(5)
    ends = [random.random() for _ in range(40_000)]
    filters = {id: f"a in [{end!r} .. {end + 0.001!r})" for id, end in enumerate(ends)}
    filters |= {50_000: "a in (0.25, 0.5, 0.75)", 50_001: "not (a in [0.5 .. 0.6])", 50_002: "a in (0.5 .. 0.5)"}
    events = [{"a": end} for end in ends[:20]] + [{"a": 0.5}, {"a": [0.25, 2]}, {}, {"a": td.Range(0.5, 0.5001)}]
    matcher = td.Matcher()
    matcher.add_many(filters.items())
    for removals in range(2):
        segment = matcher.backend.state.parts[0].segment
        assert segment.index.rows.literal.dtype == "uint32"
        truth = [{id for id, end in enumerate(ends) if end <= event["a"] < end + 0.001} for event in events[:20]]
        answers = [set(ids) for ids in matcher.match_many(events).by_event()]
        assert [ids - {50_000, 50_001, 50_002} for ids in answers[:20]] == truth
        assert [ids & {50_000, 50_001, 50_002} for ids in answers[20:]] == [
            {50_000},
            {50_000, 50_001},
            {50_001},
            {50_000},
        ]
        matcher.remove(removals)
        ends[removals] = 7.0
        matcher.compact()


def test_batches_of_many_events_are_as_the_law_says():
    world = Drawer(4).world(30, 60)
    truth = world.evaluate_by_law()
    for way in ("trees", "any plan"):
        with set_to(way):
            matcher = world.build_matcher()
            matcher.add_many(world.filters.items())
            matches = matcher.match_many(world.events * 40).by_event()
        assert [set(ids) for ids in matches] == truth * 40
