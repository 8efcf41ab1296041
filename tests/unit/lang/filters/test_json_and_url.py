"""JSON and URL notation: what is read, what is refused, what cannot be said."""

import pytest

import tidings as td
from tidings.model import And, In, Is, Test

BAD_JSON = [
    ("{", "not JSON"),
    ("NaN", "finite"),
    ("5", "expected a filter"),
    ('{"and": 5}', "list"),
    ('{"xor": []}', "did you mean `or`"),
    ('{"attr": "a"}', "unknown operator"),
    ('{"attr": "a", "op": "=="}', "unknown operator"),
    ('{"attr": "a", "op": "="}', "needs `value`"),
    ('{"attr": "a", "op": "=", "value": null}', "expected"),
    ('{"attr": "a", "op": "=", "value": 1, "vlaue": 2}', "unknown key `vlaue`"),
    ('{"attr": "", "op": "exists"}', "not an attribute"),
    ('{"attr": 5, "op": "exists"}', "name"),
    ('{"attr": "a", "op": "range"}', "at least one end"),
    ('{"attr": "a", "op": "range", "low": 5, "high": 1}', "above"),
    ('{"attr": "a", "op": "in", "values": []}', "at least one"),
    ('{"attr": "a", "op": "exists", "quantifier": "all"}', "no quantifier"),
    ('{"attr": "a", "op": "=", "value": 1, "quantifier": "some"}', "unknown quantifier"),
    ('{"attr": "a", "op": "=", "value": {"time": "soon"}}', "not a date"),
    ('{"attr": "a", "op": "within", "geometry": {"type": "Point", "coordinates": [1, 2]}}', "GeoJSON"),
    ('{"attr": "a", "op": "within", "geometry": {"type": "Polygon", "coordinates": [1, 2]}}', "nested"),
    ('{"attr": "a", "op": "near", "lon": 0, "lat": 0, "metres": -5}', "negative"),
    ('{"attr": "a", "op": "in networks", "networks": [5]}', "text"),
    ('{"attr": "a", "op": "age", "high": "7 days"}', "seconds"),
    ('{"attr": "a", "op": "=", "value": "\\ud800"}', "surrogate"),
]


@pytest.mark.parametrize(("source", "words"), BAD_JSON)
def test_bad_json_is_refused_with_the_reason(source, words):
    with pytest.raises(td.FilterError, match=words):
        td.parse(source, notation="json")


def test_json_takes_text_or_the_decoded_object():
    tree = {"and": [{"attr": "a", "op": "=", "value": 1}, {"attr": "b", "op": "<", "value": 2}]}
    assert td.parse(tree, notation="json") == td.parse("a = 1 and b < 2")


@pytest.mark.parametrize("quantifier", ["", "any", "all", "none"])
def test_unequal_reads_alike_in_json_and_text(quantifier):
    node = {"attr": "a", "op": "!=", "value": 1} | ({"quantifier": quantifier} if quantifier else {})
    text = f"{quantifier}(a) != 1" if quantifier else "a != 1"
    assert td.parse(node, notation="json") == td.parse(text)


def test_mistakes_in_json_are_reported_together_with_their_paths():
    source = {"or": [{"attr": "a", "op": "x"}, {"not": {"attr": "b", "op": "in", "values": []}}]}
    with pytest.raises(td.FilterError) as refused:
        td.parse(source, notation="json")
    assert [mistake.path for mistake in refused.value.mistakes] == ["$.or[0].op", "$.or[1].not"]


def test_deep_json_names_the_limit():
    deep = "a"
    tree: object = True
    for _ in range(500):
        tree = {"not": tree}
    with pytest.raises(td.FilterError, match="100 levels"):
        td.parse(tree, notation="json")
    with pytest.raises(td.TidingsError):
        td.parse("[" * 100_000 + deep, notation="json")


def test_classifieds_filters_in_url_notation():
    f1 = td.parse("mark=FORD&model=FOCUS&model=MONDEO&year=2016", notation="url")
    f2 = td.parse("year_from=2014&year_to=2016", notation="url")
    f3 = td.parse("mark=FORD&model=MONDEO", notation="url")
    a1 = {"region": "Moscow", "mark": "FORD", "model": "MONDEO", "year": "2016"}
    a2 = {"region": "Saint-Petersburg", "mark": "BMW", "model": "3ER", "year": "2015"}
    assert [td.evaluate(f, a1) for f in (f1, f2, f3)] == [True, True, True]
    assert [td.evaluate(f, a2) for f in (f1, f2, f3)] == [False, True, False]


def test_url_repeats_are_sets_and_ends_are_one_range():
    assert td.parse("m=A&n=1&m=B", notation="url") == And((Test("m", In(("A", "B"))), Test("n", Is(1))))
    assert td.parse("?y_to=9", notation="url") == td.parse("y <= 9")
    assert td.parse("q=a+b%26c", notation="url") == td.parse("q = 'a b&c'")


def test_url_values_take_the_schemas_kind():
    schema = td.Schema({"zip": "text", "ok": "bool", "t": "time", "ip": "ip", "n": "number", "valid_from": "time"})
    assert td.parse("zip=123", notation="url", schema=schema) == td.parse("zip = '123'")
    assert td.parse("ok=true", notation="url", schema=schema) == td.parse("ok = true")
    assert td.parse("t_from=2024-01-01", notation="url", schema=schema) == td.parse("t >= 2024-01-01")
    assert td.parse("ip=10.0.0.0/8", notation="url", schema=schema) == td.parse("ip in 10.0.0.0/8")
    assert td.parse("valid_from=2024-01-01", notation="url", schema=schema) == td.parse("valid_from = 2024-01-01")
    with pytest.raises(td.FilterError, match="`x` is not number"):
        td.parse("n=x", notation="url", schema=schema)
    with pytest.raises(td.FilterError, match="did you mean `zip`"):
        td.parse("zipp=1", notation="url", schema=schema)


def test_url_numbers_are_those_that_read_as_numbers():
    assert td.parse("a=007", notation="url") == td.parse("a = '007'")
    assert td.parse("a=-1.5e3", notation="url") == td.parse("a = -1500.0")


@pytest.mark.parametrize(
    "source", ["", "a", "=1", "a=1&&b=2", "a=%zz", "a=%ff", "a_from=1&a_from=2", "a_from=5&a_to=1"]
)
def test_bad_urls_are_refused(source):
    with pytest.raises(td.FilterError):
        td.parse(source, notation="url")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a = 1 and not b = 2", "not b = 2"),
        ("a < 5", "a < 5"),
        ("a = 1 or b = 2", "a = 1 or b = 2"),
        ("a >= 1 and a <= 2", "a <= 2"),
        ("a = '5'", "a = '5'"),
        ("a != 5", "a != 5"),
        ("a_to = 5", "a_to = 5"),
        ("a exists", "a exists"),
        ("true", "true"),
    ],
)
def test_what_url_cannot_say_is_named(text, part):
    with pytest.raises(td.NotExpressible) as refused:
        td.render(td.parse(text), notation="url")
    assert refused.value.part == part
    assert part in str(refused.value)


def test_render_gives_the_paper_form():
    assert td.render(td.parse("make = 'ford' and price <= 9000"), notation="url") == "make=ford&price_to=9000"


def test_an_unknown_notation_is_refused():
    with pytest.raises(td.TidingsError, match="text, json, url"):
        td.parse("a = 1", notation="yaml")
    with pytest.raises(td.TidingsError):
        td.parse(5)
