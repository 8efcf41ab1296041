"""A store's filters as a feed: whatever is done to the store, the folder has what a matcher of the store's has."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

import tidings as td
from tidings.service.store.base import OwnerRules, Position, StoreError, Write
from tidings.service.store.memory import MemoryStore
from tidings.service.store_feed import FeedTuning, StoreFeed
from tidings.service.subscription import SubscriptionDraft

NOW = datetime(2026, 7, 1, tzinfo=UTC)
EVENTS = [{"price": price, "make": make} for price in (1, 5, 9) for make in ("ford", "fiat")]
FILTERS = {
    "text": ["price < 5", "make = 'ford'", "price > 100 or make = 'fiat'", "price <<"],
    "json": ['{"attr": "make", "op": "=", "value": "fiat"}'],
    "url": ["price_from=5"],
}


def put(store, id, text, *, owner="ann", kind="filter", notation="text"):
    """Put a subscription as the API would; one that cannot be read comes by another way, an older release say."""
    draft = SubscriptionDraft(id=id, kind=kind, text=text, notation=notation)
    (written,) = store.subscriptions.write([Write(action="put", owner=owner, id=id, actor="test", at=NOW, draft=draft)])
    return written


def remove(store, id, owner="ann"):
    store.subscriptions.write([Write(action="remove", owner=owner, id=id, actor="test", at=NOW)])


def set_bounds(store, **only):
    rules = [OwnerRules(owner=owner, only=filter) for owner, filter in only.items()]
    store.owners.set(rules, actor="test", at=NOW)


def match_slowly(store):
    """What the store's filters match, one by one; those that cannot be read match nothing."""
    matches = set()
    with store.log.read(None, kinds={"filter"}) as read:
        for row in read.running:
            matcher = td.Matcher()
            try:
                matcher.add("text", row.text, notation=row.notation)
                matcher.add("only", row.only or "true")
            except td.TidingsError:
                continue
            matches |= {
                (row.engine_id, number) for number, event in enumerate(EVENTS) if len(matcher.match(event)) == 2
            }
    return matches


def match_all(live):
    matcher = live.open()
    return {(id, number) for number, event in enumerate(EVENTS) for id in matcher.match(event)}


CHANGES = st.one_of(
    st.tuples(
        st.just("put"),
        st.sampled_from("abcde"),
        st.sampled_from(["ann", "bob"]),
        st.sampled_from([(notation, text) for notation, texts in FILTERS.items() for text in texts]),
        st.sampled_from(["filter", "filter", "pattern"]),
    ),
    st.tuples(st.just("remove"), st.sampled_from("abcde"), st.sampled_from(["ann", "bob"])),
    st.tuples(st.just("bound"), st.sampled_from([None, "price < 9", "make = 'ford'", "price <<"])),
    st.tuples(st.just("sync")),
    st.tuples(st.just("compact")),
)


@given(
    changes=st.lists(CHANGES, max_size=20),
    tuning=st.builds(FeedTuning, steps=st.sampled_from([1, 3, 1000]), portion=st.sampled_from([2, 1000])),
    shards=st.sampled_from([1, 3]),
)
@examples(60)
def test_a_folder_that_follows_has_what_the_store_has(tmp_path_factory, changes, tuning, shards):
    store = MemoryStore()
    live = td.Live(tmp_path_factory.mktemp("live"), shards=shards, follow=StoreFeed(store, tuning=tuning))
    for change in [*changes, ("sync",)]:
        match change:
            case "put", id, owner, (notation, text), kind:
                put(store, id, text, owner=owner, kind=kind, notation=notation)
            case "remove", id, owner:
                remove(store, id, owner)
            case "bound", only:
                set_bounds(store, ann=only)
            case ("compact",):
                store.log.compact(NOW + timedelta(days=1))
            case ("sync",):
                live.sync()
                assert match_all(live) == match_slowly(store)


def test_a_subscription_that_cannot_be_read_is_told_and_the_others_count(tmp_path):
    store = MemoryStore()
    put(store, "good", "price < 5")
    put(store, "bad", "price <<")
    live = td.Live(tmp_path, follow=StoreFeed(store))
    assert [id for id, _ in live.sync().refused] == ["ann/bad"]
    put(store, "good", "price << 5")
    assert [id for id, _ in live.sync().refused] == ["ann/good"]
    assert list(live) == [], "what the store has not any more is not in force"


def test_nothing_gets_out_of_a_bound(tmp_path):
    store = MemoryStore()
    set_bounds(store, ann="make = 'ford'")
    put(store, "a", "price = 1) or (price = 5")
    put(store, "b", "price = 1 or price = 5")
    live = td.Live(tmp_path, follow=StoreFeed(store))
    live.sync()
    assert list(live) == ["ann/b"]
    assert {EVENTS[number]["make"] for _, number in match_all(live)} == {"ford"}


def test_a_position_that_the_log_does_not_know_loads_everything_anew(tmp_path):
    before, after = MemoryStore(), MemoryStore()
    for store in (before, after):
        put(store, "both", "price < 5")
    put(before, "lost", "price < 5")
    put(after, "new", "price < 5")
    live = td.Live(tmp_path, follow=StoreFeed(before))
    live.sync()
    assert sorted(live) == ["ann/both", "ann/lost"]
    live.follow = StoreFeed(after)  # as many changes, and other ones
    live.sync()
    assert sorted(live) == ["ann/both", "ann/new"]


class LostLog:
    """The log of a store that can be out of reach."""

    def __init__(self, log):
        self._log, self.is_lost = log, False

    def read_head(self):
        self._require()
        return self._log.read_head()

    def wait(self, position, timeout):
        self._require()
        return self._log.wait(position, timeout)

    def read(self, position, **kinds):
        self._require()
        return self._log.read(position, **kinds)

    def _require(self):
        if self.is_lost:
            msg = "nobody answers"
            raise StoreError(msg)


def test_a_store_that_is_lost_is_told_once_and_followed_when_it_is_back(tmp_path):
    store = MemoryStore()
    store.log = log = LostLog(store.log)
    feed = StoreFeed(store, tuning=FeedTuning(retry_seconds=0))
    live = td.Live(tmp_path, follow=feed)
    put(store, "a", "price < 5")
    log.is_lost = True
    with pytest.raises(StoreError, match="nobody answers"):
        live.sync()
    log.is_lost = False
    live.sync()
    log.is_lost = True
    refusals = [live.sync().refused for _ in range(3)]
    assert [len(refused) for refused in refusals] == [1, 0, 0]
    assert "what was read of it before stays in force: nobody answers" in str(refusals[0][0][1])
    assert list(live) == ["ann/a"]
    put(store, "b", "price < 5")
    log.is_lost = False
    live.sync()
    assert sorted(live) == ["ann/a", "ann/b"]
    log.is_lost = True
    assert len(live.sync().refused) == 1, "another loss is told again"


def test_where_nothing_changed_the_log_is_not_read(tmp_path):
    store = MemoryStore()
    put(store, "a", "price < 5")
    live = td.Live(tmp_path, follow=StoreFeed(store))
    live.sync()
    version = live.version
    store.log.read = None
    assert live.sync().version == version.number
    assert version.position["store"] == store.log.read_head().to_dict()
    assert Position(**version.position["store"]) == store.log.read_head()
