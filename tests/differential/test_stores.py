"""Stores in SQLite and PostgreSQL against the one in memory: the same answers to the same calls, in whatever order.

After every step all stores hold the same, and readers who follow the log of each, one eagerly, one now and then, have
what the store has: through compaction, through another opening, and however far they fell behind.
"""

import shutil
from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from tests.differential import store_worlds as worlds
from tests.examples import examples
from tests.service.emptying import empty_store, make_store

from tidings.service.store.base import AuditRecord, KeyRecord, StatusReport, StoreError, SubscriptionQuery
from tidings.service.store.memory import MemoryStore
from tidings.service.store.opening import open_store

EVERYTHING = SubscriptionQuery(owner=None, limit=1_000)


class LogReader:
    """Folds what a store's log says into a dictionary."""

    def __init__(self, kinds=None):
        self.kinds, self.position, self.running = kinds, None, {}

    def catch_up(self, store):
        with store.log.read(self.position, kinds=self.kinds) as changes:
            rows = [(row.engine_id, row) for row in changes.running]
            assert len(rows) == len(dict(rows)), "an id came twice"
            if changes.reload:
                self.running = {}
            for engine_id in changes.removed:
                self.running.pop(engine_id, None)
            assert not dict(rows).keys() & set(changes.removed)
            self.running.update(rows)
            self.position = changes.position


def try_call(call):
    """Return what a call gives, or what it refuses, in a form that stores can be compared by."""
    try:
        return call()
    except StoreError as error:
        return describe_error(error)


def describe_error(error):
    return type(error).__name__, str(error), getattr(error, "current", None), getattr(error, "limit", None)


def describe_result(result):
    return describe_error(result) if isinstance(result, StoreError) else result


