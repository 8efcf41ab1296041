"""`tidings compile`, `explain` and `why`."""

import json

import pytest
from tests.cli.samples import ADS, PAIRS, write_lines


@pytest.fixture
def snapshot(tidings, searches, tmp_path):
    done = tidings("compile", "-s", searches, "-o", "snapshot")
    assert (done.code, done.out) == (0, "")
    assert "3 subscriptions in `snapshot`" in done.err
    return tmp_path / "snapshot"


def test_a_snapshot_matches_as_its_subscriptions_do(tidings, snapshot, ads):
    assert tidings("match", "--snapshot", snapshot, "-e", ads, "--event-id", "id").pairs == PAIRS


def test_a_snapshot_carries_its_schema(tidings, ads, tmp_path):
    write_lines(tmp_path / "subs.jsonl", [{"id": "s", "filter": "year = 2016"}])
    (tmp_path / "cars.toml").write_text('year = "number"\n', encoding="utf-8")
    tidings("compile", "-s", "subs.jsonl", "-o", "snapshot", "--schema", "cars.toml")
    write_lines(tmp_path / "lists.jsonl", [{"year": [2016, 2017]}])
    assert "one value by the schema" in tidings("match", "--snapshot", "snapshot", "-e", "lists.jsonl").err


def test_compile_says_what_it_wrote_as_json(tidings, searches):
    (line,) = tidings("compile", "-s", searches, "-o", "snapshot", "--json").lines
    assert line == {"snapshot": "snapshot", "subscriptions": 3, "matcher": "engine"}


def test_a_folder_with_other_files_is_not_overwritten(tidings, searches):
    done = tidings("compile", "-s", searches, "-o", ".")
    assert done.code == 1
    assert "holds other files" in done.err


def test_a_snapshot_and_a_file_exclude_each_other(tidings, snapshot, searches, ads):
    assert tidings("match", "--snapshot", snapshot, "-s", searches, "-e", ads).code == 2
    done = tidings("match", "--snapshot", snapshot, "-e", ads, "--schema", "x.toml")
    assert done.code == 2
    assert "--schema" in done.err


def test_what_is_typed_wins_over_the_environment(tidings, snapshot, searches, ads, monkeypatch, tmp_path):
    monkeypatch.setenv("TIDINGS_SUBSCRIPTIONS", str(tmp_path / "nowhere.jsonl"))
    monkeypatch.setenv("TIDINGS_SCHEMA", str(tmp_path / "nowhere.toml"))
    assert tidings("match", "--snapshot", snapshot, "-e", ads, "--event-id", "id").pairs == PAIRS


def test_explain_prints_the_plan_and_how_a_sample_fares(tidings, searches, ads):
    plan = tidings("explain", "-s", searches)
    assert plan.out.startswith("matcher engine: 3 subscriptions, ")
    assert "\nwaiting: 3 asked one by one, " in plan.out
    done = tidings("explain", "-s", searches, "-e", ads)
    assert done.out.startswith(plan.out)
    assert "  events: 3\n  matches: 5\n  dead letters: 0\n" in done.out


def test_explain_is_json_when_asked(tidings, searches, ads):
    (line,) = tidings("explain", "-s", searches, "-e", ads, "--json").lines
    assert line["kind"] == "engine"
    assert line["subscriptions"] == 3
    assert line["sample"]["matches"] == 5


def test_explain_says_what_is_slow(tidings, tmp_path):
    lines = [{"id": n, "filter": f"make = 'm{n}'"} for n in range(100)] + [{"id": 100, "filter": "make != 'm1'"}]
    (tmp_path / "subs.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    snapshot = tmp_path / "snapshot"
    tidings("compile", "-s", tmp_path / "subs.jsonl", "-o", snapshot)
    done = tidings("explain", "--snapshot", snapshot)
    assert done.out.splitlines()[1] == "slow: 1 filter has no selective predicate"
    (line,) = tidings("explain", "--snapshot", snapshot, "--json").lines
    assert line["slow"] == ["1 filter has no selective predicate"]
    assert line["segments"][0]["paths"]


@pytest.fixture
def event(tmp_path):
    (tmp_path / "event.json").write_text(json.dumps(ADS[1], indent=2), encoding="utf-8")
    return tmp_path / "event.json"


def test_why_tells_which_test_decided(tidings, searches, event):
    done = tidings("why", "-s", searches, "-e", event, "--id", "s1")
    assert done.code == 0
    assert done.out.splitlines() == [
        "`s1` does not match: make = 'ford' and price < 9000",
        "  no   make = 'ford'   (saw vw)",
    ]


def test_why_is_json_when_asked(tidings, searches, event):
    (line,) = tidings("why", "-s", searches, "-e", event, "--id", "s1", "--json").lines
    assert (line["subscription"], line["matched"]) == ("s1", False)
    assert line["reasons"] == [{"test": "make = 'ford'", "holds": False, "seen": ["vw"]}]


def test_why_takes_one_event_of_many_by_its_number(tidings, searches, ads):
    assert "matches" in tidings("why", "-s", searches, "-e", ads, "--id", "s1", "--row", "0").out
    assert "has 3 events" in tidings("why", "-s", searches, "-e", ads, "--id", "s1").err
    assert "no event 9" in tidings("why", "-s", searches, "-e", ads, "--id", "s1", "--row", "9").err


def test_why_finds_integer_ids_too(tidings, tmp_path):
    write_lines(tmp_path / "subs.jsonl", [{"id": 7, "filter": "a = 1"}])
    assert tidings("why", "-s", "subs.jsonl", "-e", "-", "--id", "7", stdin='{"a": 1}').out.startswith("`7` matches")


def test_why_of_an_unknown_id_is_refused(tidings, searches, event):
    done = tidings("why", "-s", searches, "-e", event, "--id", "s9")
    assert (done.code, done.out) == (1, "")
    assert "no subscription has the id 's9'" in done.err
