"""A process that checks blocks of large imports and does nothing else.

It is `python -m` this module. It reads frames from its standard input and writes one for each to its standard output:
first the checker, then blocks. It ends when its input does, so it cannot outlive the API.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import IO, TYPE_CHECKING, Any

from tidings.service.api.block_checks import CheckedBlock, ImportRules, check_block

if TYPE_CHECKING:
    from tidings.service.checking import SubscriptionChecker


class CheckProcess:
    """A process that checks blocks; for one thread."""

    def __init__(self, checker: SubscriptionChecker) -> None:
        command = [sys.executable, "-m", "tidings.service.api.check_process"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - our own
        self._send(checker)

    def _send(self, value: Any) -> None:
        assert self._process.stdin is not None
        _write_frame(self._process.stdin, value)

    def check(self, data: bytes, first: int, rules: ImportRules) -> CheckedBlock:
        """Return a checked block, as `check_block` does."""
        self._send((data, first, rules))
        assert self._process.stdout is not None
        outcome = _read_frame(self._process.stdout)
        if not isinstance(outcome, CheckedBlock):
            msg = "the process that checks imports ended"
            raise RuntimeError(msg)
        return outcome

    def close(self) -> None:
        """End the process."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.wait()


def run_checks(source: IO[bytes], target: IO[bytes]) -> None:
    """Check blocks until there are no more."""
    checker = _read_frame(source)
    while (frame := _read_frame(source)) is not None:
        _write_frame(target, check_block(checker, *frame))


def _write_frame(pipe: IO[bytes], value: Any) -> None:
    data = pickle.dumps(value, 5)
    pipe.write(len(data).to_bytes(8, "big") + data)
    pipe.flush()


def _read_frame(pipe: IO[bytes]) -> Any:
    head = pipe.read(8)
    size = int.from_bytes(head, "big")
    data = pipe.read(size) if len(head) == 8 else b""
    return pickle.loads(data) if data and len(data) == size else None  # noqa: S301 - our own process


def serve_checks() -> None:
    """Check blocks of standard input, as a process."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed must not stand among the frames
    run_checks(sys.stdin.buffer, answers)


if __name__ == "__main__":
    serve_checks()
