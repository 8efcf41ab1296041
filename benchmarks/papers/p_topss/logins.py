"""Logins of two SSH logs, and three patterns on them: `python -m benchmarks.papers.p_topss.logins`.

The logs are not part of the project: they are read where `TIDINGS_DATA` or `../shared/data` has them. Every count is
held to a loop written straight. Nobody who failed three times got in (one log has a single success, the other none), so
the intrusion pattern is also run on a copy with successes planted in it.
"""

from __future__ import annotations

import gzip
import re
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import tidings as td
from tidings.bench.harness.timing import Clock, measure_seconds
from tidings.bench.workloads.real_data import VARIABLE, data_folder
from tidings.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LOGS = {"auth_log_2023_vm.log.gz": 2023, "loghub_OpenSSH_2k.log.gz": 2015}
"""The files, and the year that their lines leave out (of the second it is not known; nothing depends on it)."""

PATTERNS = {
    "intrusion": """
        fail  = status = 'denied'  and ip = $x
        enter = status = 'success' and ip = $x
        f1:fail ; f2:fail ; f3:fail @ t(f3) - t(f1) < 5 min ; enter
    """,
    "brute force": """
        fail = status = 'denied' and ip = $x
        fail{10,} within 1 min
    """,
    "dictionary": """
        root   = status = 'denied' and user = 'root'   and ip = $x
        admin  = status = 'denied' and user = 'admin'  and ip = $x
        ubuntu = status = 'denied' and user = 'ubuntu' and ip = $x
        (root and admin and ubuntu) within 10 min
    """,
}
"""The first is the paper's `CS_intrusion`."""

FAILED = re.compile(r"Failed \w+ for (?:invalid user )?(?P<user>.*?) from (?P<ip>[\d.]+) port")
REPEATED = re.compile(r"message repeated (?P<times>\d+) times: ")
UNKNOWN = re.compile(r"Invalid user (?P<user>.*?) from (?P<ip>[\d.]+)")
LEFT = re.compile(
    r"(?:closed by|reset by|Disconnected from|Disconnecting) authenticating user (?P<user>\S+) (?P<ip>[\d.]+)"
)
ACCEPTED = re.compile(r"Accepted \w+ for (?P<user>\S+) from (?P<ip>[\d.]+)")
LOGOFF = re.compile(r"Received disconnect from (?P<ip>[\d.]+).*: disconnected by user(?P<user>)")

MINUTE = 60
PLANT = 25
"""In the planted copy one in so many failures is followed by a success, in the same second."""


@dataclass(frozen=True, slots=True)
class Login:
    """One login of a log: user, address and outcome; `at` in seconds."""

    at: int
    status: str
    user: str
    ip: str


def read(name: str) -> list[Login]:
    """Return the logins of a log.

    A failure is a `Failed` line. The 2023 log has none, so there it is a user who is not known, or one who is known
    and left before being let in: one line for each connection.
    """
    folder = data_folder()
    path = None if folder is None else folder / "ssh-logins" / name
    if path is None or not path.exists():
        msg = f"there is no `ssh-logins/{name}`; set {VARIABLE} to the folder that has it"
        raise FileError(msg)
    lines = gzip.decompress(path.read_bytes()).decode("utf-8", "replace").splitlines()
    denied = (FAILED,) if any(FAILED.search(line) for line in lines) else (UNKNOWN, LEFT)
    return [login for line in lines for login in parse_line(line, LOGS[name], denied)]


def parse_line(line: str, year: int, denied: tuple[re.Pattern[str], ...]) -> Iterator[Login]:
    """Yield the logins of a line of a log, as often as the line says that it was repeated."""
    kinds = [*((expression, "denied") for expression in denied), (ACCEPTED, "success"), (LOGOFF, "logoff")]
    for pattern, status in kinds:
        if fields := pattern.search(line):
            at = datetime.strptime(f"{year} {line[:15]}", "%Y %b %d %H:%M:%S").replace(tzinfo=UTC)
            times = REPEATED.search(line)
            login = Login(int(at.timestamp()), status, fields["user"], fields["ip"])
            yield from [login] * (int(times["times"]) if times else 1)
            return


