"""The scoreboard: work in a process of its own, answers held to the engine's, entries that are shown as they ended."""

import json
import os
import signal
import sys
import time

import numpy as np
import pytest

from benchmarks.scoreboard import entries as board
from benchmarks.scoreboard import run as scoreboard
from benchmarks.scoreboard.entrants import AlgorithmEntrant, EngineEntrant, bind_workload
from benchmarks.scoreboard.forked_process import READY, Ending, compute_allowance, run_forked
from benchmarks.scoreboard.measure_entrant import compare_answers, measure_entrant
from tidings.bench.harness.measure import Settings
from tidings.bench.harness.process_memory import read_status
from tidings.bench.harness.results import Role
from tidings.bench.workloads import workload
from tidings.errors import FileError, Unsupported
from tidings.matcher.brute import Brute
from tidings.matcher.registry import ALGORITHMS

TINY = Settings(events=8, repeat=2, budget_s=5.0, checked=4)


# A process of its own ----------------------------------------------------------------------------


def test_work_sees_what_lies_in_memory_and_sends_home():
    words = ["only", "here"]
    came = run_forked(lambda send: send({"seen": words, "pid": os.getpid()}), budget_s=5)
    assert came.ended is Ending.DONE
    assert came.messages[0]["seen"] == words
    assert came.messages[0]["pid"] != os.getpid()


def test_work_is_stopped_at_its_budget_and_what_it_sent_is_kept():
    def work(send):
        send(READY)
        send("built")
        time.sleep(60)

    begin = time.monotonic()
    came = run_forked(work, budget_s=0.3)
    assert (came.ended, came.messages, came.reason) == (Ending.OVER, ("built",), "over 0.3 s")
    assert time.monotonic() - begin < 10


def test_the_budget_is_processor_time_so_that_waiting_for_others_costs_little():
    def work(send):
        send(READY)
        time.sleep(0.6)  # a busy machine does that to work
        send("done after all")

    def keep_busy(send):
        send(READY)
        while True:
            pass

    assert run_forked(work, budget_s=0.4).messages == ("done after all",)
    assert run_forked(keep_busy, budget_s=0.4).ended is Ending.OVER


@pytest.mark.skipif(not read_status("VmSize"), reason="the system does not tell")
def test_work_that_takes_too_much_memory_does_not_fit():
    came = run_forked(lambda send: send(len(np.ones(2**27))), budget_s=20, memory=2**28)  # a gibibyte of a quarter
    assert came.ended is Ending.MEMORY
    assert "0.2 GiB" in came.reason or "0.3 GiB" in came.reason


def test_work_that_refuses_fails_or_dies_is_told_apart():
    def refuse(send):
        msg = "`hem` has no areas"
        raise Unsupported(msg, kind="hem", part="area")

    def raise_error(send):
        return {}["a mistake"]

    def kill_itself(send):
        os.kill(os.getpid(), signal.SIGKILL)

    def crash_itself(send):
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)  # pytest listens for it
        os.kill(os.getpid(), signal.SIGSEGV)

    runs = [run_forked(work, budget_s=5) for work in (refuse, raise_error, kill_itself, crash_itself)]
    assert [run.ended for run in runs] == [Ending.CANNOT, Ending.FAILED, Ending.MEMORY, Ending.DIED]
    assert runs[0].reason == "`hem` has no areas"
    assert runs[1].reason.strip().endswith("KeyError: 'a mistake'")
    assert "SIGKILL" in runs[2].reason
    assert "SIGSEGV" in runs[3].reason  # an index out of bounds, say, and no lack of memory
    assert "memory" not in runs[3].reason


def test_an_allowance_is_never_more_than_was_said():
    assert compute_allowance(2**31) <= 2**31
    assert compute_allowance() >= 2**30


# Measuring ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["hem:m=2", "classifieds", "concepts:height=2", "text"])
def test_bound_filters_and_readings_give_the_engines_answers(key):
    chosen = workload(key)
    subscriptions = chosen.subscriptions(300, 1)
    subscriptions = subscriptions if chosen.make_columns else list(subscriptions)
    events = chosen.events(8, 1)
    ready = bind_workload(chosen, subscriptions, events)
    assert len(ready.filters) == 300
    answers = []
    for entrant in (
        EngineEntrant(chosen, subscriptions, events),
        EngineEntrant(chosen, subscriptions, events, ready),
        AlgorithmEntrant("brute", ready),
    ):
        sent = []
        measure_entrant(entrant, 300, TINY, send=sent.append)
        assert sent[0] == READY
        assert sent[1]["build_s"] > 0
        assert (sent[2]["events"], len(sent[2]["batch"])) == (8, 2)
        answers.append([sorted(ids) for ids in sent[2]["answers"]])
    assert answers[0] == answers[1] == answers[2]
    assert len(answers[0]) == TINY.checked


