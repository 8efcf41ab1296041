"""Matches of a database: in order for whoever reads on, bounded, and each event's look kept once."""

import threading

from tests.unit.service.store.writing import NOW, SECOND, create, draft, match, remove

from tidings.service.store.opening import open_store


def count_contents(store):
    with store._database.read() as transaction:  # noqa: SLF001 - what is kept, not what is shown
        connection = transaction.connection
        matches = connection.execute("SELECT count(*) FROM matches").fetchone()[0]
        return matches, connection.execute("SELECT count(*), coalesce(sum(uses), 0) FROM match_contents").fetchone()


def test_a_look_at_an_event_is_kept_once_for_all_its_rows(store):
    store.subscriptions.write([create(id) for id in "abcd"])
    shared = {"price": 3}
    rows = [match(id, "e1", **shared) for id in "abcd"] + [match(id, "e2", price=4) for id in "ab"]
    assert store.matches.write("q", 1, rows, at=NOW, keep=10) == 6
    assert count_contents(store) == (6, (2, 6))


def test_the_same_event_with_other_values_is_another_look(store):
    store.subscriptions.write([create("a")])
    store.matches.write("q", 1, [match("a", "e", price=1), match("a", "e", price=2)], at=NOW, keep=10)
    assert [row.values for row in store.matches.list_since("ann", 0)] == [{"price": 1}, {"price": 2}]


def test_what_no_row_uses_any_more_goes(store):
    store.subscriptions.write([create("a"), create("b")])
    store.matches.write("q", 1, [match("a", "e1"), match("b", "e1")], at=NOW, keep=2)
    store.matches.write("q", 2, [match("a", f"e{count}") for count in range(2, 9)], at=NOW, keep=2)
    assert count_contents(store) == (3, (3, 3))  # e1 of b, and two of a
    store.subscriptions.write([remove("b")])
    assert [row.event for row in store.matches.list_since(None, 0)] == ["e7", "e8"]
    assert store.matches.trim(NOW) == 0
    assert count_contents(store) == (2, (2, 2))
    assert store.matches.trim(NOW + SECOND) == 2
    assert count_contents(store) == (0, (0, 0))


def test_a_subscription_that_matches_everything_costs_as_many_rows_as_are_kept(store):
    store.subscriptions.write([create("all"), create("few")])
    rows = [match("all", f"e{count}") for count in range(5_000)] + [match("few", "e1")]
    assert store.matches.write("q", 1, rows, at=NOW, keep=10) == 11
    assert [row.event for row in store.matches.list_latest("ann", "all", limit=2)] == ["e4999", "e4998"]
    assert store.matches.read_head() == 11


def test_a_new_subscription_has_no_matches_of_one_that_had_its_id(store):
    store.subscriptions.write([create("a")])
    store.matches.write("q", 1, [match("a")], at=NOW, keep=10)
    store.subscriptions.write([remove("a"), create("a")])
    assert list(store.matches.list_latest("ann", "a")) == []
    store.matches.write("q", 2, [match("a", "new")], at=NOW, keep=10)
    store.matches.trim(NOW)
    assert [row.event for row in store.matches.list_latest("ann", "a")] == ["new"]


def test_numbers_are_never_given_twice(store):
    store.subscriptions.write([create("a")])
    store.matches.write("q", 1, [match("a", f"e{count}") for count in range(3)], at=NOW, keep=10)
    assert store.matches.trim(NOW + SECOND) == 3
    assert store.matches.read_head() == 3
    store.matches.write("q", 1, [match("a", "after the batch was forgotten")], at=NOW + 2 * SECOND, keep=10)
    assert [row.number for row in store.matches.list_since(None, 0)] == [4]


def test_a_batch_is_known_by_its_checkpoint_alone(store):
    """Without the checkpoint that had it, a batch is another one: operations.md says what that means."""
    store.subscriptions.write([create("a")])
    rows = [match("a", "e1")]
    written = [
        store.matches.write(query, 0, rows, at=NOW, keep=10) for query in ("old: query", "old: query", "new: query")
    ]
    assert written == [1, 0, 1]


def test_erasing_an_owner_leaves_nothing_of_theirs(store):
    store.subscriptions.write([create("a"), create("b"), create("a", owner="bob")])
    store.matches.write("q", 1, [match("a"), match("b"), match("a", owner="bob")], at=NOW, keep=10)
    store.subscriptions.write([remove("b")])  # its matches wait for the next trim
    assert store.owners.erase("ann", actor="admin", at=NOW)["matches"] == 1
    assert [row.owner for row in store.matches.list_since(None, 0)] == ["bob"]
    assert count_contents(store) == (1, (1, 1))


def test_whoever_reads_on_misses_nothing_while_two_queries_write(store_url):
    """No number becomes visible after a larger one has been."""
    store, other = open_store(store_url), open_store(store_url)
    store.subscriptions.write_many("ann", [draft(f"{count}") for count in range(20)], actor="t", at=NOW)

    def write(to, query):
        for batch in range(25):
            to.matches.write(query, batch, [match(f"{batch % 20}", f"{query}{batch}")] * 3, at=NOW, keep=1_000)

    threads = [threading.Thread(target=write, args=pair) for pair in ((store, "match"), (other, "detect"))]
    for thread in threads:
        thread.start()
    numbers, last = [], False
    while not last:
        last = not any(thread.is_alive() for thread in threads)
        numbers += [row.number for row in other.matches.list_since(None, numbers[-1] if numbers else 0, limit=7)]
        last = last and numbers[-1:] == [store.matches.read_head()]
    assert numbers == list(range(1, 151))
    store.close()
    other.close()


def test_pages_of_matches_meet_without_overlap(store):
    store.subscriptions.write([create("a")])
    store.matches.write("q", 1, [match("a", f"e{count}") for count in range(5)], at=NOW, keep=10)
    pages, before = [], None
    while page := store.matches.list_latest("ann", "a", before=before, limit=2):
        pages.append([row.event for row in page])
        before = page[-1].number
    assert pages == [["e4", "e3"], ["e2", "e1"], ["e0"]]


def test_a_look_that_is_too_deep_to_be_written_is_left_out_and_the_batch_is_not(store):
    deep = {}
    for _ in range(2_000):
        deep = {"a": deep}
    store.subscriptions.write([create("a")])
    assert store.matches.write("q", 1, [match("a", "e1", deep=deep), match("a", "e2", price=1)], at=NOW, keep=10) == 2
    rows = store.matches.list_latest("ann", "a")
    assert [(row.event, row.values) for row in rows] == [("e2", {"price": 1}), ("e1", {})]
