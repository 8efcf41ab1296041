"""The writer: who comes alone is not kept waiting, who comes together is committed together, everybody is answered."""

import asyncio
import threading
from datetime import UTC, datetime

import pytest
from tests.kafka.broker import wait_for

from tidings.service.api.writer import GroupWriter
from tidings.service.store.base import IdTaken, StoreBusy, StoreError, Write
from tidings.service.store.memory import MemoryStore
from tidings.service.subscription import SubscriptionDraft

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def make_write(id, action="create"):
    draft = SubscriptionDraft(id=id, kind="filter", text="a = 1")
    return Write(action=action, owner="bob", id=id, actor="bob", at=NOW, draft=draft)


class SlowSubscriptions:
    """Subscriptions whose transactions wait until they may go on."""

    def __init__(self):
        self.subscriptions, self.groups = MemoryStore().subscriptions, []
        self.begun, self.may_go_on = threading.Event(), threading.Event()
        self.problem = self.poison = None

    def write(self, writes):
        self.groups.append(len(writes))
        self.begun.set()
        assert self.may_go_on.wait(10)
        if self.problem is not None:
            raise self.problem
        if self.poison in writes:
            msg = "a mistake of ours: the transaction is undone"
            raise RuntimeError(msg)
        return self.subscriptions.write(writes)


@pytest.fixture
def store():
    return SlowSubscriptions()


@pytest.fixture
def bounds(request):
    return getattr(request, "param", {})


@pytest.fixture
def writer(store, bounds):
    writer = GroupWriter(store, **bounds)
    yield writer
    store.may_go_on.set()
    writer.close()


def test_who_comes_alone_is_written_at_once(store, writer):
    store.may_go_on.set()

    async def write_three():
        return [await writer.write(make_write(f"s{number}")) for number in range(3)]

    assert [written.subscription.id for written in asyncio.run(write_three())] == ["s0", "s1", "s2"]
    assert store.groups == [1, 1, 1]


async def write_together(store, writer, writes):
    """Write one, and the others while its transaction is under way."""
    first = asyncio.create_task(writer.write(make_write("first")))
    await asyncio.to_thread(store.begun.wait, 10)
    others = [asyncio.create_task(writer.write(write)) for write in writes]
    await asyncio.sleep(0)
    store.may_go_on.set()
    return await asyncio.gather(first, *others, return_exceptions=True)


def test_who_comes_during_a_commit_is_committed_together(store, writer):
    writes = [make_write(f"s{number}") for number in range(50)] + [make_write("first")]
    first, *others, last = asyncio.run(write_together(store, writer, writes))
    assert first.created
    assert [written.subscription.id for written in others] == [f"s{number}" for number in range(50)]
    assert isinstance(last, IdTaken)  # its own refusal, and nobody else's
    assert store.groups == [1, 51]


@pytest.mark.parametrize("bounds", [{"max_group": 20}], indirect=True)
def test_groups_have_a_limit(store, writer):
    asyncio.run(write_together(store, writer, [make_write(f"s{number}") for number in range(50)]))
    assert store.groups == [1, 20, 20, 10]


@pytest.mark.parametrize("problem", [StoreError("gone"), RuntimeError("bug")])
def test_a_transaction_that_fails_is_the_answer_of_all_in_it(store, writer, problem):
    store.problem = problem
    outcomes = asyncio.run(write_together(store, writer, [make_write("s1"), make_write("s2")]))
    assert outcomes == [problem] * 3
    store.problem = None
    assert asyncio.run(writer.write(make_write("s1"))).created


def test_a_write_that_nobody_can_do_is_not_the_end_of_its_group(store, writer):
    store.poison = make_write("poison")
    outcomes = asyncio.run(write_together(store, writer, [make_write("s1"), store.poison, make_write("s2")]))
    assert [type(outcome).__name__ for outcome in outcomes] == ["Written", "Written", "RuntimeError", "Written"]
    assert store.groups == [1, 3, 1, 1, 1]
    assert store.subscriptions.get("bob", "s2") is not None


@pytest.mark.parametrize("bounds", [{"max_waiting": 4}], indirect=True)  # one is being written
def test_too_many_that_wait_are_asked_to_come_again(store, writer):
    outcomes = asyncio.run(write_together(store, writer, [make_write(f"s{number}") for number in range(5)]))
    assert [isinstance(outcome, StoreBusy) for outcome in outcomes] == [False] * 4 + [True] * 2


def test_a_request_that_went_away_is_written_all_the_same(store, writer):
    async def go_away():
        task = asyncio.create_task(writer.write(make_write("s1")))
        await asyncio.to_thread(store.begun.wait, 10)
        task.cancel()
        store.may_go_on.set()
        return await writer.write(make_write("s2"))

    assert asyncio.run(go_away()).created
    assert store.subscriptions.get("bob", "s1") is not None


def test_what_waits_is_written_before_the_end(store):
    writer = GroupWriter(store)

    async def end():
        task = asyncio.create_task(writer.write(make_write("s1")))
        await asyncio.to_thread(store.begun.wait, 10)
        store.may_go_on.set()
        await asyncio.to_thread(writer.close)
        return await task

    assert asyncio.run(end()).created
    writer.close()


def test_every_request_is_answered_also_around_the_end(store):
    """The writer is closed at random moments, while requests of another thread's loop come one after the other."""
    store.may_go_on.set()
    writer, created, is_over = GroupWriter(store), [], threading.Event()

    async def write_until_the_end():
        while not is_over.is_set():
            created.append(await writer.write(make_write(f"s{len(created)}")))

    client = threading.Thread(target=lambda: asyncio.run(write_until_the_end()))
    client.start()
    for number in range(50):
        assert wait_for(lambda number=number: len(created) > number, 30)
        writer.close()
    is_over.set()
    client.join(30)
    assert not client.is_alive()
    assert [written.subscription.id for written in created] == [f"s{number}" for number in range(len(created))]
    writer.close()