def test_answers_are_compared_as_sets_of_ids():
    right = [frozenset("ab"), frozenset("c")]
    assert compare_answers([["b", "a"], ["c"]], right, approximate=False).wrong == 0
    same_count = compare_answers([["a", "x"], ["c"]], right, approximate=False)
    assert (same_count.wrong, same_count.example) == (1, "event 0 lacks b and has x too many")
    assert compare_answers([["a", "b", "b"]], right, approximate=False).example == "event 0 has ids twice"
    assert compare_answers([2, 2], right, approximate=False).example == "event 1 has 2 matches, not 1"


def test_an_approximate_answer_may_have_more_and_never_less():
    right = [frozenset("ab")]
    more = compare_answers([["a", "b", "c", "d"]], right, approximate=True)
    assert (more.wrong, more.extra) == (0, 0.5)
    assert compare_answers([["a", "c"]], right, approximate=True).wrong == 1


# Entries -----------------------------------------------------------------------------------------


def build_entry(who="engine", n=1000, ended=Ending.DONE, role=Role.MATCHER, **fields):
    fields = {"asked": n, "budget_s": 60.0, "batch": (9.0, 10.0, 11.0), "checked": 64, "build_s": 1.5, **fields}
    return board.Entry("hem", n, who, role, ended, **fields)


@pytest.mark.parametrize(
    ("entry_shown", "words"),
    [
        (build_entry(), "10 +-10%"),
        (build_entry(ended=Ending.OVER), "over 60 s"),
        (build_entry(ended=Ending.MEMORY), "does not fit"),
        (build_entry(ended=Ending.CANNOT), "cannot"),
        (build_entry(ended=Ending.FAILED), "failed"),
        (build_entry(wrong=3), "WRONG (3 of 64 events)"),
        (build_entry(approximate=True, extra=0.25), "10 +-10% (25.0% too many)"),
        (build_entry(asked=900), "10 +-10% (of 900)"),
        (build_entry(checked=0), "10 +-10% (unchecked)"),
    ],
)
def test_an_entry_is_shown_as_it_ended(entry_shown, words):
    assert board.format_outcome(entry_shown) == words


@pytest.mark.parametrize("fields", [{"wrong": 1}, {"ended": Ending.FAILED}, {"ended": Ending.DIED}])
def test_a_matcher_that_is_wrong_fails_or_crashes_is_a_mistake_and_a_peer_is_not(fields):
    assert build_entry("hem", **fields).is_bad
    assert not build_entry("duckdb", role=Role.PEER, **fields).is_bad
    assert not any(
        build_entry(ended=ended).is_bad for ended in (Ending.OVER, Ending.MEMORY, Ending.CANNOT, Ending.DONE)
    )


def test_a_table_has_a_row_for_each_and_four_columns_for_each_size():
    slow = build_entry("slow", batch=(50.0,), bytes=2000)
    rows = board.build_workload_table(
        [build_entry(), slow, build_entry(n=10_000), build_entry("slow", 10_000, Ending.OVER, build_s=None)]
    )
    assert rows[0][:5] == ["", "1k: us an event", "x engine", "build s", "B / sub"]
    assert rows[2] == ["slow", "50", "5x", "1.5", "2", "over 60 s", "", "", ""]
    assert board.build_summary([build_entry(n=10_000), slow, build_entry("slow", 10_000, Ending.OVER)])[2] == [
        "slow",
        "50 at 1k",
    ]


def test_entries_are_read_back_the_last_of_each_and_not_the_one_cut_off(tmp_path):
    path = tmp_path / "entries.jsonl"
    lines = [build_entry(batch=(1.0,)).to_json(), build_entry("hem").to_json(), build_entry(batch=(2.0,)).to_json()]
    path.write_text("\n".join(lines) + '\n{"workload": "he')
    assert [(entry.who, entry.batch[0]) for entry in board.read_entries(path)] == [("engine", 2.0), ("hem", 9.0)]
    path.write_text("nonsense\n" + lines[0])
    with pytest.raises(FileError, match="line 1"):
        board.read_entries(path)


