"""`tidings match`."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.samples import ADS, PAIRS, SEARCHES, write_lines


def test_pairs_come_as_json_lines(tidings, searches, ads):
    done = tidings("match", "-s", searches, "-e", ads, "--event-id", "id")
    assert done.code == 0
    assert done.pairs == PAIRS
    assert all(set(line) == {"event", "subscription"} for line in done.lines)
    assert "3 events, 3 subscriptions: 5 matches, 2 events with a match, 0 dead letters" in done.err


def test_without_an_id_events_are_numbered_from_0(tidings, searches, ads):
    assert {event for event, _ in tidings("match", "-s", searches, "-e", ads).pairs} == {0, 2}


def test_blank_lines_count_as_lines(tidings, searches, tmp_path):
    (tmp_path / "gaps.jsonl").write_text('\n\n{"year": 2020}\n', encoding="utf-8")
    assert tidings("match", "-s", searches, "-e", "gaps.jsonl").pairs == {(2, "s3")}


def test_an_id_may_lie_in_a_record(tidings, searches, tmp_path):
    write_lines(tmp_path / "nested.jsonl", [{"meta": {"id": 7}, "year": 2020}])
    assert tidings("match", "-s", searches, "-e", "nested.jsonl", "--event-id", "meta.id").pairs == {(7, "s3")}


def test_quiet_leaves_no_summary(tidings, searches, ads):
    assert tidings("match", "-s", searches, "-e", ads, "-q").err == ""


def test_json_changes_nothing_on_standard_output(tidings, searches, ads):
    plain = tidings("match", "-s", searches, "-e", ads)
    assert tidings("match", "-s", searches, "-e", ads, "--json").out == plain.out


# Files -----------------------------------------------------------------------------------------


def test_events_may_come_from_standard_input(tidings, searches):
    text = "".join(json.dumps(ad) + "\n" for ad in ADS)
    assert tidings("match", "-s", searches, "-e", "-", "--event-id", "id", stdin=text).pairs == PAIRS


def test_csv_from_standard_input_is_announced(tidings, searches):
    text = "id,make,price,year\na,ford,8500,2016\n"
    done = tidings("match", "-s", searches, "-e", "-", "--event-id", "id", "--format", "csv", stdin=text)
    assert done.pairs == {("a", "s1"), ("a", "s2"), ("a", "s3")}


def test_subscriptions_may_come_from_standard_input(tidings, ads):
    text = "".join(json.dumps(search) + "\n" for search in SEARCHES)
    assert tidings("match", "-s", "-", "-e", ads, "--event-id", "id", stdin=text).pairs == PAIRS


def test_all_forms_give_the_same_pairs(tidings, searches, tmp_path):
    rows = "".join(f"{ad['id']},{ad['make']},{ad['price']},{ad['year']}\n" for ad in ADS)
    (tmp_path / "ads.csv").write_text("id,make,price,year\n" + rows, encoding="utf-8")
    pq.write_table(pa.Table.from_pylist(ADS), tmp_path / "ads.parquet")
    (tmp_path / "ads.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, ADS)).encode()))
    for name in ("ads.csv", "ads.parquet", "ads.jsonl.gz"):
        assert tidings("match", "-s", searches, "-e", name, "--event-id", "id").pairs == PAIRS, name


def test_subscriptions_in_csv_and_parquet_have_a_notation_too(tidings, ads, tmp_path):
    rows = [{"id": "s1", "filter": SEARCHES[0]["filter"], "notation": None}, SEARCHES[1]]
    (tmp_path / "subs.csv").write_text(
        "id,filter,notation\n" + "".join(f'{row["id"]},"{row["filter"]}",{row["notation"] or ""}\n' for row in rows),
        encoding="utf-8",
    )
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "subs.parquet")
    expected = {pair for pair in PAIRS if pair[1] != "s3"}
    for name in ("subs.csv", "subs.parquet"):
        assert tidings("match", "-s", name, "-e", ads, "--event-id", "id").pairs == expected, name


def test_ids_of_any_kind_come_out_as_they_went_in(tidings, tmp_path):
    write_lines(tmp_path / "subs.jsonl", [{"id": 7, "filter": "a exists"}])
    write_lines(tmp_path / "events.jsonl", [{"a": 1, "id": "Žlutý \u2028"}, {"a": 1, "id": 1.5}, {"a": 1, "id": True}])
    done = tidings("match", "-s", "subs.jsonl", "-e", "events.jsonl", "--event-id", "id")
    assert [(line["event"], line["subscription"]) for line in map(json.loads, done.out.split("\n")[:-1])] == [
        ("Žlutý \u2028", 7),
        (1.5, 7),
        (True, 7),
    ]


# Bad events ------------------------------------------------------------------------------------


@pytest.fixture
def events_file(tmp_path):
    lines = [
        '{"id": "a", "make": "ford", "price": 1, "year": 2000}',
        '{"id": "b", "price": "cheap"}',
        "not json",
        '["an array"]',
        '{"make": "ford", "price": 1}',
        '{"id": "f", "price": NaN}',
    ]
    path = tmp_path / "mixed.jsonl"
    path.write_bytes("\n".join(lines).encode() + b'\n{"id": "\xff"}\n')
    return path


def test_bad_events_are_reported_and_do_not_stop_the_others(tidings, searches, events_file):
    done = tidings("match", "-s", searches, "-e", events_file, "--event-id", "id")
    assert done.code == 0
    assert done.pairs == {("a", "s1")}
    assert "warning: 5 of 7 events could not be read and were not matched" in done.err
    assert "line 3: not JSON" in done.err
    assert "5 dead letters" in done.err
    assert "warning: price: 1 of 2 values are text, asked as numbers by 1 subscription (s1)" in done.err


def test_with_a_schema_events_that_break_it_are_bad(tidings, searches, events_file, tmp_path):
    (tmp_path / "schema.toml").write_text('price = "number"\nmake = "text"\nyear = "number"\n', encoding="utf-8")
    done = tidings("match", "-s", searches, "-e", events_file, "--event-id", "id", "--schema", "schema.toml")
    assert "6 of 7 events could not be read" in done.err
    assert "line 2: `price`: 'cheap' is not a number" in done.err


def test_dead_letters_are_kept_with_their_reasons_and_rows(tidings, searches, events_file, tmp_path):
    done = tidings("match", "-s", searches, "-e", events_file, "--event-id", "id", "--dead-letters", "dead.jsonl")
    letters = [json.loads(line) for line in (tmp_path / "dead.jsonl").read_text(encoding="utf-8").splitlines()]
    assert "they are in `dead.jsonl`" in done.err
    assert [letter["event"] for letter in letters] == [2, 3, 4, 5, 6]
    assert letters[0]["reason"].startswith("not JSON")
    assert letters[0]["row"] == "not json"
    assert "--event-id" in letters[2]["reason"]
    assert "NaN" in letters[3]["reason"]
    assert "UTF-8" in letters[4]["reason"]


def test_without_dead_letters_the_file_is_empty(tidings, searches, ads, tmp_path):
    tidings("match", "-s", searches, "-e", ads, "--dead-letters", "dead.jsonl")
    assert (tmp_path / "dead.jsonl").read_text(encoding="utf-8") == ""


def test_dead_letters_never_overwrite_the_events(tidings, searches, ads):
    before = ads.read_bytes()
    done = tidings("match", "-s", searches, "-e", ads, "--dead-letters", ads)
    assert (done.code, ads.read_bytes()) == (1, before)
    assert "a file of their own" in done.err


# Bad subscriptions -----------------------------------------------------------------------------


@pytest.fixture
def doubtful(tmp_path):
    lines = [
        json.dumps(SEARCHES[0]),
        json.dumps({"id": "bad", "filter": "make = and"}),
        "not json",
        json.dumps({"id": "nothing"}),
        json.dumps({"id": 5, "filter": "a = 1"}),
        json.dumps({"id": "odd", "filter": "a=1", "notation": "morse"}),
    ]
    path = tmp_path / "doubtful.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_every_bad_subscription_is_listed_and_nothing_is_matched(tidings, doubtful, ads):
    done = tidings("match", "-s", doubtful, "-e", ads)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: 5 of 6 subscriptions in `{doubtful}` were refused:")
    for words in (
        "line 2, `bad`: ",
        "line 3: not JSON",
        "line 4, `nothing`: there is no `filter`",
        "line 5, `5`: ids are",
    ):
        assert words in done.err
    assert "unknown notation `morse`" in done.err


def test_columns_of_parameters_in_csv_are_refused_with_a_hint(tidings, tmp_path, ads):
    (tmp_path / "columns.csv").write_text("id,make,price_to\n1,ford,9000\n", encoding="utf-8")
    done = tidings("match", "-s", tmp_path / "columns.csv", "-e", ads)
    assert (done.code, done.out) == (1, "")
    assert "columns of parameters such as `price_to` are read from Parquet" in done.err


def test_the_caret_stays_under_its_place(tidings, doubtful, ads):
    lines = tidings("match", "-s", doubtful, "-e", ads).err.splitlines()
    at = next(i for i, line in enumerate(lines) if line.strip() == "make = and")
    assert lines[at + 1].index("^") == lines[at].index("and")


def test_skip_bad_goes_on_with_the_good_ones(tidings, doubtful, ads):
    done = tidings("match", "-s", doubtful, "-e", ads, "--event-id", "id", "--skip-bad")
    assert done.code == 0
    assert done.pairs == {("a", "s1")}
    assert "warning: 5 of 6 subscriptions" in done.err
    assert "going on with the other 1" in done.err


def test_an_id_that_stands_twice_is_told(tidings, ads, tmp_path):
    write_lines(tmp_path / "twice.jsonl", [{"id": "s", "filter": "year = 1"}, {"id": "s", "filter": "year = 2012"}])
    done = tidings("match", "-s", "twice.jsonl", "-e", ads, "--event-id", "id")
    assert done.pairs == {("b", "s")}
    assert "1 ids stand more than once in `twice.jsonl`; the last one counts" in done.err


# Options ---------------------------------------------------------------------------------------


def test_now_is_what_ages_are_reckoned_against(tidings, tmp_path):
    write_lines(tmp_path / "subs.jsonl", [{"id": "new", "filter": "age(posted) < 7 days"}])
    write_lines(tmp_path / "events.jsonl", [{"posted": "2024-07-01T00:00:00Z"}])
    command = ("match", "-s", "subs.jsonl", "-e", "events.jsonl", "--now")
    assert tidings(*command, "2024-07-03").pairs == {(0, "new")}
    assert tidings(*command, "2024-07-09").pairs == set()
    assert tidings(*command, "yesterday").code == 2


def test_matchers_are_chosen_by_name(tidings, searches, ads):
    assert tidings("match", "-s", searches, "-e", ads, "--event-id", "id", "--matcher", "brute").pairs == PAIRS
    done = tidings("match", "-s", searches, "-e", ads, "--matcher", "magic")
    assert done.code == 1
    assert "unknown matcher `magic`" in done.err


def test_a_schema_makes_wrong_names_mistakes(tidings, searches, ads, tmp_path):
    (tmp_path / "cars.toml").write_text('make = "text"\nprice = "number"\n', encoding="utf-8")
    done = tidings("match", "-s", searches, "-e", ads, "--schema", "cars.toml")
    assert done.code == 1
    assert "unknown attribute `year`" in done.err


def test_options_may_come_from_the_environment(tidings, searches, ads, monkeypatch):
    monkeypatch.setenv("TIDINGS_SUBSCRIPTIONS", str(searches))
    monkeypatch.setenv("TIDINGS_EVENTS", str(ads))
    monkeypatch.setenv("TIDINGS_EVENT_ID", "id")
    monkeypatch.setenv("TIDINGS_QUIET", "1")
    done = tidings("match")
    assert done.pairs == PAIRS
    assert done.err == ""


def test_subscriptions_must_come_from_somewhere(tidings, ads):
    done = tidings("match", "-e", ads)
    assert done.code == 2
    assert "--subscriptions" in done.err


def test_standard_input_is_not_read_twice(tidings):
    assert tidings("match", "-s", "-", "-e", "-").code == 2


# Names that no column has ------------------------------------------------------------------------


@pytest.fixture
def misspelt(tmp_path):
    wanted = {"good": "price < 9000", "bad": "pirce < 9000", "odd": "make = 'ford' and not yaer = '2015'"}
    write_lines(tmp_path / "wanted.jsonl", [{"id": id, "filter": text} for id, text in wanted.items()])
    (tmp_path / "ads.csv").write_text("id,make,price,year\n1,ford,8500,2016\n")
    pq.write_table(pa.table({"id": [1], "make": ["ford"], "price": [8500], "year": [2016]}), tmp_path / "ads.parquet")
    write_lines(tmp_path / "ads.jsonl", [{"id": 1, "make": "ford", "price": 8500, "year": 2016}])
    return "wanted.jsonl"


@pytest.mark.parametrize("events", ["ads.csv", "ads.parquet"])
def test_names_that_no_column_has_are_an_error_with_the_nearest_ones(tidings, misspelt, events):
    done = tidings("match", "-s", misspelt, "-e", events)
    assert (done.code, done.out) == (1, "")
    assert f"the subscriptions ask for names that the columns of `{events}` do not have:" in done.err
    assert "unknown attribute `pirce`; did you mean `price`? (subscription `bad` asks for it)" in done.err
    assert "unknown attribute `yaer`; did you mean `year`? (subscription `odd` asks for it)" in done.err
    assert "--unknown absent" in done.err


@pytest.mark.parametrize("events", ["ads.csv", "ads.parquet"])
def test_absent_opens_the_world_and_bad_ones_may_be_skipped(tidings, misspelt, events):
    command = ("match", "-s", misspelt, "-e", events, "--event-id", "id")
    id = "1" if events == "ads.csv" else 1
    assert tidings(*command, "--unknown", "absent").pairs == {(id, "good"), (id, "odd")}
    skipped = tidings(*command, "--skip-bad")
    assert skipped.pairs == {(id, "good")}
    assert "going on without these 2 subscriptions" in skipped.err


def test_json_lines_have_no_columns_so_every_name_is_known(tidings, misspelt):
    assert tidings("match", "-s", misspelt, "-e", "ads.jsonl", "--event-id", "id").pairs == {(1, "good"), (1, "odd")}


def test_names_that_a_schema_declares_are_known_though_no_column_has_them(tidings, misspelt, tmp_path):
    (tmp_path / "schema.toml").write_text('price = "number"\npirce = "number"\nyaer = "text"\nmake = "text"\n')
    done = tidings("match", "-s", misspelt, "-e", "ads.csv", "--event-id", "id", "--schema", "schema.toml")
    assert done.pairs == {("1", "good"), ("1", "odd")}


def test_a_snapshot_is_held_against_the_columns_too(tidings, misspelt):
    assert tidings("compile", "-s", misspelt, "-o", "made").code == 0
    assert "did you mean `price`" in tidings("match", "--snapshot", "made", "-e", "ads.csv").err
