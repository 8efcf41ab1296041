"""Columns from Arrow equal columns from rows, and both equal what one value at a time gives."""

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from itertools import pairwise, product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from tidings.algebra import AttributeReader, ReadSpec, Requirements, Setting, collect_requirements, fold_names
from tidings.algebra.law.typed_attribute import Mismatch
from tidings.concepts import Ontology, Tree, Vocabulary
from tidings.engine.compile.columns import UNREADABLE_TEXT, Column, EventColumn, Numbers, View, to_typed_attribute
from tidings.engine.events.arrow_table import build_table_columns
from tidings.engine.events.event_columns import build_columns
from tidings.errors import BadEvent
from tidings.model import Kind, Point, Quantity, Range
from tidings.model.arrow_types import to_rows
from tidings.testing.strategies import NOW, cases

LETTERS = ("a", "o", "f", "ss", "")


UNREAD = "unread"
"""A value that is there and is not of the column's kind."""


class Letters:
    """Finds letters, in no order and some twice, for a finder promises neither."""

    def find_many(self, texts):
        codes = [[at for at, word in reversed(list(enumerate(LETTERS))) if word and word in text] for text in texts]
        starts = np.cumsum([0, *map(len, codes)])
        return starts, np.array([at for each in codes for at in each], dtype=np.int64)


def find_automata(column):
    assert column.view is View.PATTERNS
    return Letters()


# --- the naive twin -------------------------------------------------------------------------------


def read_naively(reading, column, setting):
    """What one event holds in one column: a set of numbers, byte strings and ranges."""
    values = reading.values.get(to_typed_attribute(column), ())
    match column.view:
        case View.EXISTS:
            return {0} if values or reading.elements.get(column.attribute) else set()
        case View.NULL:
            return {0} if column.attribute in reading.nulls else set()
        case View.PATTERNS:
            words = [value for value in values if isinstance(value, str)]
            codes = {at for at, word in enumerate(LETTERS) if word and any(word in text for text in words)}
            return codes or ({-1} if values else set())
    return {UNREAD if isinstance(value, Mismatch) else encode_naively(value, column, setting) for value in values}


