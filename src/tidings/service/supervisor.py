"""Keeps programs running: starts them, writes down what they say, starts them again when they die, ends them together.

Each program runs in a process group of its own, so that Ctrl-C reaches the supervisor alone, and so that nothing of a
program outlives it (Spark's Java would). A program that dies is started again after a wait that doubles from one death
to the next; one that ran for a while begins with the short wait again. The first signal asks all to stop and waits for
them, a second one hurries, and time that runs out kills. See `leash` for how children end with a supervisor that dies.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias

from tidings.service.leash import LEASHED, READY
from tidings.service.rotated_log import RotatedLog

if TYPE_CHECKING:
    from pathlib import Path

Say: TypeAlias = Callable[[str], None]
"""Takes one line for whoever started the service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildProgram:
    """A program to keep running: `name` is what messages and its log are called, `environ` is beside our own."""

    name: str
    command: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorTuning:
    """How long a supervisor waits, in seconds."""

    first_wait: float = 0.5
    longest_wait: float = 30.0
    steady: float = 60.0  # a child that ran so long has recovered
    patience: float = 120.0  # for a child to end by itself
    hurry: float = 10.0  # the same after a second signal, and for what a child leaves behind


@dataclass(frozen=True, slots=True)
class ChildReady:
    """A child says that it does its work; `text` is what it says."""

    child: SupervisedChild
    text: str


@dataclass(frozen=True, slots=True)
class ChildEnded:
    """A child and all that it started are gone."""

    child: SupervisedChild
    code: int


@dataclass(frozen=True, slots=True)
class StopRequest:
    """Somebody wants all to end."""


Happening: TypeAlias = ChildReady | ChildEnded | StopRequest


class Supervisor:
    """Keeps programs running until it is asked to stop, by a signal or by `request_stop`.

    `on_ready` is called with the name of a program and what it says, whenever it begins to do its work; `warn` takes
    what went wrong, `note` what happens as it should.
    """

    def __init__(
        self,
        programs: Sequence[ChildProgram],
        logs: Path,
        *,
        warn: Say,
        note: Say,
        on_ready: Callable[[str, str], None],
        tuning: SupervisorTuning | None = None,
    ) -> None:
        self._warn, self._note, self._on_ready = warn, note, on_ready
        self._tuning = tuning or SupervisorTuning()
        # A SimpleQueue may be filled by a signal's handler, which runs between any two instructions.
        self._happenings: SimpleQueue[Happening] = SimpleQueue()
        self._children = [SupervisedChild(program, logs, self._happenings.put, self._tuning) for program in programs]
        self._stops = 0

    def run(self) -> None:
        """Start all, and keep them running; return when all have ended after a request to stop."""
        with _catch_signals(self.request_stop):
            try:
                for child in self._children:
                    child.start()
                while not self._stops:
                    self._take(self._find_next_start())
                    self._start_due()
                self._end_all()
            finally:
                for child in self._children:
                    child.kill()

    def request_stop(self) -> None:
        """Ask all to stop; asked twice, they hurry."""
        self._happenings.put(StopRequest())

    # While it runs -------------------------------------------------------------------------------

    def _take(self, until: float | None) -> None:
        """Wait for something to happen, at most until then, and see to it."""
        try:
            happening = self._happenings.get(timeout=None if until is None else max(0.0, until - time.monotonic()))
        except Empty:
            return
        match happening:
            case StopRequest():
                self._stops += 1
            case ChildReady(child, text):
                self._on_ready(child.program.name, text)
            case ChildEnded(child, code):
                wait = child.plan_restart()
                if not self._stops:
                    words = f"the {child.program.name} {_describe_end(code)}{child.last_words}"
                    self._warn(f"{words}; it is started again in {wait:g} s")

    def _find_next_start(self) -> float | None:
        return min((child.start_at for child in self._children if child.start_at is not None), default=None)

    def _start_due(self) -> None:
        now = time.monotonic()
        for child in self._children:
            if not self._stops and child.start_at is not None and child.start_at <= now:
                child.start()

    # The end -------------------------------------------------------------------------------------

    def _end_all(self) -> None:
        stops, until = 0, 0.0
        if names := [child.program.name for child in self._children if child.is_running]:
            them = " and the ".join(names)
            self._note(f"stopping; the {them} may finish what they are at, and a second signal hurries")
        while any(child.is_running for child in self._children):
            if stops < self._stops:  # each request is handed on
                stops = self._stops
                until = time.monotonic() + (self._tuning.patience if stops == 1 else self._tuning.hurry)
                for child in self._children:
                    child.ask_to_stop()
            if time.monotonic() >= until:
                self._kill_all()
                until = time.monotonic() + self._tuning.hurry
            self._take(until)

    def _kill_all(self) -> None:
        for child in self._children:
            if child.is_running:
                self._warn(f"the {child.program.name} did not end in time and is killed")
                child.kill()


