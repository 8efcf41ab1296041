"""Values, filters, schemas and Arrow: invariants of the nouns."""

import pickle
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidings as td
from tidings.algebra.law.requirements import RequirementTracker
from tidings.concepts import Vocabulary
from tidings.errors import BadRegion, SchemaError
from tidings.model import And, EventBatch, In, Is, Kind, Not, Or, Range, Test, build_area, one_of
from tidings.model.arrow_types import to_rows


def test_and_or_of_one_part_are_refused():
    part = Test("a", Is(1))
    for connective in (And, Or):
        with pytest.raises(ValueError, match="single part"):
            connective((part,))


def test_sets_drop_repetitions_and_keep_their_order():
    assert In(("b", "a", "b")).values == ("b", "a")
    assert one_of([3, 3.0]) == Is(3)
    with pytest.raises(ValueError, match="one kind"):
        one_of([1, True])


@pytest.mark.parametrize(
    "make", [lambda: Range(5, 1), lambda: Range("a", 1), lambda: Range(True, None), lambda: Is(2**63)]
)
def test_values_that_cannot_be_are_refused(make):
    with pytest.raises(ValueError, match=r"\S"):
        make()


def test_an_absent_end_is_never_open():
    assert Range(1, None, high_open=True) == Range(1)


def test_filters_pickle_and_hash():
    tree = td.parse("a in [1 .. 2) and not (spot within POLYGON((0 0, 1 0, 1 1, 0 0))) or x has (y = 1)")
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert hash(tree) == hash(pickle.loads(pickle.dumps(tree)))
    assert isinstance(tree.parts[0].parts[1], Not)


@pytest.mark.parametrize(
    ("ring", "words"),
    [
        ([(0, 0), (1, 0), (0, 0)], "at least four"),
        ([(0, 0), (1, 0), (1, 1), (0, 1)], "not closed"),
        ([(0, 0), (2, 2), (2, 0), (0, 2), (0, 0)], "not valid"),
        ([(0, 0), (1, 99), (1, 1), (0, 0)], "latitude"),
        ([(0, 0), (1, "x"), (1, 1), (0, 0)], "two numbers"),
        ([(0, 0), (float("nan"), 1), (1, 1), (0, 0)], "latitude"),
    ],
)
def test_rings_that_enclose_nothing_are_refused(ring, words):
    with pytest.raises(BadRegion, match=words):
        build_area([[ring]])


def test_schemas_report_all_mistakes_together():
    with pytest.raises(SchemaError) as refused:
        td.Schema({"a": "nmber", "b": "several", "c": "text x", "d": 5, "e": "number"})
    assert len(str(refused.value).splitlines()) == 4


@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_schemas_are_loaded_from_files(tmp_path, suffix):
    source = {
        "toml": '[attributes]\nprice = "number"\ncar.make = "text"\n"x.y" = "several concept product"\n',
        "json": '{"price": "number", "car.make": "text", "x.y": "several concept product"}',
    }
    path = tmp_path / f"schema.{suffix}"
    path.write_text(source[suffix])
    schema = td.Schema.load(path)
    assert schema.to_dict() == {"price": "number", "car.make": "text", "x.y": "several concept product"}
    assert schema["x.y"].tree == "product"


@pytest.mark.parametrize("source", ["[", "5"])
def test_schema_files_that_are_none_are_refused(tmp_path, source):
    path = tmp_path / "schema.json"
    path.write_text(source)
    with pytest.raises(SchemaError, match="schema"):
        td.Schema.load(path)
    with pytest.raises(SchemaError):
        td.Schema.load(tmp_path / "nowhere.toml")


TYPES = pa.schema(
    [
        ("n", pa.decimal128(10, 2)),
        ("t", pa.timestamp("ns")),
        ("d", pa.date32()),
        ("s", pa.string()),
        ("ok", pa.bool_()),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.string())),
        ("car", pa.struct([("make", pa.string()), ("km", pa.int32())])),
        ("items", pa.list_(pa.struct([("sku", pa.string()), ("qty", pa.int64())]))),
        ("extra", pa.map_(pa.string(), pa.float64())),
        ("spot", pa.struct([("lon", pa.float64()), ("lat", pa.float64())])),
    ]
)


def test_arrow_types_give_kinds_and_cardinality():
    words = td.Schema.from_arrow(TYPES).to_dict()
    assert words == {
        "n": "number",
        "t": "time",
        "d": "time",
        "s": "string",
        "ok": "bool",
        "raw": "opaque",
        "tags": "several string",
        "car": "record",
        "car.make": "string",
        "car.km": "number",
        "items": "several record",
        "items.sku": "several string",
        "items.qty": "several number",
        "extra": "record",
        "extra.*": "several any",
        "spot": "place",
        "spot.lon": "number",
        "spot.lat": "number",
    }
    assert td.Schema.from_arrow(TYPES)["extra.anything"].kind is None
    assert td.Schema(words).to_dict() == words


