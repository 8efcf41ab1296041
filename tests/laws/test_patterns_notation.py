"""Two notations, one pattern: what is rendered parses back, in each notation, across them, and in files."""

import json
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from tidings import lang
from tidings.errors import PatternError
from tidings.lang.patterns.durations import LIMIT, format_duration, parse_duration
from tidings.model.patterns import (
    Absence,
    Mode,
    NamedFilter,
    Pattern,
    Sequence,
    Step,
    Timed,
    walk_conditions,
    walk_steps,
)
from tidings.testing.strategies import filters
from tidings.testing.strategies.patterns import patterns, words

BOTH = ("text", "json")
ANY = st.one_of(
    patterns(),
    patterns(("a", "b"), most_steps=7, overlapping=True),
    patterns(variables=True),
    patterns(variables="joins", overlapping=True),
)


@pytest.mark.parametrize("notation", BOTH)
@given(pattern=ANY)
@examples(200)
def test_what_is_rendered_parses_back(notation, pattern):
    assert lang.parse_pattern(lang.render_pattern(pattern, notation), notation=notation) == pattern


@given(ANY)
def test_rendering_is_stable_across_notations(pattern):
    text = lang.render_pattern(pattern)
    through = json.loads(lang.render_pattern(lang.parse_pattern(text), "json"))
    assert lang.render_pattern(lang.parse_pattern(through, notation="json")) == text


AWKWARD = ("a", "and", "two words", "for", "pattern", "x.y", "größe", "it`s", "$x", "t", "first", "5", "a\nb", "-- no")


@st.composite
def awkward_patterns(draw):
    names = draw(st.lists(st.sampled_from(AWKWARD), min_size=1, max_size=3, unique=True))
    label = draw(st.sampled_from(AWKWARD))
    attribute = st.sampled_from(("ip", "user.name", "in", "two words", "a=$b"))
    pair = st.tuples(attribute, st.sampled_from(("x", "y", "my var", "1")))
    pairs = st.lists(pair, max_size=2, unique_by=lambda pair: pair[1])
    named = tuple(NamedFilter(name, draw(filters()), tuple(draw(pairs))) for name in names)
    return Pattern(named, join_steps([*map(Step, names), Step(names[0], label)]))


def join_steps(steps):
    root = lang.parse_pattern("a = x = 1\na ; y:a").root
    return Sequence(tuple(steps), root.joints * (len(steps) - 1))


@pytest.mark.parametrize("notation", BOTH)
@given(pattern=awkward_patterns())
@examples(50)
def test_any_filter_and_any_name_survive(notation, pattern):
    assert lang.parse_pattern(lang.render_pattern(pattern, notation), notation=notation) == pattern


@st.composite
def draw_written(draw):
    mode = draw(st.sampled_from(Mode))
    limit = draw(st.none() | st.integers(1, 9)) if mode is Mode.ANY else None
    name = draw(st.sampled_from(("p", "brute-force", "two words", "a.b", "7", "mode", "größe", "it`s", "pattern")))
    return lang.WrittenPattern(name, draw(patterns(most_steps=3)), mode, limit)


@given(st.lists(draw_written(), max_size=3, unique_by=lambda written_pattern: written_pattern.name))
def test_a_file_of_patterns_reads_back_as_blocks_and_as_lines(several):
    assert lang.read_patterns(lang.render_patterns(several)) == several
    lines = [render_line(block, notation) for block in several for notation in BOTH[:1]]
    assert lang.read_patterns("\n".join(lines)) == several
    assert lang.read_patterns("\n".join(render_line(block, "json") for block in several)) == several


def render_line(block, notation):
    rendered_text = lang.render_pattern(block.pattern, notation)
    row = {
        "name": block.name,
        "pattern": rendered_text if notation == "text" else json.loads(rendered_text),
        "mode": block.mode,
    }
    return json.dumps(row if block.limit is None else {**row, "limit": block.limit})


@given(st.integers(-LIMIT, LIMIT) | st.integers(-10_000, 10_000).map(lambda n: n * 1_000_000))
def test_a_duration_reads_back_to_the_microsecond(span):
    assert parse_duration(format_duration(span)) == span


PIECES = ("a", "b", "f1:a", "a{2,}", "a{2}", "(", ")", ",", ";", "and", "or", "not", "@", "t(a)", "-", "<", "5 min",
          "within", "for", "|", "\n", "a = kind = 'a'", "\nb = kind = 'b' and ip = $x\n", "'", "`", "{", "}", "$x", "5",
          "pattern p\n", "--", "#", ":", "=", "[", "first", "t(f1)", "true", "\n\n", "mode", "any")  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=25).map(" ".join))
@examples(300)
def test_a_jumble_is_a_pattern_or_a_clear_refusal(text):
    for read in (lang.parse_pattern, lang.read_patterns):
        mistakes = find_mistakes(read, text)
        assert all(0 <= mistake.start <= len(text) for mistake in mistakes)


def find_mistakes(read, source):
    """What is wrong; any other error than a refusal with mistakes fails the test."""
    try:
        read(source)
    except PatternError as problem:
        return problem.mistakes or pytest.fail("a refusal without mistakes")
    return ()


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from(("a", ";")),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
                        ("filters", "pattern", "absence", "step", "label", "least", "sequence", "joints", "and", "or",
                         "timed", "within", "conditions", "late", "early", "not", "for", "name", "filter")),
                        inner, max_size=4)))  # fmt: skip
@examples(150)
def test_any_json_is_a_pattern_or_a_clear_refusal(node):
    whole = {"filters": [{"name": "a", "filter": True}], "pattern": node}
    for source in (whole, node if isinstance(node, dict) else {"pattern": node}):
        mistakes = find_mistakes(partial(lang.parse_pattern, notation="json"), source)
        assert all(mistake.path.startswith("$") for mistake in mistakes)


@given(patterns(conditions=False, guards=False, absence=False, repeats=False, most_steps=2))
def test_what_is_not_asked_for_is_not_drawn(pattern):
    assert len(pattern.steps()) <= 2
    assert not pattern.guards()
    assert pattern.absence is None
    assert not [*walk_conditions(pattern.root)]
    assert not isinstance(pattern.root, Timed)
    assert not pattern.key_variables()


@given(patterns(variables=True))
def test_with_variables_every_pattern_has_a_key(pattern):
    assert pattern.key_variables() == ("x",)
    assert {step.filter for step in walk_steps(pattern.root)} <= {named.name for named in pattern.filters}


@given(patterns())
def test_patterns_that_are_drawn_use_every_filter(pattern):
    assert {*pattern.list_filters()} == {named.name for named in pattern.filters}
    assert pattern.absence is None or isinstance(pattern.absence, Absence)


@given(words(("a", "b"), most=5))
def test_words_are_in_order_of_time(word):
    assert len(word) <= 5
    assert [time for _, time in word] == sorted(time for _, time in word)