def encode_naively(value, column, setting):
    match column.view, value:
        case View.NUMBER, Range(low, high, low_open, high_open):
            ends = [None if end is None else encode_naively(end, column, setting) for end in (low, high)]
            return (*ends, low_open, high_open)
        case View.NUMBER, int() | float():
            return value
        case View.NUMBER, datetime():
            return (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        case View.AGE, datetime():
            return (setting.now - value).total_seconds()
        case View.AGE, Range(low, high, low_open, high_open) if not isinstance(low or high, int | float):
            ends = [None if end is None else encode_naively(end, column, setting) for end in (high, low)]
            return (*ends, high_open, low_open)
        case View.TEXT, IPv4Address():
            return b"\x04" + value.packed
        case View.TEXT, IPv6Address():
            return b"\x06" + value.packed
        case View.TEXT, str():
            return value.encode()
        case View.REVERSED, str():
            return "".join(reversed(value)).encode()
        case View.FOLDED, str():
            return value.casefold().encode()
        case View.FOLDED_REVERSED, str():
            return "".join(reversed(value.casefold())).encode()
        case View.CONCEPT, str():
            number = setting.ontology.code(value, tree=column.tree)
            return -1 if number is None else number
        case View.LONGITUDE, Point():
            return value.lon
        case View.LATITUDE, Point():
            return value.lat
    return None


# --- looking into columns -------------------------------------------------------------------------


def list_rows(column: EventColumn | None, count: int) -> list[set]:
    """The values of each event, and that the column keeps its promises."""
    if column is None:
        return [set() for _ in range(count)]
    codes = list_places(column)
    if column.starts is None:
        assert len(codes) == count
        return [set() if code is None else {code} for code in codes]
    assert (len(column.starts), column.starts[0], column.starts[-1]) == (count + 1, 0, len(codes))
    assert None not in codes
    return [set(codes[start:end]) for start, end in pairwise(column.starts.tolist())]


def list_places(column):
    low = list_points(column.low)
    if column.high is None:
        return low
    high = list_points(column.high)
    assert len(low) == len(high) == len(column.open)
    return [build_span(*each) for each in zip(low, high, column.open.tolist(), strict=True)]


def build_span(low, high, ends):
    if low is None:
        return None
    if not ends and low == high:
        return low
    return (None if ends & 4 else low, None if ends & 8 else high, bool(ends & 1), bool(ends & 2))


def list_points(column):
    if isinstance(column, Numbers):
        assert column.near.dtype == np.float64
        rest = [0] * len(column) if column.rest is None else column.rest.tolist()
        return [number(near, more) for near, more in zip(column.near.tolist(), rest, strict=True)]
    assert column.index.dtype == np.int32
    assert len(set(column.distinct)) == len(column.distinct)
    odd = {-1: None, UNREADABLE_TEXT: UNREAD}
    return [odd[at] if at < 0 else column.distinct[at] for at in column.index.tolist()]


def number(near, rest):
    if math.isnan(near):
        return None
    if math.isinf(near):
        return UNREAD
    return int(near) + rest if near == int(near) else near


def simplify_codes(codes):
    """A closed range of one point is that point."""
    return {
        code[0] if isinstance(code, tuple) and code[0] is not None and code[0] == code[1] else code for code in codes
    }


WORDED = (View.TEXT, View.REVERSED, View.FOLDED, View.FOLDED_REVERSED, View.PATTERNS)
VIEWS = {
    Kind.NUMBER: (View.NUMBER,),
    Kind.BOOL: (View.NUMBER,),
    Kind.TIME: (View.NUMBER, View.AGE),
    Kind.TEXT: WORDED,
    Kind.CONCEPT: WORDED,
    Kind.IP: (View.TEXT,),
    Kind.PLACE: (View.LONGITUDE, View.LATITUDE),
    None: (View.EXISTS, View.NULL),
}


def list_columns(required: Requirements, ontology: Ontology) -> list[Column]:
    ways = [(name, need) for name, needs in required.attributes.items() for need in needs]
    columns = []
    for name, need in ways:
        unit = None if need.bare else need.unit
        columns += [Column(name, view, kind=need.kind, unit=unit) for view in VIEWS.get(need.kind, ())]
        if need.kind in (Kind.TEXT, Kind.CONCEPT):
            columns += [Column(name, View.CONCEPT, tree) for tree in ontology.trees]
    return columns


def build_requirements(needs: Mapping[str, ReadSpec], *, strict: bool) -> Requirements:
    """Each attribute as it is needed, and as it is."""
    return Requirements(
        {
            name: (replace(need, strict=strict and need.kind is not None), ReadSpec(several=need.several))
            for name, need in needs.items()
        }
    )


def assert_columns_agree(table: pa.Table, needs: Mapping[str, ReadSpec], ontology: Ontology) -> bool:
    """Hold a table's columns against those of its rows, declared or not; tell whether it was read at once."""
    at_once = {
        strict: assert_table_agrees(table, build_requirements(needs, strict=strict), ontology)
        for strict in (True, False)
    }
    return at_once[True]


def assert_table_agrees(table: pa.Table, needs: Requirements, ontology: Ontology) -> bool:
    setting, wanted = Setting(ontology, NOW), list_columns(needs, ontology)
    reader = AttributeReader(needs, ontology)
    readings, bad = [], []
    for at, row in enumerate(to_rows(table)):
        try:
            readings.append(reader.read(row, NOW))
        except BadEvent:
            bad.append(at)
    assert_readings_agree(readings, wanted, setting)
    columns_built = build_table_columns(table, needs, wanted=wanted, setting=setting, automata=find_automata)
    if columns_built is None:
        return False
    assert columns_built.odd.tolist() == bad
    unseen = build_table_columns(table, needs, wanted=(), setting=setting, automata=find_automata)
    assert (unseen.odd.tolist(), unseen.batch) == (bad, {})
    assert sorted([*columns_built.odd.tolist(), *columns_built.plain.tolist()]) == list(range(table.num_rows))
    for column in wanted:
        values = list_rows(columns_built.batch.get(column), len(readings))
        assert values == [read_naively(reading, column, setting) for reading in readings], column
    return True


def assert_readings_agree(readings, wanted, setting):
    batch = build_columns(readings, wanted, setting=setting, automata=find_automata)
    ones = [build_columns([reading], wanted, setting=setting, automata=find_automata) for reading in readings]
    for column in wanted:
        expected = [simplify_codes(read_naively(reading, column, setting)) for reading in readings]
        assert list_rows(batch.get(column), len(readings)) == expected, column
        assert [list_rows(batch.get(column), 1)[0] for batch in ones] == expected, column


# --- worlds ---------------------------------------------------------------------------------------


def needs_and_ontology(case):
    world = case.world
    trees = [fold_names(tree, world.ontology) for tree in case.filters]
    return collect_requirements(trees, Vocabulary(world.schema, world.ontology)), world.ontology


def has_shared_spellings(ontology):
    return any(tree.shared_spellings() for tree in ontology.trees.values())


@given(cases())
def test_readings_show_every_view_what_single_values_do(case):
    needs, ontology = needs_and_ontology(case)
    assume(not has_shared_spellings(ontology))
    setting, reader = Setting(ontology, NOW), AttributeReader(needs, ontology)
    readings = []
    for each in case.events:
        try:
            readings.append(reader.read(each, NOW))
        except BadEvent:
            event("bad")
    assert_readings_agree(readings, list_columns(needs, ontology), setting)


def is_arrowable(value):
    match value:
        case Point(lon, lat):
            return {"lon": lon, "lat": lat}
        case Quantity(amount, unit):
            return f"{amount} {unit}"
        case list() | tuple():
            return [is_arrowable(each) for each in value]
        case dict():
            return {name: is_arrowable(each) for name, each in value.items()} or None
        case None | bool() | int() | float() | str() | bytes() | date() | Decimal():
            return value
        case IPv4Address() | IPv6Address():
            return str(value)
    return None


def to_array(values):
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.array([None if each is None else ascii(each) for each in values])


def to_table(events):
    names = dict.fromkeys(name for each in events for name in each)
    return pa.table({name: to_array([is_arrowable(each.get(name)) for each in events]) for name in names})


@given(cases())
def test_a_table_of_any_world_shows_every_view_what_its_rows_do(case):
    needs, ontology = needs_and_ontology(case)
    assume(not has_shared_spellings(ontology))
    table = to_table(case.events)
    if table.num_columns:
        event(f"read at once: {assert_table_agrees(table, needs, ontology)}")


# --- tables made by hand --------------------------------------------------------------------------

GOODS = Ontology(
    trees={
        "goods": Tree({"thing": [], "car": ["thing"], "van": ["car"]}, {"car": ["auto"]}),
        "other": Tree({"van": [], "beta": ["van"]}),
    },
    attributes={},
)
INTS = [0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**63 - 2, -(2**63), 2**62 + 3]
FLOATS = [0.0, -0.0, 1.5, float("nan"), float("inf"), -float("inf"), 1e300, 5e-324, 2.0**60]
WORDS = ["", "a", "A", "STRASSE", "straße", "İ", "e\u0301a", "van", "VAN", "auto", "thing", "1", " 1.5 ", "1e999",
         "9223372036854775808", "true", "False", "10.0.0.1", "::ffff:10.0.0.1", "2001:db8::1", "2024-05-01",
         "2024-05-01T12:00:00+02:00", "0001-01-01T00:00:00+05:00", "1600-02-03", "12 km", "\x00"]  # fmt: skip
SCALARS = [
    Kind.NUMBER,
    Kind.TEXT,
    Kind.BOOL,
    Kind.TIME,
    Kind.PLACE,
    Kind.CONCEPT,
    Kind.IP,
    Kind.OPAQUE,
    Kind.RECORD,
    None,
]


def build_raw_array(arrow_type, numbers, width):
    return pa.Array.from_buffers(
        arrow_type, len(numbers), [None, pa.py_buffer(np.array(numbers, dtype=width).tobytes())]
    )


YEARS = [
    datetime(year, month, day, *time, tzinfo=UTC)
    for year, month, day, *time in (
        (1, 1, 1), (9999, 12, 31, 23, 59, 59, 999999), (1969, 12, 31, 23, 59, 59, 999999), (1500, 1, 1), (2024, 5, 1)
    )
]  # fmt: skip
BROKEN_TEXT = pa.Array.from_buffers(
    pa.string(), 3, [None, pa.py_buffer(np.array([0, 1, 2, 3], dtype=np.int32).tobytes()), pa.py_buffer(b"a\xffb")]
)
CODES = pa.array([0, 1, None, 2, 1, 3], pa.uint8())
LISTED = (pa.array([0, 2, 4], pa.int32()), pa.array([1, 2, 3, 4]))
PLACES = [
    {"lon": 1.5, "lat": 2},
    None,
    {"lon": 181.0, "lat": 0},
    {"lon": None, "lat": 0},
    {"lon": float("nan"), "lat": 1},
]
SECONDS = [0, 2**62, -(2**62), 253402300799, 253402300800, -62135596800, -62135596801]
MILLIS = [0, 253402300799999, 253402300800000, -62135596800001, -1]
NANOS = [0, -1, -1000, -1001, 1001, 999, 2**63 - 1, -(2**63) + 1]
ARRAYS = {
    "int64": pa.array([*INTS, None]),
    "int64 without nulls": pa.array(INTS),
    "small": pa.array([1, None, -3], type=pa.int8()),
    "uint64": pa.array([0, None, 2**63 - 1, 2**63, 2**64 - 1], type=pa.uint64()),
    "float64": pa.array([*FLOATS, None]),
    "float64 without nulls": pa.array([1.5, 2.5]),
    "float32": pa.array([0.1, None, 16777217.0, float("nan")], type=pa.float32()),
    "float16": pa.array([0.5, None, 1.5], type=pa.float16()),
    "decimal": pa.array([Decimal("1.50"), Decimal("3.00"), None, Decimal("1.50")]),
    "bool": pa.array([True, False, None]),
    "null": pa.nulls(3),
    "text": pa.array([*WORDS, None, *WORDS]),
    "large text": pa.array([*WORDS, None], type=pa.large_string()),
    "text view": pa.array([*WORDS, None], type=pa.string_view()),
    "broken text": BROKEN_TEXT,
    "dictionary": pa.DictionaryArray.from_arrays(CODES, pa.array(["a", None, "7", "van", "x"])),
    "dictionary of numbers": pa.array([5, None, 5, 2**60 + 1]).dictionary_encode(),
    "long dictionary": pa.DictionaryArray.from_arrays(pa.array([20, None, 3]), pa.array(WORDS)),
    "timestamp us": pa.array([*YEARS, None], type=pa.timestamp("us")),
    "timestamp s": build_raw_array(pa.timestamp("s"), SECONDS, np.int64),
    "timestamp ms": build_raw_array(pa.timestamp("ms", "UTC"), MILLIS, np.int64),
    "timestamp ns": build_raw_array(pa.timestamp("ns"), NANOS, np.int64),
    "timestamp in a zone": pa.array([*YEARS[2:], None], type=pa.timestamp("us", "America/New_York")),
    "timestamp beyond": build_raw_array(pa.timestamp("us", "+02:00"), [2**63 - 1, -(2**63), 5], np.int64),
    "date32": build_raw_array(pa.date32(), [0, -1, 2932896, 2932897, -719162, -719163], np.int32),
    "date64": build_raw_array(pa.date64(), [0, 1, -1, 86399999, -86400001, 2**62], np.int64),
    "bytes": pa.array([b"a", None, b"\xff"]),
    "time": pa.array([1, None, 5], type=pa.time64("ns")),
    "time beyond": build_raw_array(pa.time32("s"), [5, 100_000], np.int32),
    "duration": pa.array([1, None], type=pa.duration("us")),
    "places": pa.array(PLACES),
    "whole places": pa.array([{"lat": 2, "lon": 1, "name": "x"}, {"lat": -90, "lon": 180, "name": None}]),
    "decimal places": pa.array([{"lon": Decimal("1.5"), "lat": Decimal(2)}] * 2),
    "text places": pa.array([{"lon": "1", "lat": "2"}, None]),
    "records": pa.array([{"b": 1}, None, {"b": None}]),
    "empty records": pa.array([{}, None], type=pa.struct([])),
    "numbers": pa.array([[1, 2, 2], None, [], [None], [2**53 + 1, None]]),
    "floats": pa.array([[1.5], [float("nan"), 1], None, [2.0]]),
    "pairs": pa.array([[1.0, 2.0], None], type=pa.list_(pa.float64(), 2)),
    "words": pa.array([["a", "A", "a"], None, [], [None, "van"], ["1", "x"]]),
    "large words": pa.array([["a", "1"], None, ["b"]], type=pa.large_list(pa.string())),
    "coded words": pa.ListArray.from_arrays(LISTED[0], pa.array(["a", "o", "a", "1"]).dictionary_encode()),
    "hidden numbers": pa.ListArray.from_arrays(*LISTED, mask=pa.array([True, False])),
    "moments": pa.array([[YEARS[4], None], [YEARS[0]]]),
    "several places": pa.array([[{"lon": 1, "lat": 2}, None, {"lon": 3, "lat": 4}], [], None]),
    "several records": pa.array([[{"b": 1}, None], [], None]),
    "lists of lists": pa.array([[[1], [2, 3]], None]),
    "maps": pa.array([[("b", 1)], None], type=pa.map_(pa.string(), pa.int64())),
}
SLOW = {"lists of lists", "maps", "decimal places", "empty records", "pairs", "several records"}


def build_spec(kind, *, several=True, folded=False):
    return ReadSpec(kind, several=several, tree="goods" if folded else None, folded=folded)


@pytest.mark.parametrize("name", ARRAYS)
def test_every_type_is_read_as_every_kind(name):
    for kind, several in product(SCALARS, (True, False)):
        needs = {"a": build_spec(kind, several=several)}
        fast = {
            assert_columns_agree(pa.table({"a": array}), needs, GOODS) for array in (ARRAYS[name], ARRAYS[name][1:])
        }
        assert len(fast) == 1
        assert True in fast or name in SLOW or kind in (Kind.PLACE, Kind.RECORD)


@pytest.mark.parametrize("name", ["text", "dictionary", "words", "int64"])
def test_names_of_a_declared_concept_fold(name):
    assert assert_columns_agree(pa.table({"a": ARRAYS[name]}), {"a": build_spec(Kind.CONCEPT, folded=True)}, GOODS)


def test_units_are_converted_for_each_distinct_text():
    table = pa.table({"a": ["12 km", "5", None, "3 kg", "12 km", "7 parsnip"]})
    for bare in (True, False):
        assert assert_columns_agree(table, {"a": ReadSpec(Kind.NUMBER, unit="m", bare=bare)}, GOODS)
    numbers = pa.table({"a": [1, 2, None]})
    for bare in (True, False):
        assert assert_columns_agree(numbers, {"a": ReadSpec(Kind.NUMBER, unit="m", bare=bare)}, GOODS)


def test_a_unit_in_another_column_is_read_row_by_row():
    needs = {"a": ReadSpec(Kind.NUMBER, unit="m", unit_from="unit")}
    assert not assert_columns_agree(pa.table({"a": [1, 2], "unit": ["km", None]}), needs, GOODS)
    assert assert_columns_agree(pa.table({"a": [1, 2]}), needs, GOODS)


RECORDS = pa.StructArray.from_arrays(
    [pa.array([1, 2, None, 4]), pa.array(["a", None, "c", "d"]), pa.array([[1], None, [2, 3], []])],
    ["n", "w", "l"],
    mask=pa.array([False, True, False, False]),
)


@pytest.mark.parametrize("array", [RECORDS, RECORDS[1:], pa.chunked_array([RECORDS, RECORDS[:2]])])
def test_fields_of_records_are_attributes_with_dots(array):
    needs = {
        "a.n": build_spec(Kind.NUMBER),
        "a.w": build_spec(Kind.TEXT),
        "a.l": build_spec(Kind.NUMBER),
        "a.none": build_spec(None),
    }
    assert assert_columns_agree(pa.table({"a": array}), needs, GOODS)
    assert assert_columns_agree(pa.table({"a": array}), {"a": build_spec(Kind.RECORD), **needs}, GOODS)
    assert assert_columns_agree(
        pa.table({"a": array}), {"a.n.m": build_spec(Kind.NUMBER), "a.l": build_spec(Kind.TEXT)}, GOODS
    )
    deep = pa.StructArray.from_arrays([array], ["b"]) if isinstance(array, pa.Array) else RECORDS
    assert assert_columns_agree(
        pa.table({"x": deep}), {"x.b.n": build_spec(Kind.NUMBER), "x.b": build_spec(None)}, GOODS
    )


def test_a_name_with_a_dot_is_a_column_too_but_not_both():
    needs = {"a.n": build_spec(Kind.NUMBER)}
    assert assert_columns_agree(pa.table({"a.n": [1, None]}), needs, GOODS)
    assert assert_columns_agree(pa.table({"a.n": [1, None], "a": [5, 6]}), needs, GOODS)
    assert not assert_columns_agree(pa.table({"a.n": [1, None, 3, 4], "a": RECORDS}), needs, GOODS)


def test_synonyms_feed_an_attribute_one_at_a_time():
    ontology = Ontology.from_dict({"attributes": {"colour": {"kind": "text", "synonyms": ["color"]}}})
    needs = {"colour": build_spec(Kind.TEXT)}
    assert assert_columns_agree(pa.table({"color": ["red", None]}), needs, ontology)
    assert not assert_columns_agree(pa.table({"color": ["red", None], "colour": [None, "x"]}), needs, ontology)


def test_derived_attributes_are_read_row_by_row():
    ontology = Ontology.from_dict({"derived": {"twice": "2 * once"}})
    assert not assert_columns_agree(pa.table({"once": [1, None]}), {"twice": build_spec(Kind.NUMBER)}, ontology)


def test_of_two_columns_with_one_name_the_last_counts():
    table = pa.table([pa.array([1, 2]), pa.array([3, 4])], names=["a", "a"])
    assert assert_columns_agree(table, {"a": build_spec(Kind.NUMBER)}, GOODS)


def test_one_bad_attribute_makes_the_row_odd_for_all():
    table = pa.table({"a": [1.0, float("nan"), 3.0], "b": ["x", "y", "10.0.0.1"], "c": ["x", "y", "z"]})
    needs = {"a": build_spec(Kind.NUMBER), "b": build_spec(Kind.IP), "c": build_spec(Kind.TEXT)}
    assert assert_columns_agree(table, needs, GOODS)


@given(st.lists(st.sampled_from(sorted(ARRAYS)), min_size=1, max_size=4, unique=True), st.data())
def test_tables_of_several_columns_are_read_as_their_rows(names, data):
    size = min(len(ARRAYS[name]) for name in names)
    kinds = {name: data.draw(st.sampled_from(SCALARS)) for name in names}
    table = pa.table({name: ARRAYS[name][:size] for name in names})
    if data.draw(st.booleans()):
        table = pa.concat_tables([table, table.slice(1), table])
    assert_columns_agree(table, {name: build_spec(kind) for name, kind in kinds.items()}, GOODS)
