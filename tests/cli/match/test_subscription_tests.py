"""`tidings test`: a rule author's unit tests."""

import json

import pytest
from tests.cli.samples import ADS, write_lines

FORD = {"make": "ford", "price": 8500, "year": 2010}


@pytest.fixture
def run(tidings, searches, tmp_path):
    def run(*cases, options=()):
        write_lines(tmp_path / "cases.jsonl", cases)
        return tidings("test", "-s", searches, "cases.jsonl", *options)

    return run


def test_right_cases_pass(run):
    done = run({"event": ADS[0], "expect": ["s1", "s3", "s2"]}, {"event": {}, "expect": []})
    assert (done.code, done.out, done.err) == (0, "ok  2 cases\n", "")


def test_a_missing_id_is_shown_with_the_test_that_failed(run):
    done = run({"name": "an old Ford", "event": FORD, "expect": ["s1", "s3"]})
    assert done.code == 1
    assert done.out.splitlines() == [
        "FAIL  an old Ford (line 1)",
        "      matched: s1",
        "      missing: s3",
        "        `s3` does not match: year >= 2015",
        "          no   year >= 2015   (saw 2010)",
        "FAIL  1 of 1 cases",
    ]


def test_an_id_too_many_is_shown_with_what_made_it_match(run):
    done = run({"event": FORD, "expect": []})
    assert done.code == 1
    assert "FAIL  case 0 (line 1)" in done.out
    assert "not expected: s1" in done.out
    assert "yes  price < 9000   (saw 8500)" in done.out


def test_with_expect_not_only_the_named_ids_count(run):
    assert run({"event": ADS[0], "expect": ["s1"], "expect_not": []}).code == 0
    assert run({"event": FORD, "expect_not": ["s2", "s3"]}).code == 0
    assert run({"event": ADS[0], "expect_not": ["s2"]}).code == 1


def test_an_id_that_no_subscription_has_fails_the_case(run):
    for key in ("expect", "expect_not"):
        done = run({"event": {}, key: ["s9"]})
        assert done.code == 1
        assert "no subscription has the id 's9'" in done.out


def test_now_belongs_to_the_case(tidings, tmp_path):
    write_lines(tmp_path / "subs.jsonl", [{"id": "new", "filter": "age(posted) < 7 days"}])
    event = {"posted": "2024-07-01T00:00:00Z"}
    cases = [
        {"event": event, "expect": ["new"], "now": "2024-07-02"},
        {"event": event, "expect": [], "now": "2024-08-02T10:00:00+02:00"},
    ]
    write_lines(tmp_path / "cases.jsonl", cases)
    assert tidings("test", "-s", "subs.jsonl", "cases.jsonl").code == 0


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ({"expect": []}, "needs an `event`"),
        ({"event": [], "expect": []}, "needs an `event`"),
        ({"event": {}}, "needs `expect`"),
        ({"event": {}, "expect": "s1"}, "`expect` is a list of ids"),
        ({"event": {}, "expects": []}, "a case has no `expects`"),
        ({"event": {}, "expect": [], "now": "soon"}, "`now` is an ISO time"),
        ([], "an object"),
    ],
)
def test_a_case_that_cannot_be_judged_fails_with_the_reason(run, case, words):
    done = run(case, {"event": {}, "expect": []})
    assert done.code == 1
    assert words in done.out
    assert "FAIL  1 of 2 cases" in done.out


def test_json_has_a_line_for_every_case(run):
    done = run({"event": FORD, "expect": ["s1"]}, {"name": "b", "event": FORD, "expect": ["s3"]}, options=["--json"])
    first, second = done.lines
    assert (done.code, first["ok"], second["ok"]) == (1, True, False)
    assert (second["case"], second["missing"], second["unexpected"]) == ("b", ["s3"], ["s1"])
    assert second["why"][0]["reasons"] == [{"test": "year >= 2015", "holds": False, "seen": [2010]}]
    assert "FAIL  1 of 2 cases" in done.err


def test_cases_may_come_from_standard_input(tidings, searches):
    text = json.dumps({"event": {}, "expect": []})
    assert tidings("test", "-s", searches, "-", stdin=text).code == 0


def test_no_cases_is_worth_a_warning(run):
    done = run()
    assert done.code == 0
    assert "there are no cases" in done.err
