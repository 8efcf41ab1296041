"""How a pipeline tells of itself: the view, lines of text, JSON lines, metrics, and what Spark's progress adds."""

import io
import json
import socket
import sys
import urllib.request
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from tidings.errors import CannotServe, FileError, TidingsError
from tidings.spark.pipeline.config.settings import MonitorSettings
from tidings.spark.pipeline.monitor.batch_report import BatchReport, compute_lag, count_duplicates
from tidings.spark.pipeline.monitor.json_lines import JsonLines
from tidings.spark.pipeline.monitor.listeners import MonitorGroup, open_monitor
from tidings.spark.pipeline.monitor.live_view import LiveView, describe_lag
from tidings.spark.pipeline.monitor.metrics import Metrics
from tidings.spark.pipeline.monitor.text_log import PlainText

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def from_dict(fields):
    """Return the report of a `to_dict`; other fields are ignored."""
    values = {name: fields[name] for name in BatchReport.__dataclass_fields__ if name in fields}
    return BatchReport(
        **{**values, "mismatches": tuple(fields["mismatches"]), "started": datetime.fromisoformat(fields["started"])}
    )


def report(batch=12, **about):
    fields = {"pipeline": "cars", "started": NOON, "seconds": 2.0, "events": 1000, "matches": 50}
    return BatchReport(**{**fields, "subscriptions": 12345, "version": 7, **about, "batch": batch})


def screen(width=72, **about):
    return Console(file=io.StringIO(), width=width, highlight=False, **about)


def words(console):
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


class SteppedClock:
    """A clock that a test moves."""

    def __init__(self, at=NOON):
        self.at = at

    def __call__(self):
        return self.at


# --- reports -------------------------------------------------------------------------------------

counts = st.integers(0, 10**12)
reports = st.builds(
    BatchReport,
    pipeline=st.text(max_size=8),
    batch=counts,
    started=st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-3, minutes=-30))])),
    seconds=st.floats(0, 1e6),
    events=counts,
    matches=counts,
    dead_letters=counts,
    late=counts,
    version=counts | st.text(max_size=8),
    lag=st.dictionaries(st.text(max_size=5), counts, max_size=3),
    files_behind=st.none() | counts,
)


def test_rates_are_of_the_batch_and_a_batch_without_time_has_none():
    fields = report().to_dict()
    assert (fields["events_per_second"], fields["matches_per_second"]) == (500, 25)
    assert report(seconds=0.0).to_dict()["events_per_second"] == 0
    assert report().finished_at == NOON + timedelta(seconds=2)


@given(st.lists(reports, max_size=4))
def test_json_lines_are_parsed_back_equal(tmp_path_factory, reports):
    path = tmp_path_factory.mktemp("lines") / "progress.jsonl"
    lines = JsonLines(str(path), now=SteppedClock())
    for report in reports:
        lines.report(report)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]  # before it is closed
    lines.close()
    assert [from_dict(report) for report in rows] == reports
    assert all((report["kind"], report["at"]) == ("batch", "2026-03-01T12:00:00+00:00") for report in rows)
    assert [report["events_per_second"] for report in rows] == [
        report.to_dict()["events_per_second"] for report in reports
    ]


def test_fields_of_a_newer_version_are_left_out_when_lines_are_read():
    assert from_dict({**report().to_dict(), "kind": "batch", "mood": "fine"}) == report()


# --- JSON lines ----------------------------------------------------------------------------------


def test_a_file_of_lines_is_added_to_and_a_line_cut_short_by_a_crash_is_ended(tmp_path):
    path = tmp_path / "progress.jsonl"
    path.write_text('{"kind":"status"}\n{"kind":"ba')
    lines = JsonLines(str(path), now=SteppedClock())
    lines.show_status("running")
    lines.warn("tight")
    lines.close()
    first, torn, *rest = path.read_text().splitlines()
    assert (first, torn) == ('{"kind":"status"}', '{"kind":"ba')
    at = "2026-03-01T12:00:00+00:00"
    assert [json.loads(line) for line in rest] == [
        {"kind": "status", "at": at, "text": "running"},
        {"kind": "warning", "at": at, "text": "tight"},
    ]


def test_a_file_that_cannot_be_written_is_a_clear_error(tmp_path):
    with pytest.raises(FileError, match=r"cannot write JSON lines to `.*`: Is a directory"):
        JsonLines(str(tmp_path))


# --- Prometheus ----------------------------------------------------------------------------------


