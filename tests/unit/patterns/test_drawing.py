"""Pictures: well formed, complete, laid out from left to right, and true to the paper's figures."""

from __future__ import annotations

from itertools import combinations, pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from tidings import Schema, lang
from tidings.concepts import Vocabulary
from tidings.model.patterns import (
    Absence,
    Conjunction,
    Elapsed,
    Gap,
    Joint,
    Mode,
    Moment,
    NamedFilter,
    Pattern,
    Repeat,
    Sequence,
    Step,
    Timed,
    Which,
)
from tidings.patterns.compile.derivatives import derive_configurations
from tidings.patterns.compile.pattern_automaton import PatternAutomaton, determinise
from tidings.patterns.drawing import (
    Arrow,
    DrawnState,
    Picture,
    to_dot,
    to_svg,
    to_text,
)
from tidings.patterns.machine_pictures import draw_automaton, draw_configurations

SVG = "{http://www.w3.org/2000/svg}"
NEXT, LATER = Joint(Gap.NEXT), Joint(Gap.LATER)
SECOND = 1_000_000


def name_filter(name: str, *variables: tuple[str, str]) -> NamedFilter:
    return NamedFilter(name, lang.parse(f"kind = '{name}'"), variables)


def list_arrows(pattern: Pattern) -> list[tuple[str, str, str]]:
    picture = draw_configurations(pattern, derive_configurations(pattern))
    return [(arrow.source, arrow.label, arrow.target) for arrow in picture.arrows]


def chain_of(length: int) -> Picture:
    """A chain in which every state also leads back to the first two and to itself."""
    names = [f"N{place}" for place in range(length)]
    steps = [Arrow(first, second, f"step {second}") for first, second in pairwise(names)]
    back = [Arrow(name, target, "*") for name in names for target in dict.fromkeys([name, *names[:2]])]
    states = [DrawnState(name, "so far " + name, initial=name == "N0", final=name == names[-1]) for name in names]
    return Picture("chain", tuple(states), (*steps, *back))


SMALL = Picture(
    'the "small" one',
    (DrawnState("N0", initial=True), DrawnState("N1", "half < way"), DrawnState("N2", final=True)),
    (
        Arrow("N0", "N1", "a"),
        Arrow("N1", "N1", "*"),
        Arrow("N1", "N2", "b\n@ t(b) - t(a) < 5 s"),
        Arrow("N2", "N0", "*"),
    ),
)


def test_text_lists_each_state_with_the_arrows_that_leave_it():
    assert to_text(SMALL).splitlines() == [
        'the "small" one: 3 states, 4 arrows',
        ">  N0",
        "     a -> N1",
        "   N1  half < way",
        "     *                      -> N1",
        "     b, @ t(b) - t(a) < 5 s -> N2",
        " ! N2",
        "     * -> N0",
    ]


def test_graphviz_gets_quoted_labels_and_double_circles():
    lines = to_dot(SMALL).splitlines()
    assert lines[0] == 'digraph "the \\"small\\" one" {'
    assert '  n2 [label="N2", xlabel="", shape=doublecircle];' in lines
    assert '  n1 -> n2 [label="b\\n@ t(b) - t(a) < 5 s"];' in lines
    assert "  start0 -> n0;" in lines
    assert lines[-1] == "}"


# SVG ------------------------------------------------------------------------------------------------


def circles(picture: Picture) -> list[tuple[float, float, float]]:
    elements = ET.fromstring(to_svg(picture)).iter(f"{SVG}circle")
    return [tuple(float(circle.get(name)) for name in ("cx", "cy", "r")) for circle in elements]


def test_svg_shows_every_name_note_and_label():
    words = {word.text for word in ET.fromstring(to_svg(SMALL)).iter(f"{SVG}text")}
    assert words == {'the "small" one', "N0", "N1", "N2", "half < way", "a", "*", "b", "@ t(b) - t(a) < 5 s"}


def test_svg_draws_a_final_state_as_two_circles():
    assert len(circles(SMALL)) == 4


def test_svg_needs_nothing_from_elsewhere():
    assert to_svg(chain_of(5)).count("http") == 1  # the namespace


def test_states_stand_from_left_to_right_by_their_distance_from_the_start():
    across = [x for x, _, _ in circles(chain_of(10))]
    assert across == sorted(across)


