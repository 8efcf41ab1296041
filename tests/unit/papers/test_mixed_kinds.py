"""Named traps where one attribute is asked for as several kinds: every kind of matcher answers as brute force does."""

from datetime import UTC, datetime

import pytest

import tidings as td
from tidings.concepts import Tree
from tidings.errors import Unsupported
from tidings.model import Quantity

KINDS = [kind for kind in td.matchers() if kind != "brute"]
NOW = datetime(2024, 5, 1, tzinfo=UTC)

ONTOLOGY = td.Ontology(
    trees={"goods": Tree({"goods": [], "card": ["goods"], "chip": ["goods"]}, {"card": ["board"], "chip": ["board"]})},
    attribute_trees={"names": Tree({"contact": [], "mail": ["contact"]})},
)
"""`board` is the name of two concepts; what is said of `mail` is said of `contact`."""

TRAPS = {
    "text is no number, least of all -1": (["a = -1", "a in (-1, -2)", "a = 'x'", "b = 1"], [{"a": "y"}, {"a": "x"}]),
    "a truth value is not 1": (["a = 1", "a = true", "a in (0, 1)", "a in (true, false)"], [{"a": 1}, {"a": True}]),
    "an equality under a shared name": (
        ["a = 1 and b = 'x'", "a = '1' and b = 'x'", "a = true and b = 'x'"],
        [{"a": 1, "b": "x"}, {"a": "1", "b": "x"}, {"a": True, "b": "x"}, {"a": ["1", True], "b": ["x", 5]}],
    ),
    "both kinds in one filter": (
        ["a > 5 and a = 'x'", "a > 5 or a = 'x'", "a >= 1 and a < 2024-05-02"],
        [{"a": 7}, {"a": "x"}, {"a": ["x", 7]}, {"a": [3, "2024-05-01"]}, {"a": "2024-05-01"}],
    ),
    "bare numbers, and amounts of two dimensions": (
        ["a > 5", "a > 1 GB", "a > 1 km", "a in (5 MB, 3 GB)", "a in [5 MB .. 3 GB]", "a = 8000 MB"],
        [
            {"a": "5 MB"},
            {"a": 6},
            {"a": "6"},
            {"a": "8 GB"},
            {"a": "3 GB"},
            {"a": "2 km"},
            {"a": [Quantity(8, "GB"), 6]},
        ],
    ),
    "ranges of events": (
        ["a > 5", "a > 1 GB", "a >= 2024-05-01", "a = 'x'", "a exists"],
        [{"a": td.Range(4, 6)}, {"a": td.Range(None, NOW)}, {"a": td.Range("a", "b")}, {"a": [td.Range(4, 6), "x"]}],
    ),
    "numbers that are none": (
        ["a > 5", "a exists", "a is null", "a != 5", "all(a) > 5", "none(a) > 5", "not a > 5"],
        [{"a": float("nan")}, {"a": float("inf")}, {"a": 2**70}, {"a": None}, {"a": [7, float("nan"), "y"]}],
    ),
    "records where values are asked for": (
        ["a > 5", "a exists", "a has (k > 5)", "a.k > 5", "none(a) has (k > 5)", "all(a) has (k > 5)"],
        [{"a": {"k": 6}}, {"a": [{"k": 6}, 7]}, {"a": 7}, {"a": "x"}, {"a": {}}, {"a": [{}, {"k": "y"}]}],
    ),
    "places, addresses and text": (
        [
            "a near (0, 0) 5 km",
            "a > 5",
            "a in 10.0.0.0/8",
            "a starts with '10'",
            "a = '10.0.0.1'",
            "all(a) near (0, 0) 5 km",
        ],
        [{"a": (0, 0)}, {"a": [(0, 0), "x"]}, {"a": (float("nan"), 0)}, {"a": "10.0.0.1"}, {"a": [0, 9]}],
    ),
    "a name that two concepts share": (
        ["a is a 'goods'", "a is a 'card'", "a = 'board'", "a exists", "a > 5"],
        [{"a": "board"}, {"a": "chip"}, {"a": ["board", "card"]}, {"a": 6}],
    ),
    "names above names": (
        ["contact = 'x'", "mail = 'x'", "contact > 5", "mail > 5", "contact exists", "contact > 5 and contact = 'x'"],
        [{"mail": "x"}, {"mail": 6}, {"mail": "x", "contact": 6}, {"mail": ["x", 6]}, {"contact": ["6", True]}],
    ),
    "two attributes compared": (
        ["a < `b`", "a = `b`", "all(a) = `b`", "a > 5", "b = 'x'"],
        [{"a": 1, "b": "2"}, {"a": "x", "b": "x"}, {"a": 1, "b": "x"}, {"a": [1, "x"], "b": ["x", True]}],
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trap", TRAPS)
def test_every_kind_of_matcher_reads_as_the_law_does(trap, kind):
    filters, events = TRAPS[trap]
    ours, law = (td.Matcher(which, ontology=ONTOLOGY, now=NOW) for which in (kind, "brute"))
    for text in filters:
        try:
            ours.add(text, text)
        except Unsupported:
            continue
        law.add(text, text)
    everyone = [*events, {}, {"other": 1}]
    wanted = [sorted(law.match(event)) for event in everyone]
    assert [sorted(ours.match(event)) for event in everyone] == wanted
    assert [sorted(ids) for ids in ours.match_many(everyone).by_event()] == wanted
    for text in list(ours)[::2]:
        ours.remove(text)
    assert [sorted(ours.match(event)) for event in everyone] == [[id for id in ids if id in ours] for ids in wanted]


def test_a_mismatch_is_told_by_every_kind():
    for kind in td.matchers():
        matcher = td.Matcher(kind)
        matcher.add("eve", "model > 5")
        matcher.match_many([{"model": "panda"}, {"model": 500}])
        assert [str(line) for line in matcher.mismatches()] == [
            "model: 1 of 2 values are text, asked as numbers by 1 subscription (eve)"
        ]
