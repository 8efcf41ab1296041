"""A page of the guide run in one shell against a service of its own: each command, and what it printed."""

import os
import re
import subprocess
import sys
import time

MARK = "=== that was it ==="
EXAMPLE = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)

PATIENCE_S = 60
"""How long a match may take to be there; builds run several things at once."""


def list_blocks(page):
    """Return the console blocks of a page."""
    return re.findall(r"```console\n(.*?)```", page, re.DOTALL)


def list_examples(page):
    """Return pairs of a command and the output that the page shows."""
    return [example for block in list_blocks(page) for example in EXAMPLE.findall(block)]


def make_timeless(text):
    """Return an output without what differs from run to run: times, ids and keys that the service makes."""
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)", "TIME", text)
    text = re.sub(r"key-[0-9a-f]{12}", "KEY", text)
    return re.sub(r"\b[0-9a-f]{24}\b", "M" * 24, text)


class GuideShell:
    """A bash in a folder, in which `tidings` is this checkout's, and the service has another port than on the page."""

    def __init__(self, folder, port):
        self._port = port
        clean = {name: value for name, value in os.environ.items() if not name.startswith("TIDINGS_")}
        clean["TIDINGS_URL"] = f"http://127.0.0.1:{port}"
        self._shell = subprocess.Popen(
            ["bash"],
            cwd=folder,
            env=clean,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.run(f'tidings() {{ "{sys.executable}" -m tidings "$@"; }}')

    def run(self, command):
        """Return what a command prints, messages after results."""
        command = command.replace("127.0.0.1:8080", f"127.0.0.1:{self._port}")
        self._shell.stdin.write(f"{{ {command}\n}} 2> .messages; cat .messages; echo; echo '{MARK}'\n")
        self._shell.stdin.flush()
        lines = []
        while (line := self._shell.stdout.readline()) and line != f"{MARK}\n":
            lines.append(line)
        output = "".join(lines).rstrip("\n")
        return f"{output}\n".replace(f"127.0.0.1:{self._port}", "127.0.0.1:8080") if output else ""

    def follow(self, command, expected):
        """Return what a command prints; one that reads what the pipeline finds is repeated until it is as expected."""
        until = time.monotonic() + PATIENCE_S
        while True:
            output = self.run(command)
            waits = re.search(r"matches\b|why\?|:estimate|stream\?", command)
            if not waits or make_timeless(output) == make_timeless(expected) or time.monotonic() > until:
                return output
            time.sleep(0.2)

    def close(self):
        """End the shell."""
        self._shell.stdin.close()
        self._shell.wait(10)
        self._shell.stdout.close()
