"""Pages of lists and of matches are ranges of an index, in its order: no plan reads a table, or sorts."""

import itertools

import pytest
from tests.unit.service.store.writing import NOW, create

from tidings.service.store.base import SubscriptionQuery
from tidings.service.store.opening import open_store
from tidings.service.store.sql import change_log, matches, records, subscriptions
from tidings.service.store.sql.subscriptions import PageShape

SHAPES = [
    PageShape(has_owner=owner, has_label=label, has_status=status, has_after=after, text=None)
    for owner, label, status, after in itertools.product([False, True], repeat=4)
]


def explain(store, statement, **values):
    database = store._database  # noqa: SLF001 - the plans are what is tested
    prepared = database.statements.get(statement)
    with database.read() as transaction:
        values = [values.get(name) for name in prepared.names]
        return [row[3] for row in transaction.connection.execute(f"EXPLAIN QUERY PLAN {prepared.sql}", values)]


@pytest.fixture
def file_store(sqlite_url):
    store = open_store(sqlite_url)
    yield store
    store.close()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_page_is_a_range_of_an_index(file_store, shape):
    steps = explain(file_store, shape.build(file_store._database.backend))  # noqa: SLF001
    assert not [step for step in steps if "TEMP B-TREE" in step]
    begin = not any((shape.has_owner, shape.has_label, shape.has_status, shape.has_after))  # a page of everything
    assert not [step for step in steps if step.startswith("SCAN") and not (begin and "subscriptions_by_id" in step)]
    wanted = {
        "subscription_labels": shape.has_label,
        "subscriptions_by_status": shape.has_status and not shape.has_label,
    }
    for name, is_wanted in wanted.items():
        assert (name in steps[0]) == is_wanted


@pytest.mark.parametrize(
    "statement",
    [
        subscriptions.GET,
        subscriptions.COUNT_OWNER,
        subscriptions.DUE,
        change_log.HAS_MARK,
        change_log.RUNNING_OF_IMPORT,
        matches.LATEST,
        matches.SINCE,
        matches.SINCE_OF_OWNER,
        records.LIST_OWNER,
    ],
    ids=lambda statement: " ".join(str(statement).split())[:40],
)
def test_what_is_asked_often_is_found_by_an_index(file_store, statement):
    steps = explain(file_store, statement)
    assert steps
    chosen = "SCAN chosen" in steps  # as many as a page has, which are looked up, and put in order again
    assert not [step for step in steps if step.startswith("SCAN") and step != "SCAN chosen"]
    assert chosen or not [step for step in steps if "TEMP B-TREE FOR ORDER" in step]


def test_a_page_deep_in_a_list_begins_where_it_is_told(file_store):
    file_store.subscriptions.write([create(f"{count:03}") for count in range(100)])
    for owner, after, first in (
        ("ann", ("ann", "049"), "050"),
        (None, ("ann", "098"), "099"),
        ("ann", ("abe", "x"), "000"),
    ):
        rows = file_store.subscriptions.list(SubscriptionQuery(owner=owner, after=after, limit=1))
        assert [row.id for row in rows] == [first]
    assert not file_store.subscriptions.list(SubscriptionQuery(owner="ann", after=("bob", "")))
    assert file_store.subscriptions.expire(NOW) == 0
