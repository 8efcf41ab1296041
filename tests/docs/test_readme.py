"""The README's examples, run."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

import tidings as td

pytestmark = pytest.mark.filterwarnings("error")
README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
NOW = datetime(2024, 4, 30, 9, tzinfo=UTC)
KINDS = td.Ontology.from_dict({"trees": {"kind": {"outline": "car\n  hatchback\n  estate\n"}}})


def find_section(title):
    return README.split(f"## {title}\n")[1].split("\n## ")[0]


def find_blocks(title, language):
    return re.findall(rf"```{language}\n(.*?)```", find_section(title), re.DOTALL)


def test_the_quickstart_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (source,) = find_blocks("Quickstart", "python")
    exec(compile(source, "README quickstart", "exec"), {})
    printed = capsys.readouterr().out
    assert "['cheap ford', 'mondeo or focus']" in printed
    assert "`not diesel` does not match: not fuel = 'diesel'" in printed
    assert "yes  fuel = 'diesel'   (saw diesel)" in printed
    assert "an event is a mapping" in printed
    assert "price: 1 of 3 values are text, asked as numbers by 1 subscription (cheap ford)" in printed
    assert len(td.Matcher.open(tmp_path / "searches")) == 3


def list_filters():
    (listed,) = find_blocks("By example", "text")
    return [text for line in listed.splitlines() for text in re.split(r"\s{2,}", line.strip()) if text]


def test_there_are_filters_to_try():
    assert len(list_filters()) >= 20


@pytest.mark.parametrize("filter_", list_filters())
def test_every_filter_by_example_matches_the_event(filter_):
    (event,) = find_blocks("By example", "json")
    tree = td.parse(filter_, ontology=KINDS)
    assert td.evaluate(tree, json.loads(event), ontology=KINDS, now=NOW)


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (Path(__file__).parents[2] / target).exists(), target


def test_the_mistake_is_shown_as_printed():
    (block,) = find_blocks("By example", "console")
    command, *rest = block.splitlines()
    filter_ = re.fullmatch(r'\$ tidings parse "(.*)"', command)[1]
    with pytest.raises(td.FilterError) as refused:
        td.parse(filter_)
    assert f"error: {refused.value}".splitlines() == rest
