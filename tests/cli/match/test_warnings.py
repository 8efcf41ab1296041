"""Warnings about filters, as the command line shows them: on standard error, each once."""

import json

import pytest

BARE = "make = ford"
SUBSCRIPTIONS = [
    {"id": "s1", "filter": BARE},
    {"id": "s2", "filter": BARE},
    {"id": "s3", "filter": "price < 9000"},
    {"id": "s4", "filter": "price < `list_price`"},
]
EVENT = {"id": "e1", "make": "x", "ford": "x", "price": 1}


@pytest.fixture
def files(tmp_path):
    for name, lines in (("searches.jsonl", SUBSCRIPTIONS), ("ads.jsonl", [EVENT])):
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def list_warnings(done):
    return [line.removeprefix("warning: ") for line in done.err.splitlines() if line.startswith("warning: ")]


def test_parse_shows_the_warning_with_its_place(tidings):
    done = tidings("parse", BARE)
    assert done.code == 0
    assert done.out == "make = `ford`\n"
    assert done.err.splitlines() == [
        "warning: `ford` is read as another attribute; text goes in quotes: 'ford', an attribute in backticks: `ford`",
        f"  {BARE}",
        "         ^^^^",
    ]
    assert tidings("parse", "make = `ford`").err == ""
    (warning,) = tidings("parse", BARE, "--json").lines[0]["warnings"]
    assert (warning["start"], warning["end"]) == (7, 11)


@pytest.mark.parametrize(
    "command",
    [
        ("match", "-s", "searches.jsonl", "-e", "ads.jsonl", "--event-id", "id"),
        ("compile", "-s", "searches.jsonl", "-o", "snap"),
        ("explain", "-s", "searches.jsonl"),
    ],
)
@pytest.mark.usefixtures("files")
def test_commands_that_load_subscriptions_name_each_once(tidings, command):
    done = tidings(*command)
    assert done.code == 0, done.err
    assert [line.partition(":")[0] for line in list_warnings(done)] == ["subscription `s1`", "subscription `s2`"]


def test_patterns_are_warned_of_too(tidings, tmp_path):
    (tmp_path / "two.patterns").write_text(
        "pattern two\n  a = kind = start\n  b = kind = 'b'\n  a ; b\n", encoding="utf-8"
    )
    done = tidings("pattern", "compile", "two.patterns")
    assert done.code == 0, done.err
    assert len(list_warnings(done)) == 1
    assert "'start'" in done.err
