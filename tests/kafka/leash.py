"""Processes that die with the one that started them, by whatever death; Linux sees to it.

`python leash.py PARENT PROGRAM ...` asks the kernel to be killed with its parent, and becomes the program. A step
between the two processes, because asking inside a fork of a process with threads, such as pytest's, may hang.
"""

import ctypes
import os
import signal
import sys

PARENT_DEATH_SIGNAL = 1


def build_leashed_command(*command):
    """Return the command that runs this one on a leash; for Popen, in the main thread."""
    return [sys.executable, "-S", "-E", __file__, str(os.getpid()), *map(str, command)]


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):  # it died before we asked
        sys.exit(1)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's job in the background, as `make test` is, ignores it
    os.execvp(sys.argv[2], sys.argv[2:])
