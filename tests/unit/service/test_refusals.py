"""Refusals: messages part into what is wrong and the way out; places are offsets or paths."""

import pytest

from tidings.errors import FilterError, TidingsError
from tidings.lang import parse
from tidings.service.refusals import (
    MAX_MISTAKES,
    RequestMistake,
    build_refusal,
    convert_error,
    convert_warning,
    make_mistake,
)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("unknown `a`; did you mean `b`?", "unknown `a`", "did you mean `b`?"),
        ("unknown `a; b`", "unknown `a; b`", None),
        ("found `x; y`; write `z`; or not", "found `x; y`", "write `z`; or not"),
        ("expected '; '", "expected '; '", None),
        ("first\n  second; third", "first", None),
        ("", "", None),
    ],
)
def test_the_way_out_stands_behind_a_semicolon(text, message, hint):
    mistake = make_mistake(text)
    assert (mistake.message, mistake.hint) == (message, hint)


def test_a_filters_mistakes_keep_their_places():
    with pytest.raises(FilterError) as refusal:
        parse("price < and x")
    places = [(mistake.at, mistake.length) for mistake in convert_error(refusal.value, "filter")]
    assert places[0] == (8, 3)
    with pytest.raises(FilterError) as refusal:
        parse({"and": [{"attr": "a", "op": "??", "value": 1}]}, notation="json")
    [mistake] = convert_error(refusal.value, "filter")
    assert str(mistake.at).startswith("$.and[0]")
    [mistake] = convert_error(TidingsError("no; try again"), "filter")
    assert mistake == RequestMistake("no", "try again", field="filter")


def test_a_warning_has_a_place_too():
    warnings = []
    parse("make = ford", warnings=warnings)
    mistake = convert_warning(warnings[0], "filter")
    assert (mistake.at, mistake.length, mistake.field) == (7, 4, "filter")


def test_a_refusal_has_all_mistakes_up_to_a_limit():
    refusal = build_refusal(RequestMistake(f"m{number}", "h") for number in range(MAX_MISTAKES + 5))
    assert len(refusal.errors) == MAX_MISTAKES
    assert str(refusal).startswith("m0; h\nm1; h")


def test_only_what_has_a_line_shows_one():
    assert "line" not in RequestMistake("m").to_dict()
    assert RequestMistake("m", line=3).to_dict() | {"line": 3, "id": None} == RequestMistake("m", line=3).to_dict()
    assert RequestMistake("m", index=2).to_dict()["index"] == 2
