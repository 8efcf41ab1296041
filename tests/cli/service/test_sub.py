"""`tidings sub` against a real API: what it says, prints and refuses."""

import json
import signal
from datetime import UTC, datetime

import pytest
from tests.cli.samples import write_lines

from tidings.cli.service.client import RequestRefused
from tidings.cli.service.views import follow_stream
from tidings.service.subscription import MatchRow

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FILTER = "make = 'ford' and price < 9000"


def test_a_subscription_is_added_shown_listed_and_removed(sub):
    added = sub("add", FILTER, "--id", "s1", "--label", "cars", "--label", "cheap", "--name", "Cheap Ford")
    assert (added.code, added.out, added.err) == (0, "s1\n", "note: `s1` is active\n")
    shown = sub("show", "s1").out
    assert f"filter      {FILTER}" in shown
    assert "created_at" in shown
    listed = sub("list").out
    assert listed.splitlines()[0] == "1 subscription"
    assert listed.splitlines()[2].split() == ["s1", "filter", "active", "cars", "cheap", *FILTER.split()]
    assert sub("remove", "s1").err == "note: `s1` is removed\n"
    assert sub("list").out == "0 subscriptions\n"


def test_with_json_there_is_nothing_else_on_standard_output(sub):
    (added,) = sub("add", FILTER, "--json").lines
    assert (added["filter"], added["status"]) == (FILTER, "active")
    assert sub("show", added["id"], "--json").lines == [added]
    assert sub("list", "--json").lines == [added]
    assert sub("pause", added["id"], "--json").lines[0]["status"] == "paused"
    assert sub("remove", added["id"], "--json").lines == [{"id": added["id"], "removed": True}]


def test_a_refused_filter_is_shown_with_a_caret(sub):
    done = sub("add", "price < 9,000 and make == 'ford'")
    assert (done.code, done.out) == (1, "")
    lines = done.err.splitlines()
    assert lines[0].startswith("error: expected `and`, `or` or the end, found `,`")
    assert lines[1:3] == ["  price < 9,000 and make == 'ford'", "           ^"]
    assert lines[4:6] == ["  price < 9,000 and make == 'ford'", "                          ^"]


def test_every_mistake_in_a_subscription_is_told(sub):
    delivery = json.dumps({"transport": "webhook", "url": "ftp://x", "speed": 3})
    done = sub("add", "a = 1", "--label", "", "--threshold", 0.5, "--delivery", delivery)
    assert done.code == 1
    assert "`threshold` goes with a `horizon`" in done.err
    assert "`labels` is a list" in done.err
    assert "unknown key `speed`" in done.err


def test_an_id_that_is_taken_and_one_that_is_not_there_are_one_line(sub):
    sub("add", FILTER, "--id", "s1")
    assert sub("add", FILTER, "--id", "s1").err.startswith("error: ")
    for arguments in (("show", "s2"), ("pause", "s2"), ("remove", "s2"), ("edit", "s2", "a = 1"), ("matches", "s2")):
        done = sub(*arguments)
        assert (done.code, len(done.err.splitlines())) == (1, 1), arguments
        assert "`s2`" in done.err


def test_ids_may_have_any_character(sub):
    for id in ("a/b", "a:pause", "ä b?c#d", "100%"):
        assert sub("add", FILTER, "--id", id).out == f"{id}\n"
        assert f"id          {id}\n" in sub("show", id).out
        assert sub("pause", id).err == f"note: `{id}` is paused\n"
        assert sub("remove", id).code == 0


@pytest.mark.parametrize(
    ("text", "notation", "stored"),
    [
        ("make=ford&price_to=9000", "url", "make=ford&price_to=9000"),
        ('{"attr": "price", "op": "<", "value": 9000}', "json", {"attr": "price", "op": "<", "value": 9000}),
    ],
)
def test_other_notations_are_taken(sub, text, notation, stored):
    (added,) = sub("add", text, "--notation", notation, "--json").lines
    assert (added["filter"], added["notation"]) == (stored, notation)


def test_a_filter_may_come_on_standard_input(sub):
    (added,) = sub("add", "-", "--json", stdin=f"{FILTER}\n").lines
    assert added["filter"] == FILTER


def test_a_pattern_comes_from_a_file_whose_name_it_takes(sub, tmp_path):
    (tmp_path / "rise.pattern").write_text("pattern rise\n  a = price > 5\n  b = price > 9\n  a ; b within 5 min\n")
    (added,) = sub("add", "--pattern", "rise.pattern", "--mode", "next", "--json").lines
    assert (added["id"], added["kind"], added["mode"]) == ("rise", "pattern", "next")
    (forecast,) = sub("add", "--pattern", "rise.pattern", "--id", "f", "--horizon", "5 min", "--json").lines
    assert (forecast["kind"], forecast["status"], forecast["horizon"]) == ("forecast", "learning", "5 min")
    (tmp_path / "two.pattern").write_text("pattern a\n  x = a = 1\n  x ; x\npattern b\n  x = a = 1\n  x ; x\n")
    assert (
        sub("add", "--pattern", "two.pattern").err
        == "error: `two.pattern` has 2 patterns; a subscription is one of them\n"
    )
    assert sub("add", "--pattern", "nowhere").err == "error: cannot read `nowhere`: No such file or directory\n"


