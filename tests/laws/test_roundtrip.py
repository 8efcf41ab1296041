"""Three notations, one tree: what is rendered parses back, in each notation and across them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

import tidings as td
from tidings.bench.workloads import saved_searches
from tidings.lang.filters.fast_text import parse_fast
from tidings.lang.filters.parse_text import parse_text
from tidings.testing.strategies import filters, worlds

BOTH = ("text", "json")


def parse_source(source, notation):
    return td.parse(source, notation=notation)


@pytest.mark.parametrize("notation", BOTH)
@given(tree=filters())
@examples(250)
def test_what_is_rendered_parses_back(notation, tree):
    assert parse_source(td.render(tree, notation=notation), notation) == tree


@given(filters())
def test_rendering_is_stable_across_notations(tree):
    text = td.render(tree)
    through_json = parse_source(json.loads(td.render(parse_source(text, "text"), notation="json")), "json")
    assert td.render(through_json) == text


def render_url(tree):
    """The filter as a query string, or the error that says why not."""
    try:
        return td.render(tree, notation="url"), None
    except td.NotExpressible as problem:
        return None, problem


@given(filters(depth=1))
@examples(250)
def test_url_says_it_or_names_what_it_cannot_say(tree):
    query, problem = render_url(tree)
    if problem is None:
        assert parse_source(query, "url") == tree
        assert parse_source(td.render(parse_source(query, "url")), "text") == tree
    else:
        assert problem.notation == "url"
        assert problem.part
        assert problem.part in str(problem)
        assert problem.part in td.render(tree)


@given(worlds(), st.data())
@examples(150)
def test_a_schema_ontology_and_regions_change_nothing_of_what_was_written(world, data):
    tree = data.draw(filters(world))
    vocabulary = {key: value for key, value in world.keywords.items() if key != "now"}
    for notation in BOTH:
        assert td.parse(td.render(tree, notation=notation), notation=notation, **vocabulary) == tree


@given(worlds(), st.data())
@examples(150)
def test_url_with_a_schema_gives_values_their_kinds(world, data):
    tree = data.draw(filters(world, depth=1))
    try:
        query = td.render(tree, notation="url", schema=world.schema)
    except td.NotExpressible:
        return
    vocabulary = {key: value for key, value in world.keywords.items() if key != "now"}
    assert td.parse(query, notation="url", **vocabulary) == tree


@given(st.integers(0, 2**32))
@examples(30)
def test_saved_searches_survive_every_notation(seed):
    for _, text in saved_searches(5, seed):
        tree = td.parse(text)
        assert parse_source(td.render(tree), "text") == tree
        assert parse_source(td.render(tree, notation="json"), "json") == tree


@given(filters())
@examples(150)
def test_the_quick_way_reads_what_the_grammar_reads(tree):
    text = td.render(tree)
    quick = parse_fast(text)
    assert quick is None or quick == parse_text(text)[0]
