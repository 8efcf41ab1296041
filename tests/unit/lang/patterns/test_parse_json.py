"""Patterns in JSON: what is read, what is refused and at which path, and the schema that is published."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from tests.examples import examples

from tidings import lang
from tidings.errors import PatternError
from tidings.testing.strategies.patterns import patterns

SCHEMA = json.loads((Path(lang.__file__).parent / "pattern.schema.json").read_text(encoding="utf-8"))
ALL = {"name": "b", "filter": True}
A = {"name": "a", "filter": {"attr": "kind", "op": "=", "value": "a"}}
B = {"name": "b", "filter": True, "variables": [{"attr": "ip", "variable": "x"}]}


def pattern(part, *filters, **more):
    return {"filters": list(filters or (A, B)), "pattern": part, **more}


SAME = [
    (pattern({"step": "a"}, A), "a = kind = 'a'\na"),
    (pattern({"sequence": [{"step": "a"}, {"step": "b"}]}), "a = kind = 'a'\nb = ip = $x\na ; b"),
    (
        pattern({"sequence": [{"step": "a", "label": "f"}, {"step": "b", "least": 2}], "joints": [","]}),
        "a = kind = 'a'\nb = ip = $x\nf:a , b{2,}",
    ),
    (
        pattern({"or": [{"step": "a", "most": 3}, {"and": [{"step": "a"}, {"step": "b"}]}]}),
        "a = kind = 'a'\nb = ip = $x\na{1,3} or a and b",
    ),
    (
        pattern(
            {
                "timed": {"sequence": [{"step": "a", "least": 2, "most": 2}, {"step": "b"}]},
                "conditions": [{"late": "b", "early": {"first": "a"}, "high": "5 min", "high_open": True}],
                "within": "1 h",
            }
        ),
        "a = kind = 'a'\nb = ip = $x\n(a{2} ; b) @ t(b) - t(first a) < 5 min within 1 h",
    ),
    (
        pattern({"step": "a"}, A, ALL, absence={"not": ["b"], "for": "90 s"}),
        "a = kind = 'a'\nb = true\na ; not b for 90 s",
    ),
    (
        pattern({"sequence": [{"step": "a"}, {"step": "a"}], "joints": [{"not": ["b"]}]}, A, ALL),
        "a = kind = 'a'\nb = true\na ; not b ; a",
    ),
]


@pytest.mark.parametrize(("node", "text"), SAME)
def test_the_same_pattern_in_both_notations(node, text):
    read = lang.parse_pattern(node, notation="json")
    assert read == lang.parse_pattern(text)
    assert lang.parse_pattern(json.dumps(node), notation="json") == read
    assert lang.parse_pattern(json.dumps(node).encode(), notation="json") == read


STEP = {"step": "a"}
REFUSED = [
    (pattern({"step": "c"}), "$.pattern.step", "no filter is called `c`"),
    (pattern({"sequence": [STEP, {"step": "bb"}]}), "$.pattern.sequence[1].step", "no filter is called `bb`"),
    (pattern(STEP), "$.filters[1].name", "`b` is never used"),
    (pattern(STEP, A, A), "$.filters[1].name", "two filters are called `a`"),
    (pattern({"and": [STEP]}, A), "$.pattern.and", "`and` joins two parts or more"),
    (pattern({"or": STEP}, A), "$.pattern.or", "expected a list of parts"),
    (pattern({"sequence": [STEP, STEP], "joints": [";", ";"]}, A), "$.pattern", "a sequence joins"),
    (pattern({"sequence": [STEP, STEP], "joints": ["->"]}, A), "$.pattern.joints[0]", "a joint is"),
    (pattern({"sequence": [STEP, STEP], "joints": [{"not": []}]}, A), "$.pattern.joints[0].not", "at least one"),
    (pattern({"sequence": [STEP, STEP], "joints": [{"not": ["x"]}]}, A), "$.pattern.joints[0].not[0]", "called `x`"),
    (pattern({"steps": "a"}, A), "$.pattern", "did you mean `step`?"),
    (pattern({"step": "a", "lable": "f"}, A), "$.pattern", "unknown key `lable` in a step; did you mean `label`?"),
    (pattern({"step": 5}, A), "$.pattern.step", "expected a name, as text"),
    (pattern({"step": "a", "least": 0}, A), "$.pattern.least", "how many times"),
    (pattern({"step": "a", "least": 3, "most": 2}, A), "$.pattern", "upper end lies below"),
    (pattern({"timed": STEP}, A), "$.pattern", "`@` needs a condition"),
    (pattern({"timed": STEP, "within": 5}, A), "$.pattern.within", "a duration such as"),
    (pattern({"timed": STEP, "within": "5"}, A), "$.pattern.within", "a duration has its unit"),
    (pattern({"timed": STEP, "within": "5 min x"}, A), "$.pattern.within", "the end of the duration"),
    (pattern({"timed": STEP, "within": "-1 s"}, A), "$.pattern.within", "from zero on"),
    (
        pattern({"timed": STEP, "conditions": [{"late": "a", "early": "x", "high": "1 s"}]}, A),
        "$.pattern.conditions[0].early",
        "no step is called `x`",
    ),
    (
        pattern({"timed": STEP, "conditions": [{"late": "a", "early": {"first": "a"}}]}, A),
        "$.pattern.conditions[0]",
        "needs a bound",
    ),
    (
        pattern({"timed": STEP, "conditions": [{"late": "a", "high": "1 s"}]}, A),
        "$.pattern.conditions[0]",
        "a condition needs `early`",
    ),
    (
        pattern({"sequence": [{"step": "a", "label": "f"}, {"step": "a", "label": "f"}]}, A),
        "$.pattern.sequence[1].label",
        "two steps are labelled `f`",
    ),
    (pattern(STEP, A, absence={"not": ["a"], "for": "0 s"}), "$.absence.for", "longer than nothing"),
    (pattern(STEP, A, absence={"not": ["x"], "for": "1 s"}), "$.absence.not[0]", "no filter is called `x`"),
    (pattern(STEP, {"name": "a", "filter": {"attr": "x", "op": "~"}}), "$.filters[0].filter.op", "unknown operator"),
    (pattern(STEP, {"name": "a"}), "$.filters[0]", "a named filter needs `filter`"),
    (
        pattern(STEP, {**A, "variables": [{"attr": "", "variable": "x"}]}),
        "$.filters[0].variables[0].attr",
        "expected a name",
    ),
    (
        pattern(STEP, {**A, "variables": [{"attr": "i", "variable": "x"}, {"attr": "j", "variable": "x"}]}),
        "$.filters[0].variables",
        "one variable two values",
    ),
    ({"filters": [A]}, "$", "a pattern needs `pattern`"),
    ([], "$", "a pattern is an object with `filters` and `pattern`"),
]


@pytest.mark.parametrize(("node", "path", "message"), REFUSED)
def test_json_is_refused_at_its_path(node, path, message):
    with pytest.raises(PatternError) as caught:
        lang.parse_pattern(node, notation="json")
    mistake = caught.value.mistakes[0]
    assert message in mistake.message
    assert mistake.path == path
    assert f"(at {path})" in str(caught.value)


def test_text_that_is_not_json_is_refused_at_its_place():
    with pytest.raises(PatternError, match="not JSON") as caught:
        lang.parse_pattern('{"filters": ]', notation="json")
    assert caught.value.mistakes[0].start == 12
    for source in ("[" * 100_000, b"\xff", '{"filters": NaN}'):
        with pytest.raises(PatternError, match="not JSON"):
            lang.parse_pattern(source, notation="json")


def test_nesting_has_a_limit():
    node = STEP
    for _ in range(60):
        node = {"timed": node, "within": "1 s"}
    with pytest.raises(PatternError, match="nested more than 50 levels"):
        lang.parse_pattern(pattern(node, A), notation="json")


@given(patterns(variables="joins"))
@examples(40)
def test_what_is_rendered_fits_the_published_schema(drawn):
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(json.loads(lang.render_pattern(drawn, "json")), SCHEMA)


@pytest.mark.parametrize("node", [node for node, _ in SAME])
def test_what_is_read_fits_the_published_schema(node):
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(node, SCHEMA)


@pytest.mark.parametrize("node", [pattern({"steps": "a"}), pattern(STEP, absence={}), {"pattern": STEP}, []])
def test_what_is_refused_does_not_fit_the_published_schema(node):
    jsonschema = pytest.importorskip("jsonschema")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(node, SCHEMA)