def scrape_metrics(metrics):
    """What a scrape over loopback finds: {name: {labels: value}} without the label that all have."""
    address = f"http://127.0.0.1:{metrics.port}/metrics"
    with urllib.request.urlopen(address, timeout=10) as answer:
        families = text_string_to_metric_families(answer.read().decode())
        samples = [sample for family in families for sample in family.samples]
    values = {}
    for sample in samples:
        labels = tuple(value for name, value in sorted(sample.labels.items()) if name != "pipeline")
        values.setdefault(sample.name, {})[labels] = sample.value
    return values


def test_metrics_are_counters_gauges_and_a_histogram():
    metrics = Metrics("127.0.0.1:0", name="cars")
    try:
        assert scrape_metrics(metrics)["tidings_events_total"] == {(): 0}
        metrics.report(report(11, dead_letters=3, lag={"ads-0": 5, "ads-1": 7}, version=6))
        metrics.report(report(12, dead_letters=1, lag={"ads-1": 2}, seconds=0.2, late=4, duplicates=2, changes=9))
        metrics.warn("tight")
        scrape = scrape_metrics(metrics)
    finally:
        metrics.close()
    totals = {name: scrape[f"tidings_{name}_total"][()] for name in ("events", "matches", "dead_letters", "late")}
    assert totals == {"events": 2000, "matches": 100, "dead_letters": 4, "late": 4}
    assert (scrape["tidings_duplicates_total"], scrape["tidings_changes_total"]) == ({(): 2}, {(): 9})
    assert scrape["tidings_warnings_total"] == {(): 1}
    assert (scrape["tidings_batch"], scrape["tidings_version"]) == ({(): 12}, {(): 7})
    assert scrape["tidings_subscriptions"] == {(): 12345}
    assert scrape["tidings_lag_records"] == {("ads-1",): 2}  # a partition that is gone is not shown for ever
    assert "tidings_files_behind" not in scrape
    assert scrape["tidings_batch_seconds_count"] == {(): 2}
    assert scrape["tidings_batch_seconds_bucket"][("0.25",)] == 1
    assert scrape["tidings_last_batch_timestamp_seconds"] == {(): (NOON + timedelta(seconds=0.2)).timestamp()}


def test_a_version_that_is_text_is_no_metric():
    metrics = Metrics("127.0.0.1:0", name="cars")
    try:
        metrics.report(report(version="a1b2"))
        assert "tidings_version" not in scrape_metrics(metrics)
    finally:
        metrics.close()


def test_a_port_in_use_is_a_clear_error_and_a_closed_one_is_free_again():
    with socket.create_server(("127.0.0.1", 0)) as socket_in_use:
        address = f"127.0.0.1:{socket_in_use.getsockname()[1]}"
        with pytest.raises(CannotServe, match=rf"at `{address}`: Address already in use; give `metrics` another"):
            Metrics(address, name="cars")
    first = Metrics("127.0.0.1:0", name="cars")
    first.close()
    Metrics(f"127.0.0.1:{first.port}", name="cars").close()


@pytest.mark.parametrize("address", ["127.0.0.1:port", "127.0.0.1", "no-such-host.invalid:1", "127.0.0.1:99999"])
def test_an_address_that_is_none_is_a_clear_error(address):
    with pytest.raises(CannotServe, match="metrics cannot be served at"):
        Metrics(address, name="cars")


# --- for people ----------------------------------------------------------------------------------


def view_of(reports, *, at, warnings=(), status="running"):
    """The view's last frame as lines."""
    clock, console = SteppedClock(), screen()
    view = LiveView(console, name="cars", now=clock)
    view.show_status(status)
    for report in reports:
        view.report(report)
    clock.at = at
    for text in warnings:
        view.warn(text)
    view.close()
    return words(console)


def test_the_view_shows_rates_totals_lag_and_warnings():
    lag = {"ads-0": 40, "ads-1": 1200, "ads-2": 0, "ads-3": 7, "ads-4": 6}
    reports = [
        report(11, dead_letters=3, changes=5),
        report(12, started=NOON + timedelta(seconds=8), lag=lag, late=1, duplicates=2, over_limit=4, files_behind=8),
    ]
    lines = view_of(reports, at=NOON + timedelta(seconds=10), warnings=["a change of `s1` was refused"])
    assert lines == [
        "╭─ cars ───────────────────────────────────────────────────────────────╮",
        "│ events/s           200   events           2,000                      │",
        "│ matches/s           10   matches            100                      │",
        "│ subscriptions   12,345   version              7                      │",
        "│ changes              5   refused              0                      │",
        "│ dead letters         3   late                 1                      │",
        "│ duplicates           2   over the limit       4                      │",
        "│ behind 1,253 records: ads-1 1,200, ads-0 40, ads-3 7, 6 in 1 more    │",
        "│ behind 8 files                                                       │",
        "│ 12:00:10 a change of `s1` was refused                                │",
        "╰────────────── running for 0:00:10, batch 12 took 2.0 s ──────────────╯",
    ]


