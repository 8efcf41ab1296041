"""The newest events are found again, newest first, with the span of time in which they came."""

import json
from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("orjson", reason="needs tidings[service]")

from tidings.service.events.event_files import make_name, write_file
from tidings.service.events.rates import estimate_rate
from tidings.service.events.recent import FOLDED, RecentFiles, RecentSample, RecentTuning

NOW = datetime(2024, 7, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def put(folder, minutes_ago, *events):
    moment = NOW - timedelta(minutes=minutes_ago)
    folder.mkdir(parents=True, exist_ok=True)
    lines = [(event if isinstance(event, str) else json.dumps(event)).encode() + b"\n" for event in events]
    write_file(folder, make_name(int(moment.timestamp() * 10**9)), lines)
    return moment


def list_ids(sample):
    return [event["id"] for event in sample.events]


def test_events_come_newest_first_from_all_files_that_count(tmp_path):
    put(tmp_path, 24 * 60 + 1, {"id": "old"})
    begin = put(tmp_path / FOLDED, 90, {"id": 1}, {"id": 2})
    put(tmp_path, 5, {"id": 3}, "not json", {"id": 10**30})
    sample = RecentFiles(tmp_path, kept=DAY).sample(NOW)
    assert list_ids(sample) == [10**30, 3, 2, 1]
    assert (sample.begin, sample.end, sample.span) == (begin, NOW, timedelta(minutes=90))


def test_a_sample_is_bounded_and_has_no_gap(tmp_path):
    put(tmp_path, 30, {"id": 1}, {"id": 2})
    begin = put(tmp_path, 20, {"id": 3}, {"id": 4})
    put(tmp_path, 10, {"id": 5})
    assert list_ids(RecentFiles(tmp_path, kept=DAY, tuning=RecentTuning(events=4)).sample(NOW)) == [5, 4, 3]
    few = RecentFiles(tmp_path, kept=DAY, tuning=RecentTuning(events=3)).sample(NOW)
    assert (list_ids(few), few.begin) == ([5, 4, 3], begin)
    assert list_ids(RecentFiles(tmp_path, kept=DAY, tuning=RecentTuning(events=1)).sample(NOW)) == [5]
    assert list_ids(RecentFiles(tmp_path, kept=DAY, tuning=RecentTuning(size=1)).sample(NOW)) == [5]
    assert RecentFiles(tmp_path / "missing", kept=DAY).sample(NOW) == RecentSample(end=NOW)


def test_an_event_is_found_by_its_id_as_text(tmp_path):
    put(tmp_path, 9, {"id": "a", "n": 1}, {"id": 7}, '{"id": "caf\\u00e9"}', {"ref": "a"}, {"ce": {"id": "deep"}})
    put(tmp_path, 8, {"id": "a", "n": 2})
    recent = RecentFiles(tmp_path, kept=DAY)
    assert recent.find("a", "id") == {"id": "a", "n": 2}
    assert recent.find("7", "id") == {"id": 7}
    assert recent.find("café", "id") == {"id": "café"}
    assert recent.find("deep", "ce.id") == {"ce": {"id": "deep"}}
    assert recent.find("b", "id") is None
    assert RecentFiles(tmp_path, kept=DAY, tuning=RecentTuning(searched=1)).find("7", "id") is None


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [(0, 0.0, 3.689), (1, 0.025, 5.572), (5, 1.623, 11.668), (10, 4.795, 18.390), (100, 81.364, 121.627)],
)
def test_an_interval_is_that_of_poisson_or_a_little_wider(count, low, high):
    rate = estimate_rate(count, DAY)
    assert rate.per_day == count
    assert low - 0.02 <= rate.low <= low + 0.001
    assert high - 0.025 <= rate.high <= high + 0.005
    hourly = estimate_rate(count, timedelta(hours=1))
    assert hourly.high == pytest.approx(24 * rate.high)
    assert estimate_rate(count, timedelta()) is None
