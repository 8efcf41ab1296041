"""Named cases of patterns, read by detectors that run through, are resumed, and run without compiled kernels."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import tidings as td
from tidings import lang
from tidings.patterns.definition import judge_events, list_reports
from tidings.patterns.state.run_bytes import run_from_bytes, run_to_bytes

FOLDER = Path(__file__).parent / "patterns"
CASES = [case for path in sorted(FOLDER.glob("*.json")) for case in json.loads(path.read_text("utf-8"))]
NAMED = pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])


def write_filters(case, text):
    """Give a pattern the filters that it names by one letter."""
    spaced = "".join(sign if sign.isalnum() else " " for sign in text.replace(":", " : ")).split()
    labels = {part.split(":")[0] for part in text.replace("(", " ").split() if ":" in part}
    names = [name for name in "abc" if name in spaced and name not in labels]
    filters = {name: f"kind = '{name}'" for name in names} | case.get("filters", {})
    return "".join(f"{name} = {filters[name]}\n" for name in names) + text


def list_rows(step, count):
    if "rows" in step:
        return step["rows"]
    first = step.get("from", 0)
    return [{"id": count + n, "time": first + n, "kind": kind} for n, kind in enumerate(step["events"])]


def play_case(case, between=lambda detector: detector):
    """Play a case's script; `between` may put another detector in the place of this one after each step."""
    detector = td.Detector(**case.get("options", {}))
    for name, text, mode in case["patterns"]:
        detector.add(name, write_filters(case, text), mode=mode)
    reports, late, count = [], [], 0
    for step in case["script"]:
        if "add" in step:
            name, text, mode = step["add"]
            detector.add(name, write_filters(case, text), mode=mode)
        elif "remove" in step:
            detector.remove(step["remove"])
        elif "time" in step:
            reports += detector.on_time(step["time"])
        else:
            rows = list_rows(step, count)
            count += len(rows)
            detections = detector.detect_many(rows)
            reports, late = [*reports, *detections], [*late, *detections.late]
        detector = between(detector)
    return sorted([detection.pattern, list(detection.events)] for detection in reports), [
        report.event for report in late
    ]


def judge(case, reports, late):
    assert reports in (sorted(case["reports"]), case.get("or"))
    assert late == case.get("late", [])


@NAMED
def test_case(case):
    judge(case, *play_case(case))


@NAMED
def test_case_resumed_after_each_step(case):
    judge(case, *play_case(case, lambda detector: td.Detector.resume(detector.snapshot())))


@NAMED
def test_case_handed_on_after_each_step(case):
    def hand_over(detector):
        if "add" in str(case["script"]):  # where a detector stands does not say since when it has its patterns
            return detector
        forked = detector.fork()
        run_from_bytes(forked.run, run_to_bytes(detector.run))
        return forked

    judge(case, *play_case(case, hand_over))


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@NAMED
def test_case_by_the_definition(case):
    if any(set(step) - {"events", "time", "from"} for step in case["script"]) or len(case["patterns"]) > 1:
        pytest.skip("more than one pattern over one stream")
    [[_, text, mode]] = case["patterns"]
    events, now = [], 0
    for step in case["script"]:
        events += list_rows(step, len(events)) if "events" in step else []
        now = max(now, step.get("time", 0), *(event["time"] for event in events))
    pattern = lang.parse_pattern(write_filters(case, text))
    stream = judge_events(pattern, [event | {"time": EPOCH + timedelta(seconds=event["time"])} for event in events])
    embeddings = list_reports(pattern, stream, mode, until=now * 1_000_000)
    wanted = [tuple(events) for _, events in case["reports"]]
    assert len(embeddings) == len(wanted)
    assert all(any(events in detection.choices for detection in embeddings) for events in wanted)


def test_all_cases_without_compiled_kernels():
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        pytest.skip("this is the run without them")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__, "-k", "not definition"]
    done = subprocess.run(
        command, env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_names_say_one_thing_each():
    assert len({case["name"] for case in CASES}) == len(CASES)
