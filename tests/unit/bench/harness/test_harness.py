"""The bench as a library: right answers, figures with their spread, comparisons that know noise."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidings as td
from tidings.bench import harness
from tidings.bench.harness import peers, process_memory
from tidings.bench.harness import workload_run as running
from tidings.bench.harness.baselines import MatchPairs, Scan
from tidings.bench.harness.compare import judge_figure
from tidings.bench.harness.timing import time_repeats
from tidings.bench.workloads import workload
from tidings.kernels import baselines as kernels

SMALL = harness.Settings(events=8, repeat=2, budget_s=0.2, memory=False)


def build_figure(*repeats, unit="us"):
    return harness.Figure(unit, repeats)


def build_result(subject="engine", role=harness.Role.MATCHER, n=1000, **figures):
    return harness.Result("ranges", n, subject, role, 32, figures)


# Kernels -----------------------------------------------------------------------------------------

numbers = st.sampled_from([-np.inf, 0.0, 1.0, 2.0, 3.0, np.inf])
intervals = st.tuples(numbers, numbers)
literals = st.tuples(st.integers(0, 2), st.lists(intervals, min_size=1, max_size=3))
rows = st.lists(st.lists(literals, max_size=3), max_size=6)
cells = st.lists(st.sampled_from([0.0, 1.0, 1.5, 3.0, np.nan]), min_size=3, max_size=3)


@given(rows, cells)
def test_the_scans_find_what_a_naive_twin_finds(table, event):
    flat = [literal for row in table for literal in row]
    starts = np.cumsum([0, *map(len, table)]).astype(np.int64)
    columns = np.array([column for column, _ in flat], np.int32)
    parts = np.cumsum([0, *(len(several) for _, several in flat)]).astype(np.int64)
    ends = np.array([interval for _, several in flat for interval in several]).reshape(-1, 2)
    out = np.empty(len(table), np.int32)
    count = kernels.scan_sets(starts, columns, parts, ends[:, 0].copy(), ends[:, 1].copy(), np.array(event), out)
    right = [
        at
        for at, row in enumerate(table)
        if all(any(low <= event[column] <= high for low, high in several) for column, several in row)
    ]
    assert out[:count].tolist() == right
    if all(len(several) == 1 for _, several in flat):
        count = kernels.scan(starts, columns, ends[:, 0].copy(), ends[:, 1].copy(), np.array(event), out)
        assert out[:count].tolist() == right


def test_writing_pairs_names_each_event_and_row():
    events, copied = kernels.write_pairs(np.array([0, 2, 2, 3]), np.array([5, 7, 6], np.int32))
    assert (events.tolist(), copied.tolist()) == ([0, 0, 2], [5, 7, 6])
    assert MatchPairs(np.array([0, 2, 2, 3]), copied).counts.tolist() == [2, 0, 1]


# Peers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["numpy", "duckdb", "mokaccino"])
@pytest.mark.parametrize("key", ["equalities:attributes=4,values=5", "ranges:wanted=2,attributes=4"])
def test_peers_find_what_the_scan_finds(name, key):
    pytest.importorskip(name)
    chosen = workload(key)
    columns, events = chosen.columns(300, 1), chosen.events(20, 1)
    peer, scan = peers.PEERS[name](columns), Scan(columns)
    right = scan.count_matches(scan.prepare_events(events))
    assert right.sum() > 20
    assert peer.count_matches(peer.prepare_events(events)).tolist() == right.tolist()


def test_peers_get_the_searches_without_an_area():
    columns = workload("classifieds").columns(2000, 1)
    expressible = peers.select_expressible(columns)
    assert "spot_within" not in expressible.column_names
    assert expressible.num_rows == columns.column("spot_within").null_count < 2000


# Runs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "judge"),
    [("equalities", "scan"), ("classifieds", "scan"), ("text", "every expression"), ("concepts:height=1", "law")],
)
def test_a_run_measures_the_matcher_beside_its_baseline(key, judge):
    results = harness.bench(key, [200], kinds=["brute"], settings=SMALL)
    mine = results[0]
    assert (mine.subject, mine.role, mine.n) == ("brute", harness.Role.MATCHER, 200)
    assert {"single", "batch", "to_arrow", "matches", "insert", "delete"} <= mine.figures.keys()
    assert any(name.startswith("build_") for name in mine.figures)
    assert mine.ratios[judge] > 0
    assert ("write" in mine.ratios) == (key == "classifieds")


def test_several_sizes_and_matchers_give_a_table_each():
    settings = replace(SMALL, peers=False)
    results = harness.bench("equalities", [50, 100], kinds=["brute", None], settings=settings)
    tables = harness.group_by_size(results)
    assert list(tables) == [50, 100]
    assert [len(some) for some in tables.values()] == [3, 3]
    assert "batch / event" in harness.format_plain(harness.build_table(tables[50]))


def test_a_wrong_answer_ends_the_run(monkeypatch):
    honest = Scan.find_rows
    monkeypatch.setattr(Scan, "find_rows", lambda self, cells: honest(self, cells)[1:])
    settings = replace(SMALL, peers=False)
    with pytest.raises(td.TidingsError, match="`brute` and `scan` disagree"):
        harness.bench("classifieds", [800], kinds=["brute"], settings=settings)


def test_a_wrong_answer_to_a_sample_ends_the_run(monkeypatch):
    monkeypatch.setattr(running.Law, "count_matches", lambda _, events: np.full(len(events), 10**6))
    with pytest.raises(td.TidingsError, match="`brute` and `law` disagree"):
        harness.bench("concepts:height=1", [60], kinds=["brute"], settings=SMALL)


def test_a_peer_that_is_wrong_is_told_and_not_believed(monkeypatch):
    monkeypatch.setattr(peers.NumpyPeer, "count_matches", lambda _, prepared: np.full(len(prepared), 7))
    monkeypatch.setattr(peers, "is_installed", lambda name: name == "numpy")
    results = harness.bench("equalities", [60], kinds=["brute"], settings=SMALL)
    assert "wrong on 8 of 8 events" in results[-1].note
    assert not results[-1].right
    assert list(results[0].ratios) == ["scan"]


def test_an_unknown_matcher_is_refused():
    with pytest.raises(td.TidingsError, match="unknown matcher `swift`"):
        harness.bench("equalities", [50], kinds=["swift"], settings=replace(SMALL, peers=False))


@pytest.mark.skipif(not process_memory.STATUS.exists(), reason="the system does not tell a process's memory")
def test_memory_grows_with_the_subscriptions():
    few, many = (process_memory.measure_matcher_memory("equalities", n, kind="brute", seed=1) for n in (2000, 8000))
    assert 100 < (many.whole - few.whole) / 6000 < 20_000
    assert many.ids == sum(len(f"s{number}") for number in range(8000))


# Figures -----------------------------------------------------------------------------------------


def test_a_figure_has_a_median_and_a_spread():
    assert (build_figure(1, 2, 9).median, build_figure(1, 2, 9).spread) == (2, 2.0)
    assert build_figure(3).spread == 0


def test_repeats_end_when_the_budget_is_spent():
    done = []
    assert len(time_repeats(lambda: done.append(1), repeat=4, budget_s=10)) == 4
    assert len(done) == 5
    assert len(time_repeats(lambda: done.append(1), repeat=4, budget_s=0, warm_up=False)) == 1


@pytest.mark.parametrize(
    ("name", "before", "after", "verdict"),
    [
        ("batch", (10, 11, 12), (11, 12, 13), "noise"),
        ("batch", (10, 11, 12), (5, 6, 7), "faster"),
        ("batch", (10, 11, 12), (20, 21, 22), "slower"),
        ("batch", (100, 100.1, 100.2), (101, 101.1, 101.2), "noise"),
        ("build_text", (10,), (10.5,), "noise"),
        ("build_text", (10,), (20,), "slower"),
        ("bytes", (100,), (60,), "smaller"),
        ("bytes", (100,), (200,), "larger"),
        ("matches", (5,), (5,), "same"),
        ("matches", (5,), (6,), "different"),
    ],
)
def test_a_change_is_told_from_noise(name, before, after, verdict):
    assert judge_figure(name, build_figure(*before), build_figure(*after)) == verdict


def test_only_what_both_runs_have_is_compared():
    before = [
        build_result(batch=build_figure(10, 11), single=build_figure(5, 6)),
        build_result("brute", batch=build_figure(1)),
    ]
    after = [build_result(batch=build_figure(1, 2), insert=build_figure(5))]
    (change,) = harness.compare_results(before, after)
    assert (change.subject, change.figure, change.verdict) == ("engine", "batch", harness.Verdict.FASTER)
    assert change.to_dict()["ratio"] == pytest.approx(1.5 / 10.5)


# Files -------------------------------------------------------------------------------------------


def test_results_are_written_and_read_back(tmp_path):
    results = [
        build_result(batch=build_figure(1.0, 2.0)),
        build_result("scan", harness.Role.BASELINE, batch=build_figure(5.0)),
    ]
    run = harness.describe_run("tidings bench run ranges")
    harness.write_results(results, tmp_path / "new" / "r.jsonl", run=run)
    assert harness.read_results(tmp_path / "new" / "r.jsonl") == results
    line = json.loads((tmp_path / "new" / "r.jsonl").read_text().splitlines()[0])
    assert {"machine", "date", "command", "version"} <= line["run"].keys()


@pytest.mark.parametrize("text", ["nonsense", '{"a": 1}', "[]"])
def test_another_file_is_refused(tmp_path, text):
    (tmp_path / "r.jsonl").write_text(text)
    with pytest.raises(td.TidingsError, match="not a file of results"):
        harness.read_results(tmp_path / "r.jsonl")


def test_plots_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    results = [
        build_result(n=n, batch=build_figure(n / 10))
        if who == "engine"
        else build_result(who, harness.Role.PEER, n=50, batch=build_figure(9.0))
        for n in (100, 1000)
        for who in ("engine", "numpy")
    ]
    paths = harness.plot_results(results, tmp_path, "ranges")
    assert [path.name for path in paths] == ["ranges-bars.png", "ranges-sizes.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)


def test_the_bench_is_imported_without_its_extras():
    program = "import sys, tidings.bench.harness; print({'duckdb', 'mokaccino', 'matplotlib'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"