def test_forty_states_stand_apart_and_inside_the_picture():
    layered = [DrawnState(f"N{place}", "a note", initial=place == 0) for place in range(40)]
    arrows = [
        Arrow(f"N{first}", f"N{second}", f"{first} {second}")
        for first in range(40)
        for second in range(40)
        if first * 3 % 7 == second % 5
    ]
    for picture in (chain_of(40), Picture("layers", tuple(layered), tuple(arrows))):
        root = ET.fromstring(to_svg(picture))
        places = {(x, y) for x, y, _ in circles(picture)}
        assert len(places) == 40
        assert all(abs(a - c) >= 40 or abs(b - d) >= 40 for (a, b), (c, d) in combinations(places, 2))
        assert all(0 < float(word.get("x")) < float(root.get("width")) for word in root.iter(f"{SVG}text"))
        assert all(0 < float(word.get("y")) < float(root.get("height")) for word in root.iter(f"{SVG}text"))


def test_labels_of_lanes_do_not_lie_on_each_other():
    words = [word for word in ET.fromstring(to_svg(chain_of(40))).iter(f"{SVG}text") if word.text == "*"]
    places = [(float(word.get("x")), float(word.get("y"))) for word in words]
    assert all(abs(a - c) >= 7 or abs(b - d) >= 12 for (a, b), (c, d) in combinations(places, 2))


names = st.sampled_from(["N0", "N1", "N2", "N3"])
text = st.text(max_size=40)


@examples(100)
@given(text, st.lists(text, min_size=4, max_size=4), st.lists(st.builds(Arrow, names, names, text), max_size=12))
def test_svg_is_well_formed_whatever_is_said(title, notes, arrows):
    states = tuple(DrawnState(f"N{place}", note, final=place == 3) for place, note in enumerate(notes))
    picture = Picture(title, states, tuple(arrows))
    assert len(list(ET.fromstring(to_svg(picture)).iter(f"{SVG}circle"))) == 5
    assert to_text(picture)
    assert to_dot(picture).count("->") >= len(arrows)


def test_an_empty_picture_is_drawn_empty():
    assert circles(Picture("nothing", (), ())) == []


# Pictures of machines -------------------------------------------------------------------------------


def test_figure_2_has_four_steps_in_a_row_and_its_condition_on_the_third():
    steps = [Step("F", label) for label in ("f1", "f2", "f3")]
    timed = Timed(steps[2], (Elapsed(Moment("f3"), Moment("f1"), high=300 * SECOND, high_open=True),))
    pattern = Pattern(
        (name_filter("F"), name_filter("S")), Sequence((*steps[:2], timed, Step("S")), (NEXT, NEXT, NEXT))
    )
    assert list_arrows(pattern) == [
        ("N0", "f1:F", "N1"),
        ("N1", "f2:F", "N2"),
        ("N2", "f3:F\n@ t(f3) - t(f1) < 5 min", "N3"),
        ("N3", "S", "N4"),
    ]


def test_figure_3_waits_in_every_state_between():
    steps = [Step("F", "f1"), Step("S", "s1"), Step("F", "f2")]
    last = Timed(Step("S", "s2"), (Elapsed(Moment("s2"), Moment("s1"), high=5 * SECOND),))
    arrows = list_arrows(Pattern((name_filter("F"), name_filter("S")), Sequence((*steps, last), (LATER, LATER, LATER))))
    assert [arrow for arrow in arrows if arrow[1] == "*"] == [(name, "*", name) for name in ("N1", "N2", "N3")]
    assert ("N3", "s2:S\n@ t(s2) - t(s1) <= 5 s", "N4") in arrows


def test_figure_4_waits_only_where_a_term_ends():
    names, gaps = "FFSFSFS", (NEXT, NEXT, LATER, NEXT, LATER, NEXT)
    steps = tuple(Step(name, f"s{place}") for place, name in enumerate(names))
    arrows = list_arrows(Pattern((name_filter("F"), name_filter("S")), Sequence(steps, gaps)))
    assert [source for source, label, _ in arrows if label == "*"] == ["N3", "N5"]


def test_variables_and_guards_stand_on_the_arrows():
    pattern = Pattern(
        (name_filter("a", ("ip", "x")), name_filter("b"), name_filter("c", ("host", "x"))),
        Sequence((Step("a"), Step("c")), (Joint(Gap.LATER, ("b",)),)),
    )
    assert list_arrows(pattern) == [
        ("N0", "a [ip = $x]", "N1"),
        ("N1", "c [host = $x]", "N2"),
        ("N1", "* and not b", "N1"),
    ]


