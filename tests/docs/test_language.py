"""Every example of docs/language.md, run."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

import tidings as td

pytestmark = pytest.mark.filterwarnings("error")
PAGE = (Path(__file__).parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
NOW = datetime(2024, 7, 1, tzinfo=UTC)


def examples():
    for block in re.findall(r"```tidings\n(.*?)```", PAGE, re.DOTALL):
        for line in block.splitlines():
            verdict, filter_, event = (part.strip() for part in line.split(" | "))
            yield verdict, filter_, json.loads(event)


def rows():
    table = PAGE.split("### The truth table")[1].split("## 5.")[0]
    lines = [line for line in table.splitlines() if line.startswith("| `")]
    for line in lines:
        filter_, absent, null, empty, *others = (cell.strip() for cell in line.strip("|").split("|"))
        filter_ = filter_.strip("`")
        yield filter_, {}, absent
        yield filter_, {"a": None}, null
        yield filter_, {"a": []}, empty
        for cell in filter(None, others):
            value, verdict = re.fullmatch(r"`(.*)` (yes|no|bad)", cell).groups()
            yield filter_, {"a": value_of(value)}, verdict


def value_of(text):
    low, dots, high = text.partition(" .. ")
    return td.Range(end_of(low), end_of(high)) if dots else json.loads(text)


def end_of(text):
    return datetime.fromisoformat(text) if "-" in text else json.loads(text)


def verdict_of(filter_, event):
    try:
        return "yes" if td.evaluate(td.parse(filter_), event, now=NOW) else "no"
    except td.BadEvent:
        return "bad"


@pytest.mark.parametrize(("verdict", "filter_", "event"), list(examples()))
def test_example_holds(verdict, filter_, event):
    assert verdict_of(filter_, event) == verdict


@pytest.mark.parametrize(("filter_", "event", "verdict"), list(rows()))
def test_truth_table_holds(filter_, event, verdict):
    assert verdict_of(filter_, event) == verdict


def test_the_page_has_its_examples_and_its_table():
    assert len(list(examples())) > 40
    assert len({filter_ for filter_, _, _ in rows()}) >= 18


def test_json_example_round_trips_and_fits_the_published_schema():
    jsonschema = pytest.importorskip("jsonschema")
    (source,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    tree = td.parse(source, notation="json")
    rendered = td.render(tree, notation="json")
    assert td.parse(rendered, notation="json") == tree
    schema = json.loads((Path(td.__file__).parent / "lang" / "filter.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(json.loads(source), schema)
    jsonschema.validate(json.loads(rendered), schema)


def test_url_example_reads_as_the_page_says():
    url = "mark=FORD&model=FOCUS&model=MONDEO&year_from=2014&year_to=2016"
    text = "mark = 'FORD' and model in ('FOCUS', 'MONDEO') and year in [2014 .. 2016]"
    assert url in PAGE
    assert td.parse(url, notation="url") == td.parse(text)


def test_every_way_of_writing_a_test_is_read():
    table = PAGE.split("| written |")[1].split("```tidings")[0]
    written = [cell.split("|")[1] for cell in table.splitlines() if cell.startswith("| `")]
    filters = [one or other for cell in written for one, other in re.findall("``(.+?) ``|`([^`]+)`", cell)]
    assert len(filters) > 30
    for filter_ in filters:
        tree = td.parse(filter_)
        assert td.parse(td.render(tree)) == tree