def test_rates_are_those_of_the_last_minute_and_fall_when_nothing_comes():
    old = report(1, events=10**6)
    new = report(2, started=NOON + timedelta(seconds=90), events=600)
    lines = view_of([old, new], at=NOON + timedelta(seconds=100))
    assert "events/s            10 " in lines[1]  # 600 in a minute, though the batch took two seconds
    assert "events           1,000,600 " in lines[1]
    later = view_of([old, new], at=NOON + timedelta(seconds=200))
    assert "events/s             0 " in later[1]


def test_the_view_before_the_first_batch_says_what_is_being_done():
    lines = view_of([], at=NOON + timedelta(seconds=3661), status="starting Spark")
    assert "starting Spark for 1:01:01" in lines[-1]


def test_only_the_last_warnings_stay_and_markup_in_them_is_text():
    lines = view_of([], at=NOON, warnings=[f"[red]number {n}" for n in range(5)])
    assert [line.strip("│ ") for line in lines[1:-1]] == [f"12:00:00 [red]number {n}" for n in (2, 3, 4)]


def test_the_worst_partitions_are_named():
    assert describe_lag({}) == "0 records"
    assert describe_lag({"a-0": 0}) == "0 records"
    assert describe_lag({f"a-{n}": n for n in range(6)}) == "15 records: a-5 5, a-4 4, a-3 3, 3 in 2 more"


def test_lines_of_text_sum_up_the_batches_since_the_last_one():
    clock, console = SteppedClock(0.0), screen(40)
    plain = PlainText(console, every=5, clock=clock)
    plain.show_status("running")
    plain.report(report(1))
    for batch, at in ((2, 1.0), (3, 4.0)):
        clock.at = at
        plain.report(report(batch, dead_letters=2))
    plain.warn("tight")
    clock.at = 5.0
    plain.report(report(4, lag={"ads-0": 3, "ads-1": 4}, files_behind=1))
    plain.report(report(5))
    plain.close()
    assert words(console) == [
        "running",
        "batch 1: 1,000 events in 2.0 s (500/s), 50 matches, 12,345 subscriptions (version 7)",
        "warning: tight",
        "batches 2-4: 3,000 events in 6.0 s (500/s), 150 matches, 4 dead letters, "
        "12,345 subscriptions (version 7), 7 records behind, 1 files behind",
        "batch 5: 1,000 events in 2.0 s (500/s), 50 matches, 12,345 subscriptions (version 7)",
    ]


# --- all together --------------------------------------------------------------------------------


def kinds(watch):
    watch.close()
    return [type(monitor).__name__ for monitor in watch.monitors]


def test_what_is_asked_for_is_put_together(tmp_path):
    lines = str(tmp_path / "lines.jsonl")
    assert kinds(open_monitor(MonitorSettings(), name="cars", console=screen())) == ["PlainText"]
    assert kinds(open_monitor(MonitorSettings(), name="cars", console=screen(force_terminal=True))) == ["LiveView"]
    assert kinds(open_monitor(MonitorSettings(view="on"), name="cars", console=screen())) == ["LiveView"]
    every = MonitorSettings(view="on", lines=lines, metrics="127.0.0.1:0")
    assert kinds(open_monitor(every, name="cars", console=screen())) == ["Metrics", "JsonLines", "LiveView"]


def test_without_a_view_only_warnings_are_told_and_on_standard_error(capsys):
    console = screen()
    watch = open_monitor(MonitorSettings(view="off"), name="cars", console=console)
    watch.show_status("running")
    watch.report(report())
    watch.warn("tight")
    watch.close()
    assert words(console) == []
    assert capsys.readouterr() == ("", "warning: tight\n")


