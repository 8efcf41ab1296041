"""`tidings parse`."""

import json

import pytest

FILTER = "make = 'ford' and price <= 9000"


def test_text_comes_back_as_text(tidings):
    done = tidings("parse", FILTER)
    assert (done.code, done.out, done.err) == (0, f"{FILTER}\n", "")


@pytest.mark.parametrize(
    ("shape", "shown"),
    [
        ("url", "make=ford&price_to=9000"),
        ("tree", "and\n├─ make = 'ford'\n└─ price <= 9000"),
        ("normal", FILTER),
    ],
)
def test_a_filter_is_written_as_asked(tidings, shape, shown):
    assert tidings("parse", FILTER, "--to", shape).out == f"{shown}\n"


def test_notations_lead_to_each_other(tidings):
    as_json = tidings("parse", FILTER, "--to", "json").out.strip()
    as_url = tidings("parse", as_json, "--from", "json", "--to", "url").out.strip()
    assert tidings("parse", as_url, "--from", "url").out == f"{FILTER}\n"


def test_the_picture_goes_into_records_and_negations(tidings):
    source = "a = 1 and not (b = 2 or items has (sku = 'x' and qty > 2))"
    assert tidings("parse", source, "--to", "tree").out.splitlines() == [
        "and",
        "├─ a = 1",
        "└─ not",
        "   └─ or",
        "      ├─ b = 2",
        "      └─ items has",
        "         └─ and",
        "            ├─ sku = 'x'",
        "            └─ qty > 2",
    ]


@pytest.mark.parametrize("constant", ["true", "false"])
def test_the_picture_of_a_constant_is_its_word(tidings, constant):
    assert tidings("parse", constant, "--to", "tree").out == f"{constant}\n"


def test_normal_form_multiplies_out(tidings):
    done = tidings("parse", "a = 1 and (b = 2 or c = 3)", "--to", "normal")
    assert done.out == "a = 1 and b = 2 or a = 1 and c = 3\n"


def test_a_dash_reads_standard_input(tidings):
    assert tidings("parse", "-", stdin=f"{FILTER}\r\n").out == f"{FILTER}\n"


def test_json_has_the_tree_and_what_was_asked_for(tidings):
    (line,) = tidings("parse", FILTER, "--to", "url", "--json").lines
    assert line["to"] == "url"
    assert line["rendered"] == "make=ford&price_to=9000"
    assert tidings("parse", json.dumps(line["filter"]), "--from", "json").out == f"{FILTER}\n"


def test_a_refusal_points_at_the_place(tidings, tmp_path):
    (tmp_path / "weather.toml").write_text('temp = "number"\ncity = "text"\n', encoding="utf-8")
    done = tidings("parse", "--schema", "weather.toml", "temp > 20 and cty = 'Bern'")
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines() == [
        "error: unknown attribute `cty`; did you mean `city`?",
        "  temp > 20 and cty = 'Bern'",
        "                ^^^",
    ]


def test_a_refusal_with_json_is_json_too(tidings):
    done = tidings("parse", "a = and", "--json")
    (line,) = done.lines
    assert done.code == 1
    assert line["mistakes"][0]["start"] == 4
    assert done.err.startswith("error: expected")


def test_what_a_notation_cannot_say_is_refused(tidings):
    done = tidings("parse", "not (a = 1 or b = 2)", "--to", "url")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")


def test_ontology_and_regions_are_looked_up(tidings, tmp_path):
    (tmp_path / "products.txt").write_text("product\n  computer\n    laptop\n", encoding="utf-8")
    square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]}
    collection = {"type": "Feature", "properties": {"name": "downtown"}, "geometry": square}
    (tmp_path / "regions.geojson").write_text(json.dumps(collection), encoding="utf-8")
    options = ("--ontology", "products.txt", "--regions", "regions.geojson")
    assert tidings("parse", "kind is a 'laptop' and spot within @downtown", *options).code == 0
    assert "did you mean `laptop`" in tidings("parse", "kind is a 'lapto'", *options).err
    assert "did you mean `downtown`" in tidings("parse", "spot within @downton", *options).err


@pytest.mark.parametrize("arguments", [["--from", "xml"], ["--to", "xml"], ["--what"]])
def test_wrong_usage_is_exit_2(tidings, arguments):
    done = tidings("parse", "a = 1", *arguments)
    assert (done.code, done.out) == (2, "")
    assert "Usage:" in done.err


def test_bytes_that_are_not_utf8_are_refused(tidings):
    done = tidings("parse", "-", stdin=b"a = '\xff'")
    assert done.code == 1
    assert "not UTF-8" in done.err
