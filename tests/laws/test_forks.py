"""Forks while another thread changes things: the child finds them whole, and waits for nobody.

Each program runs in a process of its own, forks again and again under churn, and gives every child a bounded time; a
child that hangs is killed, and fails the test.
"""

import subprocess
import sys
import textwrap

import pytest

FORKING = """
import os, signal, sys, tempfile, threading, time, warnings
import tidings as td

FORKS, PATIENCE = 12, 60.0
warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on: that is what this is about

def forked(child):
    '''Run a function in a child, and return how it ended: what it returned, or the signal that ended it.'''
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if child() else 3)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(4)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "hangs"

def under_churn(change, child):
    '''Fork while a thread makes changes one after the other.'''
    over, changes, problems = threading.Event(), [0], []
    def churn():
        try:
            while not over.is_set():
                change(changes[0])
                changes[0] += 1
        except BaseException as problem:
            problems.append(problem)
            raise
    change(-1)  # what is compiled is compiled
    assert child()
    thread = threading.Thread(target=churn)
    thread.start()
    try:
        ends = [forked(child) for _ in range(FORKS)]
    finally:
        over.set()
        thread.join()
    assert not problems, problems
    assert changes[0] > 0
    assert ends == [0] * FORKS, ends
"""

MATCHER = """
matcher = td.Matcher({kind!r})
matcher.add_many((number, f"a < {{number}}") for number in range(300))
stay = set(range(101, 300))

def change(step):
    matcher.add_many([(1000 + number, f"b{{step % 7}} = {{number}} and a > {{step}}") for number in range(20)])
    matcher.remove_many([1000 + number for number in range(20)])
    matcher.add(2000, f"c{{step % 5}} = 1")
    matcher.remove(2000)

def child():
    good = stay <= set(matcher.match({{"a": 100}})) <= stay | set(range(1000, 3000)) | {{5000}}
    matcher.add(5000, "a = 100")
    good &= 5000 in matcher.match({{"a": 100}})
    for step in range(5):
        change(step)
    matcher.compact()
    matcher.settle()
    return good and stay | {{5000}} <= set(matcher.match({{"a": 100}})) and not matcher.merging

under_churn(change, child)
"""

MERGING = """
from tidings.engine.tuning import EngineTuning, use_tuning
with use_tuning(EngineTuning(inline_merge_limit=32)):  # so that threads merge in the background all the time
""" + textwrap.indent(MATCHER.format(kind="engine"), "    ")

DETECTOR = """
detector = td.Detector()
detector.add("stays", "a = a = 1\\nb = b = 1\\na ; b")

def change(step):
    detector.add(f"p{step % 3}", f"c = c = {step}\\nd = d = {step % 4}\\nc ; d")
    if step % 3 == 2:
        detector.remove(f"p{step % 3}")

def child():
    other = td.Detector.resume(detector.snapshot())
    for one in (other, detector.fork()):
        one.on_event({"id": 1, "time": 1, "a": 1, "b": 0})
        if [found.pattern for found in one.on_event({"id": 2, "time": 2, "a": 0, "b": 1})] != ["stays"]:
            return False
    detector.add("mine", "e = e = 1\\ne ; e")
    return "mine" in detector and "stays" in detector

under_churn(change, child)
"""

LIVE = """
live = td.Live(tempfile.mkdtemp(), shards={shards})
live.add_many((number, f"a < {{number}}") for number in range(50))
stay = set(range(11, 50))

def change(step):
    live.add(1000 + step % 3, f"b = {{step}}")
    live.remove(1000 + step % 3)

def child():
    if not stay <= set(live.open().match({{"a": 10}})):
        return False
    mine = 5000 + os.getpid()
    live.add(mine, "a = 10")
    good = mine in live and mine in live.open().match({{"a": 10}})
    live.remove(mine)
    return good

under_churn(change, child)
"""

PROGRAMS = {
    "matcher": MATCHER.format(kind="engine"),
    "merging": MERGING,
    "counting": MATCHER.format(kind="counting"),
    "detector": DETECTOR,
    "live": LIVE.format(shards=1),
    "live of shards": LIVE.format(shards=3),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_child_forked_under_churn_finds_all_whole_and_waits_for_nobody(name):
    program = FORKING + textwrap.dedent(PROGRAMS[name])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, done.stderr[-3000:]


def test_a_lock_that_another_thread_holds_is_new_in_the_child():
    program = FORKING + textwrap.dedent(
        """
        from tidings import forks

        class Held:
            def __init__(self):
                self.lock = threading.RLock()
                self.heard = False
            def after_fork(self):
                self.heard = True

        waited_for, not_waited_for = Held(), Held()
        forks.guard(waited_for, forks.Level.MATCHER)
        forks.listen(not_waited_for)
        begun, end = threading.Event(), threading.Event()

        def hold():
            with waited_for.lock:
                begun.set()
                end.wait(0.2)

        thread = threading.Thread(target=hold)
        thread.start()
        begun.wait()

        def child():
            return waited_for.lock.acquire(blocking=False) and waited_for.heard and not_waited_for.heard

        assert forked(child) == 0
        assert not waited_for.heard
        thread.join()
        assert waited_for.lock.acquire(blocking=False)  # the parent has let go of it, too
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