def test_lines_on_standard_output_are_alone_there(capsys):
    watch = open_monitor(MonitorSettings(lines="-"), name="cars", console=Console())
    watch.show_status("running")
    watch.report(report())
    watch.close()
    out, err = capsys.readouterr()
    assert [json.loads(line)["kind"] for line in out.splitlines()] == ["status", "batch"]
    assert err.startswith("running\nbatch 12: ")
    assert not sys.stdout.closed


def test_what_was_opened_is_closed_when_the_rest_cannot_be(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(TidingsError):
        open_monitor(MonitorSettings(metrics=f"127.0.0.1:{port}", lines=str(tmp_path)), name="cars", console=screen())
    Metrics(f"127.0.0.1:{port}", name="cars").close()


class Broken:
    """A watch that raises whatever it is told, and counts."""

    def __init__(self):
        self.asked = 0

    def show_status(self, *_):
        self.asked += 1
        msg = "no room"
        raise OSError(msg)

    report = warn = show_status

    def close(self):
        self.show_status()


def test_one_that_fails_is_named_once_and_the_others_go_on():
    console, broken = screen(), Broken()
    both = MonitorGroup([broken, PlainText(console, every=0)], console=screen())
    for batch in range(3):
        both.report(report(batch))
    both.close()
    assert [line.partition(": ")[0] for line in words(console)] == ["warning", "batch 0", "batch 1", "batch 2"]
    assert words(console)[0] == "warning: Broken failed: OSError: no room"
    assert broken.asked == 4  # it is asked again each time


def test_when_all_fail_it_is_said_on_the_console():
    console = screen()
    several = MonitorGroup([Broken(), Broken()], console=console)
    several.report(report())
    several.report(report())
    assert words(console) == ["warning: Broken failed: OSError: no room"] * 2  # one line for each


# --- what Spark says -----------------------------------------------------------------------------

KAFKA = {
    "batchId": 1,
    "stateOperators": [],
    "sources": [
        {
            "description": "KafkaV2[Subscribe[ads-1]]",
            "startOffset": '{"ads-1": {"0": 6, "1": 6}}',
            "endOffset": '{"ads-1": {"0": 12, "1": 12}}',
            "latestOffset": '{"ads-1": {"0": 15, "1": 12}}',
            "numInputRows": 12,
            "metrics": {"avgOffsetsBehindLatest": "1.5", "maxOffsetsBehindLatest": "3", "minOffsetsBehindLatest": "0"},
        }
    ],
    "sink": {"description": "ForeachBatchSink", "numOutputRows": -1, "metrics": {}},
}
"""What Spark 4.3 said of a stream from a broker, less what nobody reads here."""

FILES = {
    "stateOperators": [
        {
            "operatorName": "dedupeWithinWatermark",
            "numRowsTotal": 15,
            "numRowsDroppedByWatermark": 0,
            "customMetrics": {"loadedMapCacheHitCount": 2, "numDroppedDuplicateRows": 5},
        }
    ],
    "sources": [
        {
            "description": "FileStreamSource[file:/ads]",
            "startOffset": '{"logOffset": 0}',
            "endOffset": '{"logOffset": 1}',
            "latestOffset": "null",
        }
    ],
}
"""The same of a stream from files that drops duplicates."""


def with_source(**about):
    return {"sources": [{**KAFKA["sources"][0], **about}]}


def test_lag_is_what_the_broker_has_beyond_what_was_read():
    assert compute_lag(KAFKA) == {"ads-1-0": 3, "ads-1-1": 0}
    decoded = with_source(endOffset={"a": {"0": 1}}, latestOffset={"a": {"0": 4}, "b": {"7": 2}})
    assert compute_lag(decoded) == {"a-0": 3, "b-7": 2}  # of a partition that is new, everything
    assert compute_lag(with_source(endOffset='{"a": {"0": 9}}', latestOffset='{"a": {"0": 4}}')) == {"a-0": 0}


@pytest.mark.parametrize("offset", [None, "null", "None", "12", "", '{"logOffset": 1}', 12])
def test_where_nothing_is_known_there_is_no_lag(offset):
    assert compute_lag(with_source(latestOffset=offset)) == {}
    assert compute_lag(FILES) == compute_lag({}) == compute_lag({"sources": []}) == {}


def test_dropped_duplicates_are_counted_over_all_operators():
    assert count_duplicates(FILES) == 5
    assert count_duplicates({"stateOperators": FILES["stateOperators"] * 2}) == 10
    assert count_duplicates(KAFKA) == count_duplicates({}) == count_duplicates({"stateOperators": [{}]}) == 0
