"""Signals ask a pipeline to stop; real processes get real ones."""

import os
import signal
import subprocess
import sys
import threading

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tidings.spark.pipeline.run.stopping import StopSignal

MODULE = sys.modules[StopSignal.__module__].__file__

# Background shells ignore SIGINT, and a child inherits that. The module is loaded alone: its package imports PySpark,
# which takes seconds.
CHILD = """
import importlib.util, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
found = importlib.util.spec_from_file_location("stopping", sys.argv[1])
module = importlib.util.module_from_spec(found)
found.loader.exec_module(module)
StopSignal = module.StopSignal

def say(text):
    print(text, flush=True)

with StopSignal() as stopping:
    {taken}
    say("ready")
    said = stopping.wait(60)
    say(f"asked {{said}} {{stopping.requested}}")
    {then}
say("done")
{after}
"""


class Child:
    """A process that is told to stop."""

    def __init__(self, *, on_batch="", then="", after=""):
        source = CHILD.format(taken=on_batch, then=then, after=after)
        self.process = subprocess.Popen([sys.executable, "-c", source, MODULE], stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def says(self):
        return self.process.stdout.readline().rstrip("\n")

    def send(self, number):
        self.process.send_signal(number)

    def ends(self):
        return self.process.wait(60)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_a_wish_and_the_program_ends_as_it_likes(number):
    with Child() as child:
        assert child.says() == "ready"
        child.send(number)
        assert (child.says(), child.says()) == ("asked True True", "done")
        assert child.ends() == 0


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [(signal.SIGINT, signal.SIGINT, 130), (signal.SIGINT, signal.SIGTERM, 143), (signal.SIGTERM, signal.SIGINT, 130)],
)
def test_the_second_signal_ends_the_process_where_it_stands(first, second, status):
    with Child(then="time.sleep(600)") as child:
        assert child.says() == "ready"
        child.send(first)
        assert child.says() == "asked True True"
        child.send(second)
        assert child.ends() == status


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_while_it_starts_the_first_signal_ends_the_process(number):
    start = "with stopping.end_at_once():\n        say('starting'); time.sleep(600)"
    with Child(on_batch=start) as child:
        assert child.says() == "starting"
        child.send(number)
        assert (child.says(), child.ends()) == ("", 0)


def test_a_request_of_before_the_start_ends_it_and_after_it_signals_are_wishes():
    with Child(on_batch="stopping.request()\n    with stopping.end_at_once(): say('no')") as child:
        assert (child.says(), child.ends()) == ("", 0)
    with Child(on_batch="with stopping.end_at_once(): pass") as child:
        assert child.says() == "ready"
        child.send(signal.SIGTERM)
        assert (child.says(), child.says()) == ("asked True True", "done")


def test_signals_are_taken_back_from_whoever_took_them_and_old_handlers_return():
    spark_does = "signal.signal(signal.SIGINT, lambda *_: say('not for us'))\n    stopping.install_handlers()"
    asks = "import os\ntry:\n    os.kill(os.getpid(), signal.SIGINT); time.sleep(60)\nexcept KeyboardInterrupt:\n"
    with Child(on_batch=spark_does, after=asks + "    say('as before')") as child:
        assert child.says() == "ready"
        child.send(signal.SIGINT)
        assert [child.says() for _ in range(3)] == ["asked True True", "done", "as before"]
        assert child.ends() == 0


def test_handlers_of_this_process_are_those_from_before():
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with StopSignal() as stopping:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopping.wait(30)
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_a_program_may_ask_itself_and_waiting_has_an_end():
    with StopSignal() as stopping:
        assert not stopping.wait(0)
        stopping.request()
        assert stopping.wait(0)


def test_one_request_wakes_all_who_wait():
    stopping, answers = StopSignal(), []
    threads = [threading.Thread(target=lambda: answers.append(stopping.wait(60)), daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    stopping.request()
    for thread in threads:
        thread.join(20)
    assert answers == [True] * 3


def test_outside_the_main_thread_signals_stay_with_whom_they_were():
    before, handlers = signal.getsignal(signal.SIGTERM), []

    def work():
        with StopSignal() as stopping:
            handlers.append(signal.getsignal(signal.SIGTERM))
            stopping.request()
            handlers.append(stopping.wait(0))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [before, True]


def test_a_signal_before_the_main_thread_waits_does_not_hang():
    with Child(on_batch="signal.raise_signal(signal.SIGTERM)") as child:
        output, _ = child.process.communicate(timeout=20)
        assert output.splitlines() == ["ready", "asked True True", "done"]
