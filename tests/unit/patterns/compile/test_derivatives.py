"""What is left of a pattern: how many configurations it has, and which are refused."""

import pytest
from hypothesis import given

from tidings import lang
from tidings.errors import PatternError
from tidings.model.patterns import Mode
from tidings.patterns.compile.derivatives import derive_configurations
from tidings.testing.strategies.patterns import patterns

FILTERS = {name: f"{name} = kind = '{name}'\n" for name in "abcd"}


def derive(text, **options):
    names = [name for name in "abcd" if name in "".join(sign if sign.isalpha() else " " for sign in text).split()]
    return derive_configurations(lang.parse_pattern("".join(FILTERS[name] for name in names) + text), **options)


@pytest.mark.parametrize(
    ("text", "nodes", "edges"),
    [
        ("a", 1, 1),
        ("a ; b ; c", 3, 3),
        ("a , b ; c", 3, 3),
        ("a or b", 1, 2),
        ("a and b", 3, 4),
        ("(a and b and c)", 7, 12),
        ("a{3,}", 3, 3),
        ("a{2,5} ; b", 3, 3),
        ("(a ; b) and (c ; d)", 8, 12),
    ],
)
def test_a_pattern_has_as_many_configurations_as_places_it_can_be_at(text, nodes, edges):
    configurations = derive(text)
    assert (len(configurations.nodes), len(configurations.edges)) == (nodes, edges)


def test_every_embedding_needs_every_count_of_a_repetition():
    assert len(derive("a{2,5} ; b", mode=Mode.OVERLAP).nodes) < len(derive("a{2,5} ; b", mode=Mode.ANY).nodes)


def test_the_outermost_within_is_asked_at_the_end():
    configurations = derive("a ; b within 5 s")
    assert configurations.within == 5_000_000
    assert not any(edge.checks or edge.stores for edge in configurations.edges)


def test_a_moment_is_kept_only_as_long_as_it_is_asked_for():
    first, second, third = derive("((a ; b) @ t(b) - t(a) < 5 s) ; c").nodes
    assert (first.uses, third.uses) == ((), ())
    assert [use for _, use in second.uses] == [1], "the later the better"
    _, waiting = derive("(a ; b) @ t(b) - t(a) > 5 s").nodes
    assert [use for _, use in waiting.uses] == [-1], "the earlier the better"
    _, both = derive("(a ; b) @ (t(b) - t(a) > 1 s and t(b) - t(a) < 5 s)").nodes
    assert [use for _, use in both.uses] == [0]


def test_waiting_is_vain_when_a_bound_has_passed():
    _, waiting = derive("(a ; b) @ t(b) - t(a) <= 5 s").nodes
    assert [high for _, high in waiting.limits] == [5_000_000]


def test_a_condition_that_cannot_hold_has_no_edge():
    assert derive("(a or b) ; c @ t(c) - t(a) < 5 s").nodes[1:] != ()
    assert not [edge for edge in derive("(a ; b) @ t(a) - t(b) > 1 s").edges if edge.target is None]


def test_too_many_configurations_are_refused():
    with pytest.raises(PatternError, match="more than 10 configurations; use fewer operands of `and`"):
        derive("a and b and c and d", budget=10)


@given(patterns())
def test_every_configuration_is_reached_and_edges_lead_on(pattern):
    for mode in (Mode.OVERLAP, Mode.ANY):
        configurations = derive_configurations(pattern, mode)
        reached = {0} | {edge.target for edge in configurations.edges if edge.target is not None}
        assert reached == set(range(len(configurations.nodes)))
        assert all(0 <= edge.source < len(configurations.nodes) for edge in configurations.edges)
        assert not configurations.nodes[0].contiguous
        assert not configurations.nodes[0].guards
