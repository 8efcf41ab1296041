"""No subscription changes what another one hears, or which events are bad.

For any subscriptions, others that come and go leave every answer about the first as it is: who hears of which event,
what is a dead letter, and whether a subscription is refused. Filters ask for one attribute as many kinds and in many
units, and events hold what none of them can read.
"""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidings as td
from tidings.algebra import Binder, Setting, fold_names, holds
from tidings.algebra.law.event_reading import AttributeReader
from tidings.algebra.law.requirements import RequirementTracker
from tidings.concepts import Vocabulary
from tidings.errors import TidingsError, Unsupported
from tidings.testing.strategies import cases

READY = tuple(td.matchers())
"""Matchers that read by declaration, of `td.matchers()`."""

JUDGES = ["law", *READY]
"""Who is asked. Each draws its own cases, so together they see many more than one of them."""


@dataclass
class LawMatcher:
    """The law as a matcher: one reading of an event for all filters, as every matcher makes one."""

    schema: td.Schema | None
    ontology: td.Ontology
    regions: td.Regions | None
    now: object
    filters: dict = field(default_factory=dict)

    def __post_init__(self):
        self.needs = RequirementTracker(Vocabulary(self.schema, self.ontology))

    def add(self, id, tree):
        folded = fold_names(tree, self.ontology)
        bound = Binder(Vocabulary(self.schema, self.ontology, self.regions)).bind_filter(folded)
        self.needs.add(folded, f"subscription `{id}`")
        self.filters[id] = (folded, bound)

    def remove(self, id):
        self.needs.discard(self.filters.pop(id)[0])

    def match_many(self, events, *, on_error):
        assert on_error == "collect"
        reader, setting = AttributeReader(self.needs.to_requirements(), self.ontology), Setting(self.ontology, self.now)
        answers, letters = [], []
        for at, event in enumerate(events):
            try:
                reading = reader.read(event, self.now)
            except td.BadEvent as problem:
                answers.append([])
                letters.append(SimpleNamespace(index=at, reason=str(problem)))
            else:
                answers.append([id for id, (_, bound) in self.filters.items() if holds(bound, reading, setting)])
        return SimpleNamespace(by_event=lambda: answers, dead_letters=letters)


def open_matcher(judge, world):
    return LawMatcher(**world.keywords) if judge == "law" else td.Matcher(kind=judge, **world.keywords)


def add_accepted(matcher, subscriptions):
    """Add subscriptions; return those that are not refused, and say why the others are."""
    refusals = {}
    for id, tree in subscriptions.items():
        try:
            matcher.add(id, tree)
        except Unsupported:
            refusals[id] = Unsupported
        except TidingsError as problem:
            refusals[id] = type(problem)
    return refusals


def list_answers(matcher, events, ids):
    """Who of `ids` hears of each event, and which events are bad."""
    matches = matcher.match_many(list(events), on_error="collect")
    lists = [sorted(id for id in some if id in ids) for some in matches.by_event()]
    return lists, [letter.index for letter in matches.dead_letters]


several = cases(filters=6, events=5, bad=True)


@pytest.mark.parametrize("judge", JUDGES)
@given(case=several, data=st.data())
@settings(deadline=None)
def test_others_change_nothing(judge, case, data):
    every = dict(enumerate(case.filters))
    first = {id: tree for id, tree in every.items() if data.draw(st.booleans(), label=f"{id} is one of the first")}
    alone, crowd = open_matcher(judge, case.world), open_matcher(judge, case.world)
    refusals = add_accepted(alone, first)
    expected = list_answers(alone, case.events, first)

    order = data.draw(st.permutations(sorted(every)), label="order")
    among = add_accepted(crowd, {id: every[id] for id in order})
    assert {id: why for id, why in among.items() if id in first} == refusals
    assert list_answers(crowd, case.events, first) == expected

    for id in data.draw(st.permutations([id for id in every if id not in first and id not in among]), label="gone"):
        crowd.remove(id)
        assert list_answers(crowd, case.events, first) == expected


@pytest.mark.parametrize("judge", JUDGES)
@given(case=several)
@settings(deadline=None)
def test_what_is_bad_hangs_on_declarations_alone(judge, case):
    nobody, everybody = open_matcher(judge, case.world), open_matcher(judge, case.world)
    add_accepted(everybody, dict(enumerate(case.filters)))
    assert list_answers(nobody, case.events, ())[1] == list_answers(everybody, case.events, ())[1]
    if case.world.schema is None and not case.world.ontology.declared_names:
        assert list_answers(everybody, case.events, ())[1] == []


@pytest.mark.parametrize("judge", JUDGES)
def test_eve_silences_nobody(judge):
    world = SimpleNamespace(keywords={"schema": None, "ontology": td.Ontology(), "regions": None, "now": None})
    matcher = open_matcher(judge, world)
    ads = [{"make": "ford", "price": 8500, "year": 2014, "model": "focus"}, {"make": "bmw", "year": 2016, "model": 7}]
    subscriptions = {"ann": "make = 'ford' and price < 9000", "bob": "year >= 2015"}
    add_accepted(matcher, {id: td.parse(text) for id, text in subscriptions.items()})
    before = list_answers(matcher, ads, subscriptions)
    for text in ("model > 5", "price < 9000 m", "year = 'new'", "make near (8.5, 47.4) 5 km", "model has (x = 1)"):
        add_accepted(matcher, {"eve": td.parse(text)})
        assert list_answers(matcher, ads, subscriptions) == before
        if "eve" in getattr(matcher, "filters", matcher):
            matcher.remove("eve")
    assert list_answers(matcher, ads, subscriptions) == before