@pytest.mark.parametrize(("kind", "accepted"), [
    ("string", {"text", "concept", "ip"}),
    ("text", {"text"}),
    ("concept", {"concept", "text"}),
    ("number", {"number"}),
    ("any", set(Kind)),
])  # fmt: skip
def test_an_attribute_says_what_filters_may_ask_of_it(kind, accepted):
    attribute = td.Schema({"a": kind})["a"]
    assert {asked for asked in Kind if attribute.accepts(asked)} == accepted
    assert str(attribute) == kind


def test_arrow_rows_become_events():
    row = {
        "n": Decimal("1.50"),
        "t": datetime(2024, 1, 1),  # noqa: DTZ001 - Arrow's zoneless timestamp
        "s": "x",
        "tags": ["a", None],
        "items": [{"sku": "x", "qty": 3}],
        "extra": [("k", 1.0)],
        "spot": {"lon": 1.0, "lat": 2.0},
    }
    (read,) = to_rows(pa.Table.from_pylist([row], schema=TYPES))
    assert read["extra"] == {"k": 1.0}
    assert read["car"] is None
    searches = td.Matcher(schema=td.Schema.from_arrow(TYPES))
    searches.add("all", "n = 1.5 and t = 2024-01-01 and tags = 'a' and items has (sku = 'x' and qty > 2)")
    searches.add("map", "extra.k = 1 and spot near (1, 2) 1 km and car is null and s starts with 'x'")
    batch = pa.RecordBatch.from_pylist([row], schema=TYPES)
    assert sorted(searches.match_many(batch).ids) == ["all", "map"]
    assert len(EventBatch.of(batch)) == 1


def test_an_opaque_column_can_only_exist():
    searches = td.Matcher(schema=td.Schema.from_arrow(TYPES))
    searches.add("there", "raw exists")
    assert searches.match({"raw": b"x"}) == ["there"]
    with pytest.raises(td.TidingsError, match="`raw` is declared opaque"):
        searches.add("no", "raw = 'x'")


def test_a_time_of_any_zone_is_one_time():
    assert td.parse("t = 2024-01-01T12:00:00+02:00") == Test("t", Is(datetime(2024, 1, 1, 10, tzinfo=UTC)))


def test_a_schema_is_inferred_from_filters_and_says_any_where_they_differ():
    filters = [td.parse("a < 5 and b has (c = 'x')"), td.parse("t > 2024-01-01 or a < d")]
    assert td.infer_schema(filters).to_dict() == {
        "a": "several number",
        "b": "several record",
        "b.c": "several text",
        "t": "several time",
        "d": "several any",
    }
    assert td.infer_schema([*filters, td.parse("a = 'x'")])["a"].kind is None
    assert td.infer_schema([td.parse("a > 5 GB")])["a"].kind is None  # only an ontology can declare the unit
    assert td.infer_schema([td.parse("a is a 'cat'")])["a"].kind == "concept"


TEXTS = [
    "a < 5", "a = 'x'", "a > 5 GB", "a is a 'cat'", "a in 10.0.0.0/8", "a < b", "b = true", "b = a", "b > 2024-01-01",
    "c has (a < b and a = 1)", "c has (a = 'x')", "c has (b = true)", "a exists", "b near (1, 2) 5 km",
]  # fmt: skip


@given(st.lists(st.sampled_from(TEXTS), max_size=6))
def test_an_inferred_schema_refuses_none_of_its_filters(texts):
    trees = [td.parse(text) for text in texts]
    schema = td.infer_schema(trees)
    needs = RequirementTracker(Vocabulary(schema))
    for tree in trees:
        needs.add(tree, "it")


def test_a_value_that_python_cannot_hold_is_bad_where_it_is_declared_and_nobodys_elsewhere():
    far = pa.array([0, 2**61], pa.int64()).cast(pa.timestamp("s", "Etc/GMT+2"))
    torn = pa.array([b"ok", b"\xff\xfe"]).view(pa.string())
    for schema in (td.Schema({"t": "time", "s": "text", "other": "text"}), None):
        searches = td.Matcher(schema=schema)
        searches.add_many([("t", "t < 2000-01-01"), ("s", "s = 'ok'"), ("o", "other = 'x'")])
        for column, name in ((far, "t"), (torn, "s")):
            matches = searches.match_many(pa.table({name: column, "other": ["x", "x"]}), on_error="collect")
            assert [sorted(ids) for ids in matches.by_event()] == [sorted([name, "o"]), [] if schema else ["o"]]
            assert [letter.index for letter in matches.dead_letters] == ([1] if schema else [])
            assert all(f"`{name}`" in letter.reason for letter in matches.dead_letters)


def test_times_in_any_zone_and_unit_are_read_wherever_they_stand():
    stamps = pa.array([[datetime(2024, 1, 1, tzinfo=UTC)]], pa.list_(pa.timestamp("ns", "GMT+2")))
    searches = td.Matcher()
    searches.add("t", "t = 2024-01-01")
    assert searches.match_many(pa.table({"t": stamps})).ids == ["t"]
