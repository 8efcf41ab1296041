"""Tables of parameters: whole columns mean what their rows mean, one by one, and are refused for the same reasons."""

from datetime import UTC, date, datetime

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given
from tests.examples import examples

import tidings as td
from tidings.bench.workloads import workload
from tidings.errors import BadSubscriptions, TidingsError
from tidings.matcher.tuning import MatcherTuning
from tidings.model import Is, Kind, Range, Test, Within, all_of, one_of
from tidings.model.areas import build_area

INSIDE = "POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))"
AROUND = "POLYGON((170 0, -170 0, -170 9, 170 9, 170 0))"
SQUARES = {
    INSIDE: [[[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]],
    AROUND: [[[[170, 0], [-170, 0], [-170, 9], [170, 9], [170, 0]]]],
}


AT_ONCE = MatcherTuning(bulk_rows=1)
"""Every table, however small, goes in by whole columns."""

# A twin written apart: what a row of these columns means ------------------------------------------


def build_meaning(row):
    tests, ends = [], {}
    for name, value in row.items():
        attribute, _, ending = name.rpartition("_")
        if ending in ("from", "to", "above", "below"):
            if attribute not in ends:
                ends[attribute] = {}
                tests.append((attribute, ends[attribute]))
            side = "low" if ending in ("from", "above") else "high"
            if value is not None:
                assert side not in ends[attribute]
                ends[attribute] |= {side: value, f"{side}_open": ending in ("above", "below")}
        elif ending == "within" and value is not None:
            tests.append((attribute, Within(build_area(SQUARES[value]))))
        elif value is not None and name != "id":
            tests.append((name, one_of(value) if isinstance(value, list) else Is(value)))
    return all_of(
        Test(name, Range(**condition) if isinstance(condition, dict) else condition)
        for name, condition in tests
        if condition != {}
    )


def judge_rows(rows):
    """Return the filter of each row, or nothing where it is refused."""
    filters = []
    for row in rows:
        try:
            filters.append(build_meaning(row) if row["id"] is not None else None)
        except (ValueError, AssertionError, KeyError, TidingsError):
            filters.append(None)
    return filters


def load_both_ways(table, **around):
    """Load a table at once, and its rows one by one into the law; both must say the same."""
    at_once, law = td.Matcher(**around, tuning=AT_ONCE), td.Matcher("brute", **around)
    errors = at_once.add_many(table, on_error="collect")
    rows = table.to_pylist()
    filters = judge_rows(rows)
    law_errors = law.add_many(
        [(row["id"], tree) for row, tree in zip(rows, filters, strict=True) if tree is not None], on_error="collect"
    )
    refused = [row["id"] for row, tree in zip(rows, filters, strict=True) if tree is None]
    assert sorted(map(repr, (id for id, _ in errors))) == sorted(map(repr, refused + [id for id, _ in law_errors]))
    assert sorted(map(repr, at_once)) == sorted(map(repr, law))
    for id in law:
        assert repr(at_once[id]) == repr(law[id])
    assert at_once.needs() == law.needs()
    assert _counts(at_once) == _counts(law)
    return at_once, law


def _counts(matcher):
    return sorted((row[:4] for row in matcher.admission.needs.to_dict()["demands"]), key=repr)


def agree(at_once, law, events):
    matches, wanted = at_once.match_many(events), law.match_many(events)
    assert [sorted(map(repr, match)) for match in matches.by_event()] == [
        sorted(map(repr, match)) for match in wanted.by_event()
    ]


# Any table ---------------------------------------------------------------------------------------

whole = st.integers(-3, 3) | st.sampled_from([2**40, 2**53 + 1, -(2**63)])
real = st.sampled_from([0.0, -0.0, 0.5, 1.0, 1.5, -2.25, 1e300, float("nan"), float("inf")])
word = st.sampled_from(["", "a", "b", "ß", "it's", "\U0001f600"])
time = st.sampled_from(
    [datetime(2020, 1, 1, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, 1, tzinfo=UTC)]
)
COLUMNS = {
    "n": (whole, pa.int64()),
    "n_from": (whole, pa.int64()),
    "n_to": (whole, pa.int64()),
    "f": (real, pa.float64()),
    "f_above": (real, pa.float64()),
    "f_from": (whole, pa.int64()),
    "f_below": (real, pa.float64()),
    "small_to": (st.integers(0, 9), pa.uint8()),
    "w": (word, pa.string()),
    "w_from": (word, pa.string()),
    "ws": (st.lists(word | st.none(), max_size=3), pa.list_(pa.string())),
    "ns": (st.lists(whole, max_size=3), pa.list_(pa.int64())),
    "fs": (st.lists(real, max_size=3), pa.large_list(pa.float64())),
    "b": (st.booleans(), pa.bool_()),
    "b_to": (st.booleans(), pa.bool_()),
    "t_from": (time, pa.timestamp("us", "UTC")),
    "t_below": (time, pa.timestamp("us", "UTC")),
    "d_to": (st.dates(), pa.date32()),
    "s_from": (
        st.datetimes(timezones=st.just(UTC)).map(lambda moment: moment.replace(microsecond=0)),
        pa.timestamp("s", "UTC"),
    ),
    "spot_within": (st.sampled_from([*SQUARES, "POLYGON((", "POLYGON((0 0, 1 1, 1 0, 0 1, 0 0))"]), pa.string()),
    "nothing": (st.none(), pa.null()),
}


@st.composite
def tables(draw):
    names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), unique=True, min_size=1, max_size=6))
    count = draw(st.integers(1, 12))
    ids = st.lists(st.integers(0, 30) | st.none(), min_size=count, max_size=count)
    columns = {"id": pa.array(draw(ids), pa.int64())}
    for name in names:
        cell, kind = COLUMNS[name]
        columns[name] = pa.array(draw(st.lists(cell | st.none(), min_size=count, max_size=count)), kind)
    table = pa.table(columns)
    return pa.concat_tables([table.slice(0, 2), table.slice(2)]) if draw(st.booleans()) else table


