"""Named cases, read by the law and by every matcher; a bug becomes one more."""

import json
from pathlib import Path

import pytest
from tests.corpus.reach import reaches

import tidings as td
from tidings.errors import Unsupported

CASES = [case for path in sorted(Path(__file__).parent.glob("*.json")) for case in json.loads(path.read_text("utf-8"))]
JUDGES = ["evaluate", *td.matchers()]


def decode_value(value):
    if isinstance(value, dict) and set(value) == {"range"}:
        return td.Range(*value["range"])
    if isinstance(value, dict):
        return {name: decode_value(part) for name, part in value.items()}
    return [decode_value(part) for part in value] if isinstance(value, list) else value


def judge_case(judge, filter_, event, schema=None):
    try:
        if judge == "evaluate":
            return td.evaluate(filter_, event, schema=schema)
        matcher = td.Matcher(kind=judge, schema=schema)
        matcher.add("it", filter_)
        matches, many = matcher.match(event), matcher.match_many([event]).ids
        assert matches == many
        return bool(matches)
    except td.BadEvent:
        return None


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case, judge):
    tree = td.parse(case["filter"])
    schema = td.Schema(case["schema"]) if "schema" in case else None
    if not reaches(judge, tree):
        with pytest.raises(Unsupported):
            td.Matcher(kind=judge).add("it", tree)
        return
    verdict = {True: "yes", False: "no", None: "bad"}[judge_case(judge, tree, decode_value(case["event"]), schema)]
    assert verdict == case["verdict"]


@pytest.mark.parametrize("judge", td.matchers())
def test_every_matcher_judges_some_cases(judge):
    assert sum(reaches(judge, td.parse(case["filter"])) for case in CASES) > 10


def test_names_say_one_thing_each():
    assert len({case["name"] for case in CASES}) == len(CASES)
