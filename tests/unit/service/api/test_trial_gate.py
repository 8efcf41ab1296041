"""A gate lets few in, the owners by turns, and tells those who wait too long, or are too many, to come again."""

import asyncio
import threading

import pytest

pytest.importorskip("fastapi", reason="needs tidings[service]")

from tidings.service.api.problems import Problem
from tidings.service.api.trial_gate import GateTuning, TrialGate


class Visitors:
    """Tasks that enter a gate and stay until they are told to leave."""

    def __init__(self, gate):
        self.gate, self.inside, self.may_leave, self.tasks = gate, [], {}, []

    async def send(self, owner, name):
        self.may_leave[name] = asyncio.Event()
        task = asyncio.create_task(self._visit(owner, name))
        self.tasks.append(task)
        await settle()
        return task

    async def _visit(self, owner, name):
        async with self.gate.enter(owner):
            self.inside.append(name)
            await self.may_leave[name].wait()
            self.inside.remove(name)

    async def leave(self, name):
        self.may_leave[name].set()
        await settle()

    async def end(self):
        for event in self.may_leave.values():
            event.set()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


def visit(play, **tuning):
    """Play with the visitors of a gate, which is empty in the end."""

    async def run():
        visitors = Visitors(TrialGate(GateTuning(**tuning)))
        try:
            await asyncio.wait_for(play(visitors), 30)
        finally:
            await visitors.end()
        async with asyncio.timeout(30), visitors.gate.enter("last"), visitors.gate.enter("of all"):
            visitors.gate.close()

    asyncio.run(run())


def test_an_owner_has_one_place_and_another_owner_comes_in():
    async def play(visitors):
        for name in ("b1", "b2", "b3"):
            await visitors.send("bob", name)
        assert visitors.inside == ["b1"]
        await visitors.send("ann", "a1")
        assert visitors.inside == ["b1", "a1"]

    visit(play)


def test_owners_come_in_by_turns_and_each_in_the_order_of_its_own():
    async def play(visitors):
        for owner, name in [("x", "x1"), ("y", "y1"), ("bob", "b1"), ("bob", "b2"), ("ann", "a1"), ("ann", "a2")]:
            await visitors.send(owner, name)
        assert visitors.inside == ["x1", "y1"]
        order = []
        for _ in range(4):
            (last,) = [name for name in visitors.inside if name != "y1"]
            await visitors.leave(last)
            order += [name for name in visitors.inside if name != "y1"]
        assert order == ["b1", "a1", "b2", "a2"]

    visit(play)


def test_who_would_be_too_many_is_told_when_to_come_again():
    async def play(visitors):
        for name in ("b1", "b2", "b3"):
            await visitors.send("bob", name)
        refused = await visitors.send("bob", "b4")
        await visitors.send("ann", "a1")
        await visitors.send("ann", "a2")
        refused_too = await visitors.send("carl", "c1")
        for task in (refused, refused_too):
            problem = task.exception()
            assert isinstance(problem, Problem)
            assert (problem.status, problem.headers) == (503, {"Retry-After": "7"})

    visit(play, waiting=3, waiting_of_owner=2, retry_after=7)


def test_who_waits_too_long_is_told_so_and_is_in_nobodys_way():
    async def play(visitors):
        await visitors.send("bob", "b1")
        impatient = await visitors.send("bob", "b2")
        await asyncio.wait([impatient])
        assert impatient.exception().status == 503
        await visitors.leave("b1")
        await visitors.send("bob", "b3")
        assert visitors.inside == ["b3"]

    visit(play, patience=0.01)


def test_who_goes_away_while_waiting_leaves_no_trace():
    async def play(visitors):
        await visitors.send("bob", "b1")
        gone = await visitors.send("bob", "b2")
        await visitors.send("bob", "b3")
        gone.cancel()
        await settle()
        await visitors.leave("b1")
        assert visitors.inside == ["b3"]

    visit(play)


def test_work_is_done_in_threads_of_the_gate():
    async def ask():
        gate = TrialGate()
        name = await gate.work(lambda: threading.current_thread().name)
        gate.close()
        return name

    assert asyncio.run(ask()).startswith("tidings-trial")