def test_wrong_usage_is_exit_2(sub):
    for arguments in (("add",), ("add", "a = 1", "--pattern", "x"), ("add", "a = 1", "--expires", "soon"), ("lst",)):
        assert sub(*arguments).code == 2, arguments


def test_a_time_of_expiry_is_a_time_or_a_duration(sub):
    (added,) = sub("add", FILTER, "--expires", "2050-01-01", "--json").lines
    assert added["expires_at"].startswith("2050-01-01T00:00:00")
    (added,) = sub("add", FILTER, "--expires", "30 days", "--json").lines
    assert added["expires_at"] > added["created_at"]


# Changing ----------------------------------------------------------------------------------------


def test_edit_changes_what_is_said_and_leaves_the_rest(sub):
    sub("add", FILTER, "--id", "s1", "--label", "cars")
    assert sub("edit", "s1", "price < 5").err == "note: `s1` is changed: filter\n"
    (shown,) = sub("show", "s1", "--json").lines
    assert (shown["filter"], shown["labels"], shown["revision"]) == ("price < 5", ["cars"], 2)
    assert sub("edit", "s1", "--name", "x", "--expires", "1 day").err == "note: `s1` is changed: name, expires_at\n"


def test_an_editor_sees_the_subscription_and_its_change_is_stored(sub, tmp_path, monkeypatch):
    sub("add", FILTER, "--id", "s1", "--label", "cars", "--name", "x")
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i -e 's/9000/7000/' -e '/\"name\"/d' \"$1\"\n")
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    monkeypatch.delenv("VISUAL", raising=False)
    assert sub("edit", "s1").err == "note: `s1` is changed: filter, name\n"
    (shown,) = sub("show", "s1", "--json").lines
    assert (shown["filter"], shown["labels"]) == (FILTER.replace("9000", "7000"), ["cars"])
    assert shown.get("name") is None
    monkeypatch.setenv("EDITOR", "true")
    assert sub("edit", "s1").err == "note: `s1` is as it was\n"
    monkeypatch.setenv("EDITOR", "false")
    assert sub("edit", "s1").err.startswith("error: the editor `false` failed")


def test_somebody_who_was_first_is_told_clearly(sub, tmp_path, monkeypatch, api):
    sub("add", FILTER, "--id", "s1")
    other = tmp_path / "editor"
    other.write_text(
        f'#!/bin/sh\ncurl -s -X POST -H "Authorization: Bearer $TIDINGS_KEY" {api.url}/v1/subscriptions/s1:pause\n'
        "sed -i 's/9000/7000/' \"$1\"\n"
    )
    other.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(other))
    monkeypatch.delenv("VISUAL", raising=False)
    done = sub("edit", "s1")
    assert (done.code, done.err) == (
        1,
        "error: somebody else changed `s1` meanwhile; look at it (tidings sub show s1) and edit it again\n",
    )
    assert sub("show", "s1", "--json").lines[0]["filter"] == FILTER


def test_several_are_paused_and_resumed_at_once(sub):
    for id in ("s1", "s2"):
        sub("add", FILTER, "--id", id)
    assert sub("pause", "s1", "s2").err == "note: `s1` is paused\nnote: `s2` is paused\n"
    assert [line["id"] for line in sub("list", "--status", "paused", "--json").lines] == ["s1", "s2"]
    assert sub("resume", "s1").err == "note: `s1` is active\n"
    assert [line["id"] for line in sub("list", "--status", "paused", "--json").lines] == ["s2"]


def test_lists_are_filtered_and_come_page_by_page(sub):
    for number in range(7):
        sub("add", f"price < {number}", "--id", f"s{number}", "--label", "odd" if number % 2 else "even")
    assert [line["id"] for line in sub("list", "--label", "odd", "--json").lines] == ["s1", "s3", "s5"]
    assert [line["id"] for line in sub("list", "-q", "price < 4", "--json").lines] == ["s4"]
    done = sub("list", "-n", 3)
    assert done.err == "note: there may be more; --limit 0 lists all\n"
    assert len(sub("list", "-n", 0, "--json").lines) == 7


# Keys ---------------------------------------------------------------------------------------------


