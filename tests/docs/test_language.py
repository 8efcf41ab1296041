"""Every example of docs/language.md, run."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

import tidings as td
from tidings.errors import KindConflict

pytestmark = pytest.mark.filterwarnings("error")
PAGE = (Path(__file__).parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
NOW = datetime(2024, 7, 1, tzinfo=UTC)


def list_examples():
    """Every line of every block, with the schema that stands above it."""
    for block in re.findall(r"```tidings\n(.*?)```", PAGE, re.DOTALL):
        schema = None
        for line in block.splitlines():
            verdict, *parts = (part.strip() for part in line.split(" | "))
            if verdict == "schema":
                schema = json.loads(parts[0])
            else:
                yield verdict, parts[0], json.loads(parts[1]), schema


def list_rows():
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
            yield filter_, {"a": parse_value(value)}, verdict


def parse_value(text):
    low, dots, high = text.partition(" .. ")
    return td.Range(parse_end(low), parse_end(high)) if dots else json.loads(text)


def parse_end(text):
    return datetime.fromisoformat(text) if "-" in text else json.loads(text)


def judge(filter_, event, declared=None):
    schema = None if declared is None else td.Schema(declared)
    try:
        return "yes" if td.evaluate(td.parse(filter_), event, schema=schema, now=NOW) else "no"
    except td.BadEvent:
        return "bad"
    except (td.FilterError, KindConflict):
        return "refused"


@pytest.mark.parametrize(("verdict", "filter_", "event", "declared"), list(list_examples()))
def test_example_holds(verdict, filter_, event, declared):
    assert judge(filter_, event, declared) == verdict


@pytest.mark.parametrize(("filter_", "event", "verdict"), list(list_rows()))
def test_truth_table_holds(filter_, event, verdict):
    assert judge(filter_, event) == verdict


KIND_OF_ROW = [
    ("GB", None), ("starts with", "several text"), ("ignoring case", "several text"),
    ("true", "several bool"), ("2024", "several time"),
    ("near", "several place"), ("10.0.0.0", "several ip"), ("has", "several record"), ("null", None), ("exists", None),
    ("", "several number"),
]  # fmt: skip


def find_declaration(filter_):
    """The kind that a row's operator asks for; of amounts only an ontology can declare the unit."""
    kind = next(kind for word, kind in KIND_OF_ROW if word in filter_)
    return kind and ({"a": kind, "a.b": "several number"} if kind == "several record" else {"a": kind})


def list_declared_rows():
    table = PAGE.split("### The truth table")[1].split("## 5.")[0]
    lines = [line for line in table.splitlines() if line.startswith("| `")]
    unreadable = {line.split("|")[1].strip().strip("`"): re.match(r" `(.*)` ", line.split("|")[8]) for line in lines}
    for filter_, event, verdict in list_rows():
        if find_declaration(filter_):
            wrong = repr(event.get("a")) == repr(json.loads(unreadable[filter_][1]))  # not `==`: 1 is not true
            yield filter_, event, "bad" if wrong else verdict


@pytest.mark.parametrize(("filter_", "event", "verdict"), list(list_declared_rows()))
def test_truth_table_holds_of_declared_attributes(filter_, event, verdict):
    assert judge(filter_, event, find_declaration(filter_)) == verdict


@pytest.mark.parametrize(("filter_", "event", "verdict"), list(list_rows()))
def test_every_row_stays_as_it_is_beside_tests_of_other_kinds(filter_, event, verdict):
    others = (
        "a > 7 or a = 'z' or a = false or a < 1970-01-01 or a near (8, 8) 1 m or a in ::2 or a > 7 km or a has (b = 7)"
    )
    assert judge(f"({filter_}) and not (({others}) and false)", event) == verdict


def test_the_page_has_its_examples_and_its_table():
    assert len(list(list_examples())) > 80
    assert {verdict for verdict, *_ in list_examples()} == {"yes", "no", "bad", "refused"}
    assert len({filter_ for filter_, _, _ in list_rows()}) >= 25


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
    cells = [cell.split("|")[1] for cell in table.splitlines() if cell.startswith("| `")]
    filters = [part or other for cell in cells for part, other in re.findall("``(.+?) ``|`([^`]+)`", cell)]
    assert len(filters) > 30
    for filter_ in filters:
        tree = td.parse(filter_)
        assert td.parse(td.render(tree)) == tree
