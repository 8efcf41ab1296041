"""Any order of changes leaves the engine with what a plain dict would hold, and its structures whole."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.differential.engine_worlds import NOW, ONTOLOGY, Drawer, choose_any_plan, evaluate_by_law
from tests.examples import examples
from tests.unit.engine.invariants import check_state

import tidings as td
from tidings.engine.tuning import EngineTuning, IndexTuning, use_tuning
from tidings.errors import BadSubscriptions, UnknownSubscription

KEYWORDS = {"ontology": ONTOLOGY, "now": NOW}
POOL = [Drawer(seed).filter() for seed in range(240)]
TEXTS = [
    "n > 1",
    "t = 'ford' and n in [1 .. 3)",
    "tags = 'a' and tags = 'b'",
    "n = 1 and not (all(n) in [0 .. 2])",
    "true",
    "false",
    "when >= 2024-05-01 or ok = true",
    "c is a 'computer'",
    "n in [5 .. 5]",
    "n = 2.0",
]
EVENTS = [{**Drawer(seed).event(), **Drawer(seed + 1).event()} for seed in range(120)]
BAD = ["n <", "c is a 'furniture'", "n in (1, 5 GB)"]

filters = st.one_of(st.integers(0, len(POOL) - 1).map(lambda at: POOL[at]), st.sampled_from(TEXTS))
events = st.integers(0, len(EVENTS) - 1).map(lambda at: EVENTS[at])
ids = st.sampled_from([*range(12), -1, 2**62])


class Steps(RuleBasedStateMachine):
    """The engine beside a dict of what was written."""

    @initialize(
        few=st.sampled_from((0, 0, 3, 64)),
        at_once=st.sampled_from((0, 8192)),
        planned=st.booleans(),
        rows=st.sampled_from((0, 16)),
        named=st.booleans(),
    )
    def begin(self, few, at_once, planned, rows, named):
        self.stack = ExitStack()
        tuning = EngineTuning(waiting_limit=few, inline_merge_limit=at_once, row_limit=rows)
        if not planned:
            tuning = replace(tuning, index=IndexTuning(planner=choose_any_plan, tiled_from=1, tile_rows=4))
        self.stack.enter_context(use_tuning(tuning))
        self.folder = Path(self.stack.enter_context(TemporaryDirectory()))
        self.named = named
        self.model = {}
        self.matcher = td.Matcher(**KEYWORDS)

    def teardown(self):
        if hasattr(self, "stack"):
            self.matcher.backend.settle()
            self.stack.close()

    def id(self, number):
        return f"s{number}" if self.named else number

    def write(self, id, tree):
        self.model[id] = td.parse(tree, **{**KEYWORDS, "now": None}) if isinstance(tree, str) else tree

    # Changes

    @rule(number=ids, tree=filters)
    def add(self, number, tree):
        self.matcher.add(self.id(number), tree)
        self.write(self.id(number), tree)

    @rule(pairs=st.lists(st.tuples(ids, filters), max_size=8))
    def add_many(self, pairs):
        named = [(self.id(number), tree) for number, tree in pairs]
        assert self.matcher.add_many(named) == []
        for id, tree in named:
            self.write(id, tree)

    @rule(pairs=st.lists(st.tuples(ids, filters), max_size=5), bad=st.sampled_from(BAD), at=st.integers(0, 5))
    def add_many_with_a_bad_one(self, pairs, bad, at):
        named = [(self.id(number), tree) for number, tree in pairs]
        named.insert(at, (self.id(3), bad))
        with pytest.raises(BadSubscriptions):
            self.matcher.add_many(named)

    @rule(pairs=st.lists(st.tuples(ids, filters), max_size=5), bad=st.sampled_from(BAD), at=st.integers(0, 5))
    def add_the_good_ones(self, pairs, bad, at):
        named = [(self.id(number), tree) for number, tree in pairs]
        [(id, _)] = self.matcher.add_many([*named[:at], (self.id(3), bad), *named[at:]], on_error="collect")
        assert id == self.id(3)
        for id, tree in named:
            self.write(id, tree)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data):
        id = data.draw(st.sampled_from(sorted(self.model)))
        self.matcher.remove(id)
        del self.model[id]

    @rule(data=st.data())
    def remove_many(self, data):
        ids = data.draw(st.lists(st.sampled_from(sorted(self.model)))) if self.model else []
        self.matcher.remove_many(ids)
        for id in set(ids):
            del self.model[id]

    @rule()
    def remove_one_that_is_not_there(self):
        with pytest.raises(UnknownSubscription):
            self.matcher.remove_many([*self.model, self.id(999)])
        with pytest.raises(KeyError):
            self.matcher.remove(self.id(999))

    @rule()
    def compact(self):
        self.matcher.compact()

    @rule()
    def settle(self):
        self.matcher.backend.settle()

    @rule()
    def save_and_reopen(self):
        self.matcher.save(self.folder / "snapshot")
        self.matcher.backend.settle()
        self.matcher = td.Matcher.open(self.folder / "snapshot")

    # Questions

    @rule(events=st.lists(events, min_size=1, max_size=6))
    def match(self, events):
        for event, wanted in zip(events, evaluate_by_law(self.model, events, KEYWORDS), strict=True):
            matches = self.matcher.match(event)
            assert (len(matches), set(matches)) == (len(wanted), wanted)

    @rule(events=st.lists(events, max_size=10), often=st.sampled_from((1, 1, 8)))
    def match_many(self, events, often):
        events = events * often
        matches = self.matcher.match_many(events)
        wanted = evaluate_by_law(self.model, events, KEYWORDS)
        assert [set(ids) for ids in matches.by_event()] == wanted
        assert len(matches) == sum(map(len, wanted))

    # What is always true

    @invariant()
    def it_holds_what_was_written(self):
        if not hasattr(self, "model"):
            return
        assert len(self.matcher) == len(self.model)
        assert set(self.matcher) == set(self.model)
        assert {id: self.matcher[id] for id in self.matcher} == self.model
        assert all(id in self.matcher for id in self.model)
        assert self.id(999) not in self.matcher

    @invariant()
    def it_needs_what_a_fresh_one_would(self):
        if hasattr(self, "model"):
            fresh = td.Matcher("brute", **KEYWORDS)
            fresh.add_many(self.model.items())
            assert self.matcher.needs() == fresh.needs()

    @invariant()
    def its_structures_are_whole(self):
        if hasattr(self, "model"):
            check_state(self.matcher.backend.state)


TestSteps = Steps.TestCase
TestSteps.settings = examples(30, stateful_step_count=30)
