"""The supervisor with tiny programs: what it starts, starts again, says and ends."""

import os
import signal
import subprocess
import sys
import threading
from textwrap import dedent

import pytest
from tests.kafka.broker import wait_for
from tests.spark.pipeline.crashing import alive

from tidings.service.rotated_log import RotatedLog
from tidings.service.supervisor import ChildProgram, Supervisor, SupervisorTuning

QUICK = SupervisorTuning(first_wait=0.05, longest_wait=0.2, steady=30, patience=20, hurry=2)

LEASHED = """
    import signal, sys, time, os
    from tidings.service.leash import announce_ready, follow_supervisor
    follow_supervisor(patience_s=0.2)
"""
WORKING = f"""{LEASHED}
    announce_ready(f"at work, {{os.getpid()}}")
    time.sleep(600)
"""
STUBBORN = f"""{LEASHED}
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    announce_ready(f"at work, {{os.getpid()}}")
    while True: time.sleep(600)
"""


def program(name, text, **environ):
    return ChildProgram(name=name, command=[sys.executable, "-c", dedent(text)], environ=environ)


class Play:
    """A supervisor at work in a thread, and what it said."""

    def __init__(self, *programs, logs, tuning=QUICK):
        self.words, self.notes, self.ready, self.logs = [], [], [], logs
        self.supervisor = Supervisor(
            programs,
            logs,
            warn=self.words.append,
            note=self.notes.append,
            on_ready=lambda *ready: self.ready.append(ready),
            tuning=tuning,
        )
        self.thread = threading.Thread(target=self.supervisor.run)

    @property
    def pids(self):
        return [int(text.rpartition(" ")[2]) for _, text in self.ready]

    def log(self, name):
        path = self.logs / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def until(self, condition):
        assert wait_for(condition, 20), (self.words, self.ready)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *problem):
        for _ in range(3):
            self.supervisor.request_stop()
        self.thread.join(20)
        assert not self.thread.is_alive()


@pytest.fixture
def play(tmp_path):
    return lambda *programs, **settings: Play(*programs, logs=tmp_path, **settings)


def test_children_say_that_they_are_ready_and_end_when_asked(play):
    with play(program("api", WORKING), program("pipeline", WORKING)) as service:
        service.until(lambda: len(service.ready) == 2)
        assert {name for name, _ in service.ready} == {"api", "pipeline"}
        assert all(map(alive, service.pids))
        service.supervisor.request_stop()
        service.thread.join(20)
    assert not any(map(alive, service.pids))
    assert service.words == []
    assert service.notes == [
        "stopping; the api and the pipeline may finish what they are at, and a second signal hurries"
    ]
    assert "ready: at work" in service.log("api")


def test_a_child_that_dies_is_started_again_and_told_with_its_last_words(play):
    text = WORKING.replace("time.sleep(600)", "print('error: no such thing'); sys.exit(1)")
    with play(program("pipeline", text)) as service:
        service.until(lambda: len(service.words) >= 3)
    end = "the pipeline ended with exit code 1: no such thing; it is started again in"
    assert service.words[:3] == [f"{end} 0.05 s", f"{end} 0.1 s", f"{end} 0.2 s"]
    assert len(set(service.pids)) >= 3


def test_a_killed_child_is_started_again_and_the_other_one_is_left_alone(play):
    with play(program("api", WORKING), program("pipeline", WORKING)) as service:
        service.until(lambda: len(service.ready) == 2)
        pids = {name: pid for (name, _), pid in zip(service.ready, service.pids, strict=True)}
        os.kill(pids["pipeline"], signal.SIGKILL)
        service.until(lambda: len(service.ready) == 3)
        assert service.ready[2][0] == "pipeline"
        assert alive(pids["api"])
    assert service.words == ["the pipeline was ended by SIGKILL; it is started again in 0.05 s"]


def test_what_a_child_started_does_not_outlive_it(play):
    text = f"""{LEASHED}
    import subprocess
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    announce_ready(f"at work, {{other.pid}}")
    os._exit(3)
    """
    with play(program("api", text)) as service:
        service.until(lambda: service.words)
        assert not alive(service.pids[0])


def test_a_child_that_runs_for_long_begins_with_the_short_wait_again(play):
    tuning = SupervisorTuning(first_wait=0.01, longest_wait=10, steady=0, patience=20, hurry=2)
    with play(program("api", "raise SystemExit(1)"), tuning=tuning) as service:
        service.until(lambda: len(service.words) >= 3)
    assert {line.rpartition(" in ")[2] for line in service.words} == {"0.01 s"}


def test_a_second_request_hurries_and_time_that_runs_out_kills(play):
    tuning = SupervisorTuning(first_wait=0.05, patience=600, hurry=0.2)
    with play(program("api", STUBBORN), tuning=tuning) as service:
        service.until(lambda: service.ready)
        service.supervisor.request_stop()
        service.supervisor.request_stop()
        service.thread.join(20)
        assert not service.thread.is_alive()
    assert service.words == ["the api did not end in time and is killed"]
    assert not alive(service.pids[0])


def test_children_end_with_a_supervisor_that_is_killed(tmp_path):
    text = f"""
    import sys
    from pathlib import Path
    from tidings.service.supervisor import ChildProgram, Supervisor
    def tell(*ready): print(*ready, flush=True)
    programs = [ChildProgram(name=str(i), command=[sys.executable, "-c", text])
                for i, text in enumerate({[dedent(WORKING), dedent(STUBBORN)]!r})]
    Supervisor(programs, Path({str(tmp_path)!r}), warn=print, note=print, on_ready=tell).run()
    """
    with subprocess.Popen([sys.executable, "-c", dedent(text)], stdout=subprocess.PIPE, text=True) as process:
        pids = [int(process.stdout.readline().rpartition(" ")[2]) for _ in range(2)]
        assert all(map(alive, pids))
        process.kill()
    assert wait_for(lambda: not any(map(alive, pids)), 20)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_with_exit_code_0(tmp_path, number):
    text = f"""
    import sys
    from pathlib import Path
    from tidings.service.supervisor import ChildProgram, Supervisor
    def tell(*ready): print(*ready, flush=True)
    program = ChildProgram(name="api", command=[sys.executable, "-c", {dedent(WORKING)!r}])
    Supervisor([program], Path({str(tmp_path)!r}), warn=print, note=print, on_ready=tell).run()
    """
    with subprocess.Popen([sys.executable, "-c", dedent(text)], stdout=subprocess.PIPE, text=True) as process:
        pid = int(process.stdout.readline().rpartition(" ")[2])
        process.send_signal(number)
        assert process.wait(20) == 0
    assert not alive(pid)


def test_a_log_is_bounded_and_a_full_disk_stops_nothing(tmp_path):
    log = RotatedLog(tmp_path / "api.log", largest=100)
    for number in range(45):
        log.write(b"line %d\n" % number)
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert sizes.keys() == {"api.log", "api.log.1"}
    assert max(sizes.values()) < 120
    assert (tmp_path / "api.log").read_text().endswith("line 44\n")
    RotatedLog(tmp_path / "nowhere" / "api.log").write(b"lost\n")


def test_a_secret_of_the_environment_is_not_in_the_programs_repr():
    assert "swordfish" not in repr(program("api", "", TIDINGS_STORE="swordfish"))