def test_an_absence_is_a_wait_that_time_ends():
    pattern = Pattern((name_filter("a"), name_filter("b")), Step("a"), Absence(("b",), 90 * SECOND))
    assert list_arrows(pattern) == [("N0", "a", "N1"), ("N1", "90 s pass", "N2"), ("N1", "* and not b", "N1")]


def test_within_is_told_at_the_end_or_on_the_arrows_of_its_part():
    whole = Pattern(
        (name_filter("a"), name_filter("b")), Timed(Sequence((Step("a"), Step("b")), (LATER,)), within=60 * SECOND)
    )
    assert draw_configurations(whole, derive_configurations(whole)).states[-1] == DrawnState(
        "N2", "within 1 min", final=True
    )
    part = Sequence((Timed(Sequence((Step("a"), Step("b")), (NEXT,)), within=SECOND), Step("a", "c")), (NEXT,))
    assert ("N1", "b\n@ within 1 s", "N2") in list_arrows(Pattern((name_filter("a"), name_filter("b")), part))


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"low": 3 * SECOND, "low_open": True}, "t(b) - t(a) > 3 s"),
        ({"low": 3 * SECOND}, "t(b) - t(a) >= 3 s"),
        ({"low": 2 * SECOND, "low_open": True, "high": 300 * SECOND}, "2 s < t(b) - t(a) <= 5 min"),
        ({"low": 2 * SECOND, "high": 300 * SECOND, "high_open": True}, "2 s <= t(b) - t(a) < 5 min"),
    ],
)
def test_bounds_read_as_they_were_written(bounds, words):
    timed = Timed(Step("b"), (Elapsed(Moment("b"), Moment("a"), **bounds),))
    pattern = Pattern((name_filter("a"), name_filter("b")), Sequence((Step("a"), timed), (NEXT,)))
    assert list_arrows(pattern)[1] == ("N1", f"b\n@ {words}", "N2")


def test_a_repetition_has_a_first_moment():
    condition = Elapsed(Moment("a"), Moment("a", Which.FIRST), high=SECOND)
    labels = {
        label for _, label, _ in list_arrows(Pattern((name_filter("a"),), Timed(Repeat(Step("a"), 2), (condition,))))
    }
    assert "a\n@ t(a) - t(first a) <= 1 s" in labels


def test_and_shows_its_operands_in_every_order_and_no_arrow_that_nothing_satisfies():
    guarded = Sequence((Step("a"), Step("b")), (Joint(Gap.LATER, ("c",)),))
    arrows = list_arrows(
        Pattern((name_filter("a"), name_filter("b"), name_filter("c")), Conjunction((guarded, Step("c"))))
    )
    served = [label for _, label, _ in arrows if not label.startswith("*")]
    assert sorted(served) == ["a", "a", "b", "b", "c", "c"]


def automaton(mode: Mode, vocabulary: Vocabulary | None = None) -> PatternAutomaton:
    steps = Sequence((Step("a"), Step("b"), Step("c")), (NEXT, LATER))
    automaton_drawn = determinise(
        Pattern((name_filter("a"), name_filter("b"), name_filter("c")), steps), mode, vocabulary
    )
    assert isinstance(automaton_drawn, PatternAutomaton)
    return automaton_drawn


def test_an_automaton_is_drawn_with_stars_for_anything_else():
    picture = draw_automaton(automaton(Mode.RESTART, Vocabulary(Schema({"kind": "text"}))), "a,b;c")
    assert picture.title == "a,b;c (restart)"
    assert picture.states == (
        DrawnState("N0", initial=True),
        DrawnState("N1", "a"),
        DrawnState("N2", "a b"),
        DrawnState("N3", "a b c", final=True),
    )
    assert {(arrow.source, arrow.label, arrow.target) for arrow in picture.arrows} == {
        ("N0", "*", "N0"),
        ("N0", "a", "N1"),
        ("N1", "*", "N0"),
        ("N1", "a", "N1"),
        ("N1", "b", "N2"),
        ("N2", "*", "N2"),
        ("N2", "c", "N3"),
        ("N3", "*", "N0"),
        ("N3", "a", "N1"),
    }


def test_every_minterm_of_a_state_is_on_one_arrow():
    machine = automaton(Mode.OVERLAP)
    picture = draw_automaton(machine)
    for place, row in enumerate(machine.table.tolist()):
        assert sum(arrow.source == f"N{place}" for arrow in picture.arrows) == len(set(row))