def plant_attacks(logins: list[Login]) -> list[Login]:
    """Return a copy in which some failures are followed by a success from the same address."""
    planted_logins, failures = [], 0
    for login in logins:
        planted_logins.append(login)
        failures += login.status == "denied"
        if login.status == "denied" and not failures % PLANT:
            planted_logins.append(Login(login.at, "success", login.user, login.ip))
    return planted_logins


def build_table(logins: list[Login], rounds: int = 1) -> pa.Table:
    """Return the logins as Arrow columns, so many times one after another."""
    times = np.array([login.at for login in logins], np.int64)
    span = int(times[-1] - times[0]) + 86_400
    shifted = np.concatenate([times + turn * span for turn in range(rounds)])
    columns = {name: pa.array([getattr(login, name) for login in logins] * rounds) for name in ("status", "user", "ip")}
    return pa.table(
        {"id": np.arange(len(shifted)), "time": pa.array(shifted).cast(pa.timestamp("s", "UTC")), **columns}
    )


def build_detector() -> td.Detector:
    """Return a detector with the three patterns."""
    detector = td.Detector()
    for name, text in PATTERNS.items():
        detector.add(name, text)
    return detector


# The same, written straight --------------------------------------------------------------------


def count_attacks(logins: Iterable[Login]) -> dict[str, int]:
    """Count the matches of the patterns in the mode `restart`, by a loop over the logins of each address."""
    counts = dict.fromkeys(PATTERNS, 0)
    failures: dict[str, list[int]] = {}  # since the last intrusion
    armed: set[str] = set()
    last: dict[str, deque[int]] = {}  # since the last ten
    named: dict[str, dict[str, int]] = {}  # since the last dictionary
    for login in logins:
        if login.status == "denied":
            mine = failures.setdefault(login.ip, [])
            mine.append(login.at)
            if len(mine) > 2 and login.at - mine[-3] < 5 * MINUTE:
                armed.add(login.ip)
            ten = last.setdefault(login.ip, deque(maxlen=10))
            ten.append(login.at)
            if len(ten) == 10 and login.at - ten[0] <= MINUTE:
                counts["brute force"] += 1
                ten.clear()
            if login.user in ("root", "admin", "ubuntu"):
                users = named.setdefault(login.ip, {})
                users[login.user] = login.at
                if len(users) == 3 and login.at - min(users.values()) <= 10 * MINUTE:
                    counts["dictionary"] += 1
                    users.clear()
        elif login.status == "success" and login.ip in armed:
            counts["intrusion"] += 1
            armed.discard(login.ip)
            failures.pop(login.ip)
    return {name: count for name, count in counts.items() if count}


# Telling ---------------------------------------------------------------------------------------


def format_report(most: int) -> list[str]:
    """Return a line for each log: the matches, whether the loop agrees, and the rate on about `most` events."""
    lines = []
    for name in LOGS:
        logins = read(name)
        for title, some in ((name, logins), (f"{name} with planted successes", plant_attacks(logins))):
            counts = build_detector().detect_many(build_table(some)).by_pattern()
            agrees(title, counts, count_attacks(some))
            summary = ", ".join(f"{key} {count}" for key, count in counts.items()) or "nothing"
            lines.append(f"{title}: {len(some):,} logins of {len({login.ip for login in some}):,} addresses: {summary}")
        lines.append(_measure_rate(name, plant_attacks(logins), most))
    return lines


def agrees(title: str, counts: dict[str, int], right: dict[str, int]) -> None:
    """Refuse a count that the loop does not have."""
    if counts != right:
        msg = f"{title}: the detector finds {counts}, a loop over the logins {right}"
        raise RuntimeError(msg)


def _measure_rate(name: str, logins: list[Login], most: int) -> str:
    rounds = max(1, most // len(logins))
    events, attacks = build_table(logins, rounds), build_detector()
    attacks.detect_many(events.slice(0, 300))
    seconds = measure_seconds(lambda: len(attacks.detect_many(events.slice(300))), Clock.PROCESSOR)
    return f"{name}, {rounds} times over: {(events.num_rows - 300) / seconds:,.0f} logins/s with three patterns"


def main() -> None:
    """Print them."""
    print("\n".join(format_report(500_000)))


if __name__ == "__main__":
    main()