class SupervisedChild:
    """One program: its process while it runs, when it is to be started again, and its log."""

    def __init__(
        self, program: ChildProgram, logs: Path, put: Callable[[Happening], None], tuning: SupervisorTuning
    ) -> None:
        self.program = program
        self.start_at: float | None = None  # when it is to be started again, by the monotonic clock
        self.is_running = False
        self._put, self._tuning = put, tuning
        self._log = RotatedLog(logs / f"{program.name}.log")
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at, self._wait, self._last_line = 0.0, tuning.first_wait, ""

    @property
    def last_words(self) -> str:
        """What the program said last, to end a sentence with; nothing, where it said nothing."""
        return f": {self._last_line.removeprefix('error: ')}" if self._last_line else ""

    def start(self) -> None:
        """Start the program."""
        self.start_at, self.is_running, self._last_line = None, True, ""
        self._started_at = time.monotonic()
        environ = {**os.environ, "PYTHONUNBUFFERED": "1", **self.program.environ, LEASHED: "1"}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self._process = subprocess.Popen(self.program.command, env=environ, process_group=0, **pipes)  # noqa: S603 - our own
        reader = self._start_thread(self._follow_output, self._process)
        self._start_thread(self._follow_end, self._process, reader)

    def plan_restart(self) -> float:
        """Set when the program, which has ended, is to be started again; return the seconds until then."""
        self.is_running = False
        if time.monotonic() - self._started_at >= self._tuning.steady:
            self._wait = self._tuning.first_wait
        wait, self._wait = self._wait, min(2 * self._wait, self._tuning.longest_wait)
        self.start_at = time.monotonic() + wait
        return wait

    def ask_to_stop(self) -> None:
        """Ask the program to stop after what it is at; what it started is its own to end."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the program and all that it started."""
        if self._process is not None and self.is_running:
            _kill_group(self._process.pid)

    def _start_thread(self, follow: Callable[..., None], *arguments: Any) -> threading.Thread:
        thread = threading.Thread(target=follow, args=arguments, name=f"tidings-{self.program.name}", daemon=True)
        thread.start()
        return thread

    def _follow_output(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._log.write(line)
            text = line.decode(errors="replace").rstrip()
            if text.startswith(READY):
                self._put(ChildReady(self, text.removeprefix(READY)))
            elif text:
                self._last_line = text

    def _follow_end(self, process: subprocess.Popen[bytes], reader: threading.Thread) -> None:
        code = process.wait()
        # One that ended by itself is given time to clean up: Spark's Java removes its files.
        until = time.monotonic() + (self._tuning.hurry if code == 0 else 0)
        while _has_members(process.pid) and time.monotonic() < until:
            time.sleep(0.05)
        _kill_group(process.pid)
        reader.join(self._tuning.hurry)  # so that its last words are there
        self._put(ChildEnded(self, code))


def _has_members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _describe_end(code: int) -> str:
    """Return how a process ended, in words.

    >>> _describe_end(1), _describe_end(-9)
    ('ended with exit code 1', 'was ended by SIGKILL')
    """
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


@contextmanager
def _catch_signals(request_stop: Callable[[], None]) -> Iterator[None]:
    """Let SIGTERM and Ctrl-C request a stop inside the block; outside the main thread Python delivers none."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    old = {number: signal.signal(number, lambda *_: request_stop()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
