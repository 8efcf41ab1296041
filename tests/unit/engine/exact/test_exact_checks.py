"""The second phase: places, comparisons and records, under every quantifier and `not`."""

from itertools import product

import pytest
from tests.differential.engine_worlds import set_to

import tidings as td

BOX = "within POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"
RING = "within POLYGON((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 3 1, 3 3, 1 3, 1 1))"
NEAR = "near (0, 0) 200 km"
SPOTS = [
    None,
    [],
    (2, 2),
    (0, 0),
    (9, 9),
    (0.5, 0.5),
    [(2, 2), (9, 9)],
    [(2, 2), (3.5, 0.5)],
    [(9, 9), (8, 8)],
    (180, 0),
    (-180, 90),
]


@pytest.mark.parametrize("way", ["compiled", "any plan", "trees"])
def test_places_are_decided_as_the_law_says(way):
    tests = [f"{form}(p) {area}" for form, area in product(("any", "all", "none"), (BOX, RING, NEAR))]
    tests = [
        test.removeprefix("any(p) ") if not test.startswith("any") else "p " + test.removeprefix("any(p) ")
        for test in tests
    ]
    filters = dict(enumerate([*tests, *(f"not ({test})" for test in tests)]))
    filters |= {100 + at: f"({tests[0]} or a = 1) and {text}" for at, text in enumerate(tests)}
    events = [{"p": spot, "a": 1} for spot in SPOTS] + [{"p": spot} for spot in SPOTS] + [{}]
    with set_to(way):
        matcher = td.Matcher()
        matcher.add_many(filters.items())
        batch = matcher.match_many(events).by_event()
        alone = [matcher.match(event) for event in events]
    for event, many, single in zip(events, batch, alone, strict=True):
        wanted = {id for id, text in filters.items() if td.evaluate(td.parse(text), event)}
        assert set(many) == set(single) == wanted, event


@pytest.mark.parametrize("way", ["compiled", "trees"])
def test_comparisons_and_records_are_decided_as_the_law_says(way):
    texts = [
        "x < y",
        "x = y",
        "all(x) >= y",
        "none(x) = y",
        "not (x < y)",
        "r has (q = 1 and s > 2)",
        "not (r has (q = 1))",
        "all(r) has (q = 1)",
        "x < y and x = 1",
        "x < y or r has (q = 1)",
        "x < y and not (r has (q = 1))",
    ]
    events = [{"x": x, "y": y} for x, y in product((None, 1, [1, 5], 3, td.Range(0, 9)), repeat=2)]
    events += [
        {"r": r, "x": 1, "y": 2} for r in ([], [{"q": 1, "s": 3}], [{"q": 1, "s": 1}, {"q": 2, "s": 3}], {"q": 1}, None)
    ]
    with set_to(way):
        matcher = td.Matcher()
        matcher.add_many(enumerate(texts))
        matches = matcher.match_many(events).by_event()
    everything = td.parse(" or ".join(f"({text})" for text in texts))
    for event, ids in zip(events, matches, strict=True):
        wanted = {
            at
            for at, text in enumerate(texts)
            if td.evaluate(td.model.And((td.parse(text), td.model.Or((td.model.TRUE, everything)))), event)
        }
        assert set(ids) == wanted, event


def test_items_are_decided_once_for_all_rows_that_ask(monkeypatch):
    from tidings.engine.exact import exact_checks

    asked = []
    real = exact_checks.holds
    monkeypatch.setattr(exact_checks, "holds", lambda *arguments: asked.append(1) or real(*arguments))
    with set_to("compiled"):
        matcher = td.Matcher()
        matcher.add_many((id, f"x < y and a < {id}") for id in range(50))
        assert len(matcher.match({"x": 1, "y": 2, "a": -1})) == 50
    assert len(asked) == 1
