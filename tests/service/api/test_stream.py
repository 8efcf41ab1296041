"""The stream of matches: nothing missed or repeated across reconnections, bounded for slow clients, over in time."""

import asyncio
import random
from datetime import timedelta

import pytest
from tests.service.api.asking import check_problem
from tests.service.api.streaming import StreamClient

from tidings.service.api import match_hub
from tidings.service.api.match_hub import HubTuning, MatchHub
from tidings.service.api.routes.stream import get_hub
from tidings.service.settings import LimitSettings
from tidings.service.store.opening import open_store
from tidings.service.subscription import MatchRow

QUICK = HubTuning(poll_seconds=0.005, check_seconds=0.01)


@pytest.fixture(params=["memory", "sqlite"])
def api(make_api, tmp_path, request):
    store = None if request.param == "memory" else open_store(f"sqlite:///{tmp_path}/store.db")
    api = make_api(store=store)
    for owner, id in (("shop", "s1"), ("shop", "s2"), ("bank", "s1")):
        api.create(id, params={"owner": owner}, labels=["cars"] if id == "s2" else [])
    tune(api, QUICK)
    yield api
    api.runner.run(get_hub(api.state).close())
    if store is not None:
        store.close()


def tune(api, tuning):
    api.state.parts["stream"] = MatchHub(api.state, tuning)


class MatchSource:
    """Writes matches, as a pipeline does."""

    def __init__(self, api):
        self.api, self.batch = api, 0

    def write(self, *rows):
        """Write a batch of pairs of a subscription and an event; return the newest number."""
        self.batch += 1
        at = self.api.time.now()
        matches = [
            MatchRow(owner=owner, subscription=id, kind="match", at=at, event=event, values={"id": event})
            for owner, _, id, event in ((*pair.partition("/"), event) for pair, event in rows)
        ]
        self.api.store.matches.write("matching", self.batch, matches, at=at, keep=100_000)
        return self.api.store.matches.read_head()


def stream(api, use):
    """Run a coroutine that uses streams."""
    return api.runner.run(use())


def test_a_match_comes_with_its_number_and_its_values(api):
    pipeline, key = MatchSource(api), api.make_key("shop", "read")

    async def use():
        pipeline.write(("shop/s1", "before"))
        async with StreamClient(api, key=key) as client:
            number = pipeline.write(("shop/s1", "e1"), ("bank/s1", "e1"))
            await client.until(lambda: client.matches)
            [(seen, match)] = client.matches
            assert client.status == 200
            assert 0 < seen <= number
            assert match | {"subscription": "s1", "kind": "match", "event": "e1", "values": {"id": "e1"}} == match

    stream(api, use)


def test_whoever_comes_again_misses_nothing_and_hears_nothing_twice(api):
    pipeline, rng, numbers = MatchSource(api), random.Random(7), []
    tune(api, HubTuning(poll_seconds=0.001, check_seconds=0.01, page_rows=3))

    def write_some():
        rows = [
            (rng.choice(("shop/s1", "shop/s2", "bank/s1")), f"e{pipeline.batch}-{n}") for n in range(rng.randrange(9))
        ]
        return pipeline.write(*rows)

    async def use():
        pipeline.write(("shop/s1", "e0"))
        last = 0
        for _ in range(25):
            write_some()
            async with StreamClient(api, query="owner=shop", last_id=last) as client:
                wanted = len(client.matches) + rng.randrange(4)
                write_some()
                if rng.random() < 0.5:
                    write_some()
                newest = api.store.matches.list_since("shop", last, limit=10_000)[-1:]
                reachable = newest[0].number if newest else 0
                await client.until(lambda c=client, w=wanted, r=reachable: len(c.matches) >= w or r <= c.last_id)
                numbers.extend(client.numbers)
                last = max([last, *client.numbers])
        async with StreamClient(api, query="owner=shop", last_id=last) as client:
            newest = api.store.matches.list_since("shop", 0, limit=10_000)[-1].number
            await client.until(lambda: newest in [*numbers, *client.numbers])
            numbers.extend(client.numbers)

    stream(api, use)
    assert numbers == [row.number for row in api.store.matches.list_since("shop", 0, limit=10_000)]


def test_streams_share_one_poller_and_hear_only_what_is_theirs(api):
    pipeline, bank = MatchSource(api), api.make_key("bank", "read")

    async def use():
        everything = StreamClient(api, query="owner=*")
        of_shop, of_bank = StreamClient(api, query="owner=shop"), StreamClient(api, key=bank)
        narrow, labelled = (
            StreamClient(api, query="owner=shop&subscription=s2"),
            StreamClient(api, query="owner=shop&label=cars"),
        )
        async with everything, of_shop, of_bank, narrow, labelled:
            pipeline.write(("shop/s1", "a"), ("bank/s1", "b"))
            pipeline.write(("shop/s2", "c"))
            await everything.until(lambda: len(everything.matches) == 3)
            await of_shop.until(lambda: len(of_shop.matches) == 2)
            await narrow.until(lambda: narrow.matches)
            await labelled.until(lambda: labelled.matches)
            await of_bank.until(lambda: of_bank.matches)
            events = [
                [match["event"] for _, match in client.matches] for client in (of_shop, of_bank, narrow, labelled)
            ]
            assert events == [["a", "c"], ["b"], ["c"], ["c"]]
        assert get_hub(api.state).count == 0

    stream(api, use)