# The whole ---------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the scoreboard on one tiny workload, and return its exit code and its entries."""

    def go(*options, kinds="brute"):
        arguments = ["--quick", "--workloads", "hem:m=2", "--sizes", "200", "--kinds", kinds, "--out", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", ["scoreboard", *arguments, *options])
        code = scoreboard.main()
        board_written = json.loads((tmp_path / "scoreboard" / "scoreboard.json").read_text())
        return code, {entry_read["who"]: entry_read for entry_read in board_written["entries"]}

    return go


class Liar(Brute):
    """Forgets one id of each event."""

    def match_many(self, readings, setting):
        return [ids[1:] for ids in super().match_many(readings, setting)]


class Generous(Brute):
    """Has one id too many, and says so."""

    approximate = True

    def match_many(self, readings, setting):
        return [list(dict.fromkeys([*ids, "s0"])) for ids in super().match_many(readings, setting)]


class Slow(Brute):
    """Takes its time with all but the first filters."""

    def add_many(self, filters):
        filters = list(filters)
        time.sleep(60 if len(filters) > 150 else 0)
        super().add_many(filters)


class Picky(Brute):
    """Cannot express anything."""

    def compile_filter(self, tree):
        del tree
        msg = "`picky` has no ranges"
        raise Unsupported(msg, kind="picky", part="range")


def test_a_matcher_that_is_wrong_is_shown_and_fails_the_run(run, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(ALGORITHMS, "liar", lambda _: Liar())
    code, entries = run(kinds="brute,liar")
    assert code == 1
    assert (entries["brute"]["wrong"], entries["brute"]["checked"]) == (0, 32)
    wrong = entries["liar"]["wrong"]  # an event that nobody hears of has no id to forget
    assert 25 < wrong <= 32
    assert f"WRONG ({wrong} of 32 events)" in (tmp_path / "scoreboard.md").read_text()
    assert f"`liar` on `hem:m=2`, 200: WRONG ({wrong} of 32 events); event 0 lacks" in capsys.readouterr().err


def test_what_is_refused_too_slow_or_approximate_fails_nothing(run, monkeypatch, tmp_path):
    for name, algorithm_class in {"picky": Picky, "slow": Slow, "generous": Generous}.items():
        monkeypatch.setitem(ALGORITHMS, name, lambda _, algorithm_class=algorithm_class: algorithm_class())
    code, entries = run("--budget", "1", kinds="picky,slow,generous")
    assert code == 0
    assert (entries["picky"]["ended"], entries["picky"]["reason"]) == ("cannot", "`picky` has no ranges")
    assert entries["slow"]["ended"] == "over its time"
    assert entries["generous"]["wrong"] == 0
    assert 0 < entries["generous"]["extra"] < 0.1
    page = (tmp_path / "scoreboard.md").read_text()
    assert "over 1 s" in page
    assert "`picky` at 200, cannot: `picky` has no ranges" in page


def test_a_run_is_resumed_where_it_was(run, capsys):
    run()
    code, entries = run("--resume", kinds="brute,numpy")
    assert code == 0
    output = capsys.readouterr().err
    assert "[1/2] hem:m=2, 200: engine" in output  # whose answers the others are held to
    assert "[2/2] hem:m=2, 200: numpy" in output
    assert set(entries) == {"engine", "brute", "numpy"}
    code, _ = run("--resume", kinds="brute,numpy")
    assert "[1/" not in capsys.readouterr().err
    run("--resume", "--again", "numpy", kinds="brute,numpy")
    assert "[2/2] hem:m=2, 200: numpy" in capsys.readouterr().err


def test_an_old_run_is_kept_when_a_new_one_begins(run, tmp_path):
    run()
    run()
    assert (tmp_path / "scoreboard.old.jsonl").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--workloads", "rangs"), "unknown workload `rangs`; did you mean `ranges`?"),
        (("--kinds", "brut"), "unknown matcher `brut`; did you mean `brute`?"),
        (("--report",), "there is nothing to show"),
    ],
)
def test_what_cannot_be_done_is_refused(monkeypatch, tmp_path, capsys, options, message):
    monkeypatch.setattr(sys, "argv", ["scoreboard", "--quick", "--out", str(tmp_path), *options])
    assert scoreboard.main() == 1
    assert message in capsys.readouterr().err