EVENTS = [
    {
        "n": 1,
        "f": 0.5,
        "small": 3,
        "w": "a",
        "ws": ["a", "b"],
        "ns": 2,
        "fs": 1.5,
        "b": True,
        "spot": {"lon": 1, "lat": 1},
    },
    {"n": [-3, 3], "f": [1.0, 2], "w": "ß", "ws": "", "b": False, "t": datetime(2020, 1, 1, 0, 30, tzinfo=UTC)},
    {"n": 2**53 + 1, "f": 0, "t": datetime(2020, 1, 1, tzinfo=UTC), "spot": {"lon": 180, "lat": 3}},
    {},
]


@given(tables())
@examples(150)
def test_columns_mean_what_their_rows_mean(table):
    agree(*load_both_ways(table), EVENTS)


@given(tables(), tables())
@examples(60)
def test_a_second_table_replaces_what_has_the_same_id(first, second):
    at_once, law = load_both_ways(first)
    errors = at_once.add_many(second, on_error="collect")
    rows = second.to_pylist()
    filters = judge_rows(rows)
    more = [(row["id"], made) for row, made in zip(rows, filters, strict=True) if made is not None]
    assert len(errors) == len(rows) - len(more) + len(law.add_many(more, on_error="collect"))
    assert _counts(at_once) == _counts(law)
    agree(at_once, law, EVENTS)
    at_once.remove_many(list(at_once))
    assert not at_once.needs()


@given(tables())
@examples(30)
def test_a_table_with_a_bad_row_changes_nothing(table):
    bad = sum(tree is None for tree in judge_rows(table.to_pylist()))
    errors = td.Matcher(tuning=AT_ONCE).add_many(table, on_error="collect")
    assert len(errors) >= bad
    if errors:
        matcher = td.Matcher(tuning=AT_ONCE)
        with pytest.raises(BadSubscriptions, match=f"of {table.num_rows} subscriptions") as refused:
            matcher.add_many(table)
        assert [id for id, _ in refused.value.errors] == [id for id, _ in errors]
        assert not len(matcher)
        assert not matcher.needs()


@pytest.mark.parametrize("key", ["ranges", "ranges-float", "equalities", "hem", "classifieds", "geo"])
def test_workloads_in_columns_are_those_in_text(key):
    made = workload(key)
    at_once, texts = made.matcher(), made.matcher()
    at_once.add_many(made.columns(600, 3))
    texts.add_many(made.texts(600, 3))
    events = made.events(40, 3)
    assert [sorted(ids) for ids in at_once.match_many(events).by_event()] == [
        sorted(ids) for ids in texts.match_many(events).by_event()
    ]
    assert all(at_once[id] == texts[id] for id in texts)
    assert _counts(at_once) == _counts(texts)


# Names and kinds ---------------------------------------------------------------------------------


def test_a_declared_name_is_an_attribute_whatever_its_ending():
    schema = td.Schema({"valid_from": "number", "price": "number"})
    matcher = td.Matcher(schema=schema, tuning=AT_ONCE)
    matcher.add_many(pa.table({"id": [1], "valid_from": [5], "price_to": [9]}))
    assert matcher[1] == td.parse("valid_from = 5 and price <= 9")


def test_different_attributes_come_in_the_order_of_the_columns():
    matcher = td.Matcher(tuning=AT_ONCE)
    matcher.add_many(pa.table({"b_to": [3], "id": ["x"], "a": ["v"], "b_from": [1]}))
    assert matcher["x"] == td.parse("b in [1 .. 3] and a = 'v'")


def test_a_row_of_nulls_accepts_everything():
    matcher = td.Matcher(tuning=AT_ONCE)
    matcher.add_many(pa.table({"id": [1, 2], "a": pa.array([None, 3])}))
    assert matcher.match({}) == [1]


def test_dates_are_their_midnight_and_nanoseconds_are_cut():
    matcher = td.Matcher(tuning=AT_ONCE)
    ns = pa.array([1_577_836_800_000_000_001], pa.timestamp("ns"))
    matcher.add_many(pa.table({"id": [1], "d_from": pa.array([date(2020, 1, 1)]), "t": ns}))
    assert matcher[1] == td.parse("d >= 2020-01-01 and t = 2020-01-01T00:00:00Z")


