"""The benchmarks of patterns at tiny sizes: baselines agree, and what differs is not timed."""

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.papers.p_topss import logins, ticks
from benchmarks.papers.p_topss.logins import Login
from benchmarks.patterns import run
from benchmarks.patterns.cases import CASES, draw_abc
from benchmarks.patterns.plain import PlainPatternLoop
from tidings.bench.workloads.composites import uniform_stream
from tidings.errors import Unsupported
from tidings.lang import parse_pattern

LINES = """\
Sep 10 00:05:39 host sshd[1]: Invalid user admin from 10.0.0.1 port 30422
Sep 10 00:05:40 host sshd[2]: Connection closed by authenticating user root 10.0.0.1 port 20778 [preauth]
Sep 10 00:05:41 host CRON[3]: pam_unix(cron:session): session opened for user root by (uid=0)
Sep 10 00:05:42 host sshd[4]: Failed password for invalid user a b from 10.0.0.2 port 36060 ssh2
Sep 10 00:05:43 host sshd[5]: message repeated 3 times: [ Failed password for root from 10.0.0.3 port 1 ssh2]
Sep 10 00:05:44 host sshd[6]: Accepted password for fztu from 10.0.0.4 port 49116 ssh2
"""


@pytest.mark.parametrize("case", [case for case in CASES if case.key != "ten-thousand"], ids=lambda case: case.key)
def test_the_detector_and_the_plain_loop_agree_and_are_measured(case):
    measured = run.measure_case(case.shrink(), repeat=1)
    assert case.title in run.format_row(measured)
    assert measured.plain.median > 0


def test_answers_that_differ_are_not_timed():
    detector, other = run.build_detector(draw_abc(5, 10), "restart"), PlainPatternLoop(draw_abc(4, 10), mode="restart")
    with pytest.raises(RuntimeError, match="differ in 1 patterns"):
        run.check_agreement(CASES[0], detector, other, uniform_stream(2_000, 10, seed=3).table())


def test_the_plain_loop_refuses_what_is_not_a_sequence():
    with pytest.raises(Unsupported, match="`Conjunction`"):
        PlainPatternLoop([parse_pattern("a = x = 1\nb = x = 2\na and b")], mode="restart")


def test_adding_patterns_is_measured(capsys):
    run.measure_compiling(3)
    assert "3 of the paper" in capsys.readouterr().out


# Real data -------------------------------------------------------------------------------------


def parse_lines(denied):
    return [login for line in LINES.splitlines() for login in logins.parse_line(line, 2023, denied)]


def test_failed_lines_are_failures_and_a_repeated_one_counts_so_often():
    logins_read = [(login.status, login.user, login.ip) for login in parse_lines((logins.FAILED,))]
    again = ("denied", "root", "10.0.0.3")
    assert logins_read == [("denied", "a b", "10.0.0.2"), again, again, again, ("success", "fztu", "10.0.0.4")]


def test_without_failed_lines_unknown_users_and_those_who_left_are_failures():
    logins_read = [(login.status, login.user, login.ip) for login in parse_lines((logins.UNKNOWN, logins.LEFT))][:2]
    assert logins_read == [("denied", "admin", "10.0.0.1"), ("denied", "root", "10.0.0.1")]


def test_the_loop_over_logins_finds_what_the_detector_finds():
    users, login_list = ("root", "admin", "ubuntu", "x"), []
    for number in range(3_000):
        at, ip = number * (1 + number % 7), f"10.0.0.{number % 5 * (number % 3)}"
        login_list.append(Login(at, "denied", users[number * number % 4 if number % 11 else number % 4], ip))
    login_list = logins.plant_attacks(sorted(login_list, key=lambda login: login.at))
    detections = logins.build_detector().detect_many(logins.build_table(login_list)).by_pattern()
    assert detections == logins.count_attacks(login_list)
    assert detections.keys() == logins.PATTERNS.keys()


def test_a_count_that_the_loop_does_not_have_is_refused():
    with pytest.raises(RuntimeError, match="a loop over the logins"):
        logins.agrees("log", {"intrusion": 2}, {"intrusion": 1})


def _draw_trades(count):
    rng = np.random.default_rng(1)
    times = pa.array(np.sort(rng.integers(0, count // 2, count))).cast(pa.timestamp("ms"))
    symbols = pa.array(rng.choice(["SPY", "BAC"], count).tolist()).dictionary_encode()
    columns = {"id": np.arange(count), "time": times, "symbol": symbols, "qty": rng.integers(1, 6_000, count)}
    return pa.table(columns)


def test_trades_give_the_same_detections_in_every_batching(monkeypatch):
    monkeypatch.setattr(ticks, "read_trades", lambda _: _draw_trades(3_000))
    monkeypatch.setattr(ticks, "BATCHES", (100, 1_024))
    first, *rates = ticks.format_report(None)
    assert "the same in every batching" in first
    assert all(name in first for name in ("across", "at once", "in a row"))
    assert len(rates) == 3