class StoreMachine(RuleBasedStateMachine):
    """Does the same to two stores."""

    def __init__(self, place):
        super().__init__()
        self.place, self.now, self.numbers = place, worlds.BEGIN, 0
        self.url = place.begin()
        self.oracle, self.store = MemoryStore(), open_store(self.url)
        self.eager = [LogReader(), LogReader()]
        self.lazy = [LogReader(["filter", "forecast"]), LogReader(["filter", "forecast"])]

    @property
    def stores(self):
        return (self.oracle, self.store)

    def teardown(self):
        self.store.close()
        self.place.end(self.url)

    def compare(self, call):
        """Make a call to both stores, whose answers must be equal; return one."""
        expected, actual = (try_call(lambda store=store: call(store)) for store in self.stores)
        assert actual == expected
        return expected

    @property
    def keys(self):
        return [(row.owner, row.id) for row in self.oracle.subscriptions.list(EVERYTHING)]

    # Subscriptions

    @initialize(data=st.data())
    def begin(self, data):
        for owner in ("ann", "Bob"):
            rows = data.draw(st.lists(worlds.drafts(self.now), max_size=4))
            call = {"owner": owner, "drafts": rows, "actor": "importer", "at": self.now}
            self.compare(lambda store, call=call: store.subscriptions.write_many(**call))

    def write(self, data, count):
        group = [data.draw(worlds.writes(self.now, self.keys)) for _ in range(count)]
        self.compare(lambda store: [describe_result(each) for each in store.subscriptions.write(group)])

    # Three rules of one kind: what there is most of in life, and in all other rules' pasts.
    write_one = rule(data=st.data(), count=st.just(1))(write)
    write_some = rule(data=st.data(), count=st.integers(2, 4))(write)
    write_many_in_a_group = rule(data=st.data(), count=st.integers(4, 8))(write)

    @rule(data=st.data(), owner=worlds.OWNERS, most=st.none() | st.integers(1, 8), fill=st.booleans())
    def write_many(self, data, owner, most, fill):
        rows = data.draw(st.lists(worlds.drafts(self.now) | st.none(), max_size=6))
        call = {"actor": "importer", "at": self.now, "most": most, "fill": fill}
        self.compare(lambda store: store.subscriptions.write_many(owner, iter(rows), **call))

    @rule(seconds=st.integers(0, 10))
    def expire(self, seconds):
        self.now += timedelta(seconds=seconds)
        self.compare(lambda store: store.subscriptions.expire(self.now))

    @rule(seconds=st.integers(0, 10))
    def forget_answers(self, seconds):
        self.compare(lambda store: store.idempotency.forget(self.now - timedelta(seconds=seconds)))

    # The log

    @rule()
    def follow_lazily(self):
        for reader, store in zip(self.lazy, self.stores, strict=True):
            reader.catch_up(store)
        assert self.lazy[0].running == self.lazy[1].running
        kinds = {row.kind for row in self.lazy[0].running.values()}
        assert kinds <= {"filter", "forecast"}

    @rule(seconds=st.integers(-1, 10))
    def compact(self, seconds):
        for store in self.stores:
            store.log.compact(self.now - timedelta(seconds=seconds))

    @rule()
    def open_again(self):
        self.store.close()
        self.store = open_store(self.url)

    # Keys and owners

    @rule(
        id=st.sampled_from(["k1", "k2"]),
        owner=worlds.OWNERS,
        digest=st.sampled_from(["d1", "d2"]),
        note=st.just("ü") | worlds.BROKEN,
    )
    def add_key(self, id, owner, digest, note):
        fields = {"scopes": frozenset({"read", "admin"}), "created_at": self.now, "note": note}
        record = KeyRecord(id=id, owner=owner, digest=digest, **fields)
        self.compare(lambda store: store.keys.add(record, actor="admin"))
        self.compare(lambda store: store.keys.find(digest))

    @rule(id=st.sampled_from(["k1", "k2", "\0"]))
    def revoke_key(self, id):
        self.compare(lambda store: store.keys.revoke(id, actor="admin", at=self.now))

    @rule(rules=worlds.RULES)
    def set_rules(self, rules):
        self.compare(lambda store: store.owners.set(rules, actor="admin", at=self.now))
        for owner in ("ann", "Bob"):
            self.compare(lambda store, owner=owner: store.owners.get(owner))

    @rule(owner=worlds.OWNERS)
    def erase(self, owner):
        self.compare(lambda store: dict(store.owners.erase(owner, actor="admin", at=self.now)))

    # Matches

    @rule(data=st.data(), batch=st.integers(0, 20), keep=st.integers(1, 4), query=st.sampled_from(["q", "r"]))
    def write_matches(self, data, batch, keep, query):
        self.now += timedelta(microseconds=1)
        rows = data.draw(st.lists(worlds.matches(self.keys), max_size=12))
        self.compare(lambda store: store.matches.write(query, batch, iter(rows), at=self.now, keep=keep))

    @rule(seconds=st.integers(-1, 10))
    def trim(self, seconds):
        self.compare(lambda store: store.matches.trim(self.now - timedelta(seconds=seconds)))
        with self.store._database.read() as transaction:  # noqa: SLF001 - what no call shows
            (count,) = transaction.connection.execute("SELECT count(*) FROM matches").fetchone()
        assert count == len(self.oracle.matches.list_since(None, 0, limit=1_000))

    # Records

    @rule(action=st.sampled_from(["look", "größer", "\0", "\ud800"]))
    def append_audit(self, action):
        record = AuditRecord(at=self.now, actor="admin", owner="ann", action=action, id="x")
        self.compare(lambda store: store.audit.append(record))

    @rule(seconds=st.integers(-1, 10))
    def trim_audit(self, seconds):
        self.compare(lambda store: store.audit.trim(self.now - timedelta(seconds=seconds)))

    @rule(name=st.sampled_from(["pipeline", "api"]), facts=st.sampled_from([{}, {"batch": 3, "lag": [1.5, None]}]))
    def report(self, name, facts):
        self.compare(lambda store: store.statuses.write(StatusReport(name, self.now, facts)))
        self.compare(lambda store: list(store.statuses.list()))

    # Looking

    @rule(data=st.data(), owner=worlds.OWNERS, other=st.none() | worlds.OWNERS | worlds.BROKEN, query=worlds.QUERIES)
    def look(self, data, owner, other, query):
        """Whatever can be read: what is asked for is drawn once for all."""
        key = data.draw(st.sampled_from([*self.keys, (owner, "a"), ("nul \0", "half \ud800")]))
        number, limit = data.draw(st.integers(-1, 30) | st.just(2**70)), query.limit
        self.compare(lambda store: store.subscriptions.get(*key))
        self.compare(lambda store: dict(store.subscriptions.get_many(owner, [key[1], "a", "b", "a"])))
        self.compare(lambda store: list(store.subscriptions.list(query)))
        self.compare(lambda store: dict(store.subscriptions.count(owner)))
        self.compare(lambda store: list(store.keys.list(owner)))
        self.compare(lambda store: list(store.matches.list_latest(*key, before=number, limit=limit)))
        self.compare(lambda store: list(store.matches.list_since(other, number, limit=limit)))
        self.compare(lambda store: list(store.audit.list(owner=owner, after=number, limit=limit)))

    # What holds after every step

    @invariant()
    def all_is_the_same(self):
        self.compare(lambda store: list(store.subscriptions.list(EVERYTHING)))
        self.compare(lambda store: dict(store.subscriptions.count()))
        self.compare(lambda store: list(store.matches.list_since(None, 0, limit=1_000)))
        self.compare(lambda store: store.matches.read_head())
        self.compare(lambda store: list(store.audit.list(limit=1_000)))

    @invariant()
    def nothing_is_left_behind(self):
        with self.store._database.read() as transaction:  # noqa: SLF001 - what no call shows
            connection = transaction.connection
            labels = connection.execute("SELECT owner, id, label FROM subscription_labels").fetchall()
            uses = connection.execute("SELECT number, uses FROM match_contents").fetchall()
            matches = connection.execute("SELECT content, count(*) FROM matches GROUP BY content").fetchall()
        assert sorted(uses) == sorted(matches)
        rows = self.oracle.subscriptions.list(EVERYTHING)
        assert set(labels) == {(row.owner, row.id, label) for row in rows for label in row.labels}

    @invariant()
    def who_follows_has_what_the_store_has(self):
        fresh = LogReader()
        fresh.catch_up(self.store)
        for reader, store in zip(self.eager, self.stores, strict=True):
            reader.catch_up(store)
            assert reader.running == fresh.running
            assert reader.position == store.log.read_head()


class SqlitePlace:
    """Files of SQLite, copies of one whose tables are made."""

    def __init__(self, folder):
        self.folder = folder
        open_store(f"sqlite:///{folder}/template.db").close()

    def begin(self):
        shutil.copy(self.folder / "template.db", self.folder / "store.db")
        return f"sqlite:///{self.folder}/store.db"

    def end(self, _):
        for path in self.folder.glob("store.db*"):
            if path.is_file():
                path.unlink()


class PostgresPlace:
    """One database of PostgreSQL, emptied each time."""

    def __init__(self, server):
        self.server, self.url = server, make_store(server)

    def begin(self):
        empty_store(self.server, self.url)
        return self.url

    def end(self, _):
        """Leave it to whoever begins next."""


def test_sqlite_does_what_memory_does(tmp_path):
    place = SqlitePlace(tmp_path)
    run_state_machine_as_test(lambda: StoreMachine(place), settings=examples(120, stateful_step_count=30))


def test_postgres_does_what_memory_does(postgres):
    place = PostgresPlace(postgres)
    run_state_machine_as_test(lambda: StoreMachine(place), settings=examples(80, stateful_step_count=30))