def test_text_takes_the_declared_kind():
    schema = td.Schema({"t": "time", "ip": "ip", "n": "number", "b": "bool"})
    matcher = td.Matcher(schema=schema, tuning=AT_ONCE)
    table = pa.table(
        {"id": [1, 2], "t_from": ["2020-01-01", None], "ip": [None, "10.0.0.0/8"], "n": ["5", "x"], "b": ["true", None]}
    )
    errors = matcher.add_many(table, on_error="collect")
    assert [(id, str(why)) for id, why in errors] == [(2, "`n`: `x` is not number")]
    assert matcher[1] == td.parse("t >= 2020-01-01 and n = 5 and b = true", schema=schema)


def test_synonyms_concepts_and_units_mean_what_they_do_in_filters():
    ontology = td.Ontology.from_dict(
        {
            "trees": {"product": {"children": {"car": {"van": {}, "coupe": {}}}}},
            "attributes": {"kind": {"kind": "concept product", "synonyms": ["sort"]}, "width": {"unit": "m"}},
        }
    )
    table = pa.table({"id": [1, 2, 3], "sort": ["car", "van", "tram"], "width_to": [1, None, 2], "n": [1, 2, 3]})
    matcher = td.Matcher(ontology=ontology, tuning=AT_ONCE)
    errors = matcher.add_many(table, on_error="collect")
    one_by_one = td.Matcher("brute", ontology=ontology)
    refused = one_by_one.add_many(
        {1: "sort = 'car' and width <= 1 and n = 1", 2: "sort = 'van' and n = 2", 3: "sort = 'tram' and n = 3"},
        on_error="collect",
    )
    assert [(id, str(why)) for id, why in errors] == [(id, str(why).split("\n")[0]) for id, why in refused]
    assert all(matcher[id] == one_by_one[id] for id in one_by_one)
    agree(matcher, one_by_one, [{"kind": "car", "width": "1 m", "n": 1}, {"sort": "van", "n": 2}])


def test_columns_of_different_kinds_live_side_by_side():
    matcher = td.Matcher(tuning=AT_ONCE)
    table = pa.table({"id": [1, 2, 3], "a": pa.array([None, "x", None]), "a_from": pa.array([1, None, 2])})
    assert matcher.add_many(table, on_error="collect") == []
    assert (matcher.match({"a": "x"}), sorted(matcher.match({"a": 2}))) == ([2], [1, 3])


def test_a_column_of_another_kind_than_the_schema_has_is_refused():
    matcher = td.Matcher(schema=td.Schema({"a": "number"}), tuning=AT_ONCE)
    table = pa.table({"id": [1, 2, 3], "a": pa.array([None, "x", None]), "a_from": pa.array([1, None, 2])})
    errors = matcher.add_many(table, on_error="collect")
    assert [id for id, _ in errors] == [2]
    assert sorted(matcher) == [1, 3]


def test_ids_of_another_kind_are_refused_one_by_one():
    matcher = td.Matcher(tuning=AT_ONCE)
    matcher.add("x", "a = 1")
    with pytest.raises(BadSubscriptions, match="all text or all integers"):
        matcher.add_many(pa.table({"id": [1, 2], "a": [1, 2]}))


def test_reasons_name_the_attribute_and_the_id():
    matcher = td.Matcher(tuning=AT_ONCE)
    table = pa.table({
        "id": ["nan", "swapped", "empty", "area", None],
        "f": [float("nan"), None, None, None, 1.0],
        "p_from": [None, 5, None, None, None],
        "p_to": [None, 3, None, None, None],
        "s": pa.array([None, None, [], None, None], pa.list_(pa.string())),
        "spot_within": pa.array([None, None, None, "POLYGON((1 1))", None]),
    })  # fmt: skip
    errors = {id: str(why) for id, why in matcher.add_many(table, on_error="collect")}
    assert list(errors) == ["nan", "swapped", "empty", "area", None]
    assert "`f`: nan is not a finite number" in errors["nan"]
    assert "`p`: the low end" in errors["swapped"]
    assert "`s`: the set has no values" in errors["empty"]
    assert errors["area"].startswith("`spot`: ")
    assert "an id is text or an integer" in errors[None]


def test_columns_that_no_filter_can_name_are_refused():
    with pytest.raises(TidingsError, match="the column `place` is Arrow's `struct"):
        td.Matcher(tuning=AT_ONCE).add_many(pa.table({"id": [1], "place": [{"lon": 1.0}]}))
    with pytest.raises(TidingsError, match="has the column `a` twice"):
        td.Matcher(tuning=AT_ONCE).add_many(pa.Table.from_arrays([pa.array([1])] * 3, names=["id", "a", "a"]))


def test_a_batch_is_taken_as_a_table_is():
    matcher = td.Matcher(tuning=AT_ONCE)
    matcher.add_many(pa.record_batch({"id": ["x"], "a": [1]}))
    assert [need.kind for need in matcher.needs()["a"]] == [Kind.NUMBER]
