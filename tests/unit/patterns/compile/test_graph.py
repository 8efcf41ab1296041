"""Merging: what patterns begin with in common is there once, and only that."""

import pytest

from tidings import lang
from tidings.model.patterns import Mode
from tidings.patterns.compile.graph import CompiledPattern, MergedGraph
from tidings.patterns.compile.graph_arrays import build_graph_arrays

FILTERS = {name: f"{name} = kind = '{name}'\n" for name in "abcd"}
KEYED = {name: f"{name} = kind = '{name}' and k = $x\n" for name in "abcd"}


def pattern_of(text, filters=None):
    names = [name for name in "abcd" if name in "".join(sign if sign.isalpha() else " " for sign in text).split()]
    return lang.parse_pattern("".join((filters or FILTERS)[name] for name in names) + text)


def merge_patterns(*texts, mode=Mode.RESTART, filters=None):
    made = MergedGraph()
    for place, text in enumerate(texts):
        made.add(CompiledPattern(f"p{place}", pattern_of(text, filters), mode))
    build_graph_arrays(made)
    return made


@pytest.mark.parametrize(
    ("texts", "places"),
    [
        (["a ; b ; c", "a ; b ; d", "a"], 3),
        (["a ; b ; c", "a ; b ; c"], 3),
        (["a ; b ; c", "a , b ; c"], 5),
        (["a ; b ; c", "b ; a ; c"], 5),
        (["a ; not b ; c", "a ; c"], 3),
        (["a ; not b ; c", "a ; not b ; d"], 2),
        (["a ; b within 5 s", "a ; b within 9 s"], 2),
        (["a ; b ; c within 5 s", "a ; b ; d"], 3),
        (["(a ; b) @ t(b) - t(a) < 5 s", "(a ; b) @ t(b) - t(a) < 9 s"], 3),
        (["(a ; b) @ t(b) - t(a) < 5 s", "a ; b"], 3),
        (["a ; b ; not c for 5 s", "a ; b ; not c for 5 s"], 3),
        (["a ; b ; not c for 5 s", "a ; b ; not c for 9 s"], 4),
        (["(a and b) ; c", "(a and b) ; d"], 4),
    ],
)
def test_places_are_shared_where_they_are_the_same(texts, places):
    assert len(merge_patterns(*texts).nodes) == places
    assert len(merge_patterns(*texts, mode=Mode.OVERLAP).nodes) == places


def test_a_mode_that_tells_beginnings_apart_shares_no_places():
    assert len(merge_patterns("a ; b ; c", "a ; b ; d", mode=Mode.NEXT).nodes) == 5
    assert len(merge_patterns("a ; b ; c", "a ; b ; d", mode=Mode.ANY).nodes) == 3


def test_restart_and_overlap_share_places_and_any_does_not():
    made = MergedGraph()
    for mode in (Mode.RESTART, Mode.OVERLAP, Mode.ANY):
        made.add(CompiledPattern(str(mode), pattern_of("a ; b"), mode))
    assert len(made.nodes) == 3
    assert made.unmerged == 7


def test_other_variables_are_other_places():
    made = MergedGraph()
    made.add(CompiledPattern("p", pattern_of("a ; b ; c", KEYED | {"c": FILTERS["c"]})))
    made.add(CompiledPattern("q", pattern_of("a ; b ; c")))
    assert len(made.nodes) == 5


def test_filters_are_there_once():
    made = merge_patterns("a ; b", "b ; a", "s:a ; t:a")
    assert len(made.symbols) == 2