def test_a_key_comes_from_a_file_a_variable_or_the_folder_here(sub, api, tmp_path, monkeypatch):
    monkeypatch.delenv("TIDINGS_KEY")
    done = sub("list")
    assert (done.code, done.err) == (
        1,
        "error: a key is needed: set TIDINGS_KEY, or give --key-file FILE; `tidings service key add` makes keys\n",
    )
    (tmp_path / "mine").write_text(api.make_key("mine") + "\n")
    assert sub("add", FILTER, "--id", "s1", "--key-file", "mine").code == 0
    assert [line["owner"] for line in sub("list", "--json", "--key-file", "mine").lines] == ["mine"]
    (tmp_path / "tidings-data").mkdir()
    (tmp_path / "tidings-data" / "admin.key").write_text(api.key + "\n")
    assert [line["owner"] for line in sub("list", "--owner", "mine", "--json").lines] == ["mine"]


def test_a_wrong_key_and_one_for_something_else_are_one_line(sub, api, monkeypatch):
    monkeypatch.setenv("TIDINGS_KEY", "tdk_wrong")
    assert "the key is unknown, expired or revoked" in sub("list").err
    monkeypatch.setenv("TIDINGS_KEY", api.make_key("x", "read"))
    done = sub("add", FILTER)
    assert done.err.startswith("error: this needs a key for `write`")
    assert "tdk_" not in done.err


def test_a_service_that_is_not_there_is_one_line(sub, tidings):
    done = sub("list", "--url", "http://127.0.0.1:9")
    assert done.code == 1
    assert done.err.startswith("error: no service answers at http://127.0.0.1:9")
    assert "`tidings serve` starts one" in done.err
    assert sub("list", "--url", "localhost:8080").err.startswith("error: `localhost:8080` is not the URL of a service")


# Many at once -------------------------------------------------------------------------------------


def test_what_is_exported_can_be_imported(sub, tmp_path):
    rows = [{"id": f"s{number}", "filter": f"price < {number}", "labels": ["x"]} for number in range(5)]
    done = sub("import", write_lines(tmp_path / "in.jsonl", rows))
    assert (done.code, done.err) == (0, "note: 5 subscriptions imported, 0 refused\n")
    assert sub("export", "-o", "out.jsonl").err == "note: 5 subscriptions in `out.jsonl`\n"
    exported = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(row["id"], row["filter"], row["labels"]) for row in exported] == [
        (row["id"], row["filter"], row["labels"]) for row in rows
    ]
    assert [json.loads(line) for line in sub("export").out.splitlines()] == exported
    for row in rows:
        sub("remove", row["id"])
    assert sub("import", "-", stdin=(tmp_path / "out.jsonl").read_text()).code == 0
    assert len(sub("list", "--json").lines) == 5


def test_an_import_is_all_or_nothing_unless_told_otherwise(sub, tmp_path):
    rows = [{"id": "s1", "filter": "price < 1"}, {"id": "s2", "filter": "price <"}, {"id": "s3"}]
    file = write_lines(tmp_path / "in.jsonl", rows)
    done = sub("import", file)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: line 2: expected an attribute")
    assert sub("list", "--json").lines == []
    done = sub("import", file, "--partial")
    assert done.code == 1
    assert "line 2: " in done.err
    assert "line 3: " in done.err
    assert done.err.splitlines()[-1] == "note: 1 subscription imported, 2 refused"
    assert [line["id"] for line in sub("list", "--json").lines] == ["s1"]
    assert sub("import", "nowhere").err == "error: cannot read `nowhere`: No such file or directory\n"


# Trying --------------------------------------------------------------------------------------------


@pytest.fixture
def ads(tmp_path):
    rows = [{"id": "a", "make": "ford", "price": 8500}, {"id": "b", "make": "opel", "price": 1}]
    return write_lines(tmp_path / "ads.jsonl", rows)


def test_a_filter_is_tried_on_events_before_it_is_a_subscription(sub, ads):
    done = sub("try", FILTER, "-e", ads)
    assert done.code == 0
    assert done.err == "note: 2 events, 1 match\n"
    assert done.out.startswith("event a: ")
    assert "price < 9000" in done.out
    lines = sub("try", FILTER, "-e", ads, "--json").lines
    assert [(line["index"], line["event"], line["matches"]) for line in lines] == [(0, "a", True), (1, "b", False)]
    assert sub("list", "--json").lines == []


def test_a_stored_subscription_is_tried_by_its_id(sub, ads):
    sub("add", "price < 5", "--id", "s1")
    assert [line["matches"] for line in sub("try", "--id", "s1", "-e", ads, "--json").lines] == [False, True]
    assert "`s2`" in sub("try", "--id", "s2", "-e", ads).err
    assert sub("try", "price < 5", "--id", "s1", "-e", ads).code == 2