def test_a_client_that_does_not_read_is_dropped_and_may_go_on(api):
    pipeline = MatchSource(api)
    tune(api, HubTuning(poll_seconds=0.005, check_seconds=0.01, queue_rows=50))

    async def use():
        async with StreamClient(api, query="owner=shop") as client, StreamClient(api, query="owner=shop") as reader:
            client.pause()
            for batch in range(40):
                newest = pipeline.write(*(("shop/s1", f"e{batch}-{n}") for n in range(5)))
                await reader.until(lambda newest=newest: reader.last_id == newest)
            hub = get_hub(api.state)
            assert max(len(queue.frames) for queue in hub._queues) <= 50  # noqa: SLF001 - memory is what is asked about
            client.read_on()
            assert (await client.end()).startswith("too slow")
            assert len(client.matches) < 200
            async with StreamClient(api, query="owner=shop", last_id=client.last_id) as again:
                await again.until(lambda: again.last_id == newest)
                assert client.numbers + again.numbers == reader.numbers

    stream(api, use)


def test_a_client_that_never_reads_holds_its_place_for_a_while_only(api):
    pipeline = MatchSource(api)
    tune(api, HubTuning(poll_seconds=0.005, check_seconds=0.01, send_seconds=0.05))

    async def use():
        async with StreamClient(api, query="owner=shop") as client:
            client.pause()
            pipeline.write(("shop/s1", "e"))
            async with asyncio.timeout(30):
                await client._task  # noqa: SLF001 - the answer ends though nobody reads
            assert not client.is_complete
            assert get_hub(api.state).count == 0

    stream(api, use)


def test_a_stream_ends_when_its_key_is_revoked_or_expires(api):
    lasting = api.make_key("shop", "read")
    short = api.make_key("shop", "read", expires_at=api.time.now() + timedelta(seconds=60))

    async def use():
        async with StreamClient(api, key=lasting) as client, StreamClient(api, key=short) as other:
            assert (client.is_complete, other.is_complete) == (False, False)
            api.time.pass_time(61)
            assert await other.end() == "the key was revoked, or has expired"
            [record] = [key for key in api.store.keys.list("shop") if key.expires_at is None]
            api.store.keys.revoke(record.id, actor="test", at=api.time.now())
            api.time.pass_time(2)
            assert await client.end() == "the key was revoked, or has expired"

    stream(api, use)


def test_a_stream_says_that_it_is_there_and_that_the_service_stops(api):
    pipeline = MatchSource(api)

    async def use():
        async with StreamClient(api, query="owner=shop&subscription=s2") as client:
            newest = pipeline.write(("shop/s1", "e"))
            hub = get_hub(api.state)
            await wait_until(lambda: hub.position == newest)
            api.time.pass_time(16)
            await client.until(lambda: "still here" in client.comments)
            assert client.last_id == newest  # what was not for it is behind it all the same
            api.state.stopping.set()
            assert (await client.end()).startswith("the service stops")

    stream(api, use)
    api.state.stopping.clear()


async def wait_until(condition):
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0)


def test_a_number_from_before_the_store_was_restored_counts_for_nothing(api):
    pipeline = MatchSource(api)

    async def use():
        async with StreamClient(api, query="owner=shop", last_id=10**12) as client:
            pipeline.write(("shop/s1", "e"))
            await client.until(lambda: client.matches)

    stream(api, use)


def test_a_match_that_cannot_be_shown_does_not_hold_up_those_after_it(api, monkeypatch):
    pipeline, encode = MatchSource(api), match_hub.encode_values

    def fail_sometimes(match):
        if match["event"] == "bad":
            raise RecursionError
        return encode(match)

    monkeypatch.setattr(match_hub, "encode_values", fail_sometimes)

    async def use():
        async with StreamClient(api, query="owner=shop") as client:
            pipeline.write(("shop/s1", "bad"), ("shop/s1", "good"))
            await client.until(lambda: client.matches)
            assert [match["event"] for _, match in client.matches] == ["good"]

    stream(api, use)


def test_there_are_bounds_on_streams_and_on_those_of_one_owner(make_api):
    api = make_api(limits=LimitSettings(requests_per_second=1e9, streams=4))
    tune(api, QUICK)
    other = api.make_key("bank", "read")

    async def use():
        async with StreamClient(api), StreamClient(api):
            async with StreamClient(api) as third:
                assert third.status == 429
            fifth = StreamClient(api, key=api.make_key("third", "read"))
            async with StreamClient(api, key=other), StreamClient(api, key=other), fifth:
                assert fifth.status == 503
        async with StreamClient(api) as client:
            assert client.status == 200

    stream(api, use)


def test_what_a_stream_cannot_be_asked(make_api):
    api = make_api()
    for text in ("x", "-1", "9" * 30, "1.5"):
        check_problem(api.get("/v1/stream", headers={"Last-Event-ID": text}), 400)
    check_problem(api.get("/v1/stream", params={"subscription": "nope"}), 404)
    check_problem(api.get("/v1/stream", key=api.make_key("shop", "publish")), 403)
    check_problem(api.get("/v1/stream", key=api.make_key("shop", "read"), params={"owner": "bank"}), 403)