def test_what_cannot_be_an_event_and_a_bad_filter_are_told(sub, tmp_path):
    (tmp_path / "ads.jsonl").write_text('{"id": "a", "make": "ford", "price": 1}\n[1]\n{"id": \n')
    done = sub("try", FILTER, "-e", "ads.jsonl")
    assert [" cannot be taken: " in line for line in done.out.splitlines() if line.startswith("event ")] == [
        False,
        True,
        True,
    ]
    done = sub("try", "price <", "-e", "ads.jsonl")
    assert done.err.splitlines()[1:] == ["  price <", "         ^"]


def test_a_pattern_is_tried_on_events(sub, tmp_path):
    rows = [{"id": str(at), "price": at, "time": f"2026-01-01T00:00:0{at}Z"} for at in range(4)]
    write_lines(tmp_path / "ads.jsonl", rows)
    (tmp_path / "rise.pattern").write_text("pattern rise\n  a = price = 1\n  b = price = 3\n  a ; b\n")
    done = sub("try", "--pattern", "rise.pattern", "-e", "ads.jsonl")
    assert done.code == 0
    assert "detected at 2026-01-01T00:00:03" in done.out


def test_a_filter_of_many_tests_is_tried_on_a_file_of_any_length(sub, tmp_path):
    write_lines(tmp_path / "ads.jsonl", [{"id": str(n), "a": n} for n in range(130)])
    done = sub("try", f"a in ({', '.join(map(str, range(2_000)))})", "-e", "ads.jsonl")
    assert (done.code, done.err) == (0, "note: 130 events, 130 match\n")


def test_a_pattern_that_matches_often_shows_the_first_and_says_how_many_there_are(sub, tmp_path):
    write_lines(tmp_path / "ads.jsonl", [{"id": str(at), "a": 1, "time": at} for at in range(120)])
    (tmp_path / "one.pattern").write_text("pattern one\n  a = a = 1\n  a\n")
    done = sub("try", "--pattern", "one.pattern", "-e", "ads.jsonl")
    assert done.out.count("detected at ") == 100
    assert "note: 20 more detections are not shown\n" in done.err


def test_without_events_the_matches_of_a_day_are_estimated(sub, api):
    done = sub("try", FILTER)
    assert done.code == 0
    assert "no estimate" in done.out or "matches a day" in done.out
    assert {"matches", "events", "per_day"} <= sub("try", FILTER, "--json").lines[0].keys()


# Matches ------------------------------------------------------------------------------------------


def write_matches(api, owner, batch, *events):
    rows = [
        MatchRow(owner=owner, subscription="s1", kind="match", at=NOW, event=event, values={"price": 5})
        for event in events
    ]
    api.store.matches.write("query", batch, rows, at=NOW, keep=100)


def test_matches_are_shown_newest_first(sub, api):
    (added,) = sub("add", FILTER, "--id", "s1", "--json").lines
    write_matches(api, added["owner"], 1, "a", "b")
    done = sub("matches", "s1")
    assert done.out.splitlines() == [f'2026-01-01T00:00:00Z  {event}  {{"price": 5}}' for event in "ba"]
    assert [line["event"] for line in sub("matches", "s1", "--json", "-n", 1).lines] == ["b"]


def test_the_stream_is_watched_and_taken_up_again(sub, api, spawn):
    (added,) = sub("add", FILTER, "--id", "s1", "--json").lines
    write_matches(api, added["owner"], 2, "a")
    environ = {"TIDINGS_URL": api.url, "TIDINGS_KEY": api.make_key(added["owner"])}
    process = spawn("sub", "watch", "--after", 0, "--json", env=environ)
    events = [json.loads(process.stdout.readline())["event"]]
    write_matches(api, added["owner"], 3, "b")
    events.append(json.loads(process.stdout.readline())["event"])
    assert events == ["a", "b"]
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert process.stderr.read() == b""


def test_a_stream_that_is_refused_for_a_while_is_asked_for_again(monkeypatch, capsys):
    asked, waits = [], []

    class Client:
        """Gives a stream, then says that it cannot just now, then that it must not."""

        def stream_lines(self, _path, *, headers, **_):
            asked.append(headers.get("Last-Event-ID"))
            if (status := {2: 503, 3: 429, 5: 401}.get(len(asked))) is not None:
                msg = f"no ({status})"
                raise RequestRefused(msg, problem={}, status=status)
            return iter([f"id: {len(asked)}", 'data: {"n": 1}', ""])

    monkeypatch.setattr("time.sleep", waits.append)
    with pytest.raises(RequestRefused, match="401"):
        list(follow_stream(Client(), "0"))
    assert asked == ["0", "1", "1", "1", "4"]
    assert waits == [0.5, 1.0, 2.0, 0.5]
    assert capsys.readouterr().err.count("trying again") == 2
