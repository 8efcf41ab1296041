"""Values as JSON holds them, and back: what a fixture's events, ids and answers are made of."""

import gzip
import json
import os
import tarfile
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import tidings as td

HERE = Path(__file__).parent
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)

FORMS = {
    "datetime": (datetime, datetime.isoformat, datetime.fromisoformat),
    "date": (date, date.isoformat, date.fromisoformat),
    "clock": (time, time.isoformat, time.fromisoformat),
    "span": (timedelta, lambda span: span / SECOND, lambda value: value * SECOND),
    "decimal": (Decimal, str, Decimal),
    "uuid": (UUID, str, UUID),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
    "tuple": (tuple, lambda parts: [to_plain(part) for part in parts], lambda parts: tuple(map(value, parts))),
    "range": (
        td.Range,
        lambda value: [to_plain(value.low), to_plain(value.high)],
        lambda ends: td.Range(*map(value, ends)),
    ),
    "infinity": (float, str, float),
}
"""What JSON has no form for stands in an object `{"$NAME": ...}`; a datetime is a date too, so it comes first."""


def to_plain(value):
    """Return a value as JSON holds it."""
    if isinstance(value, dict):
        return {name: to_plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [to_plain(part) for part in value]
    for name, (kind, write_form, _) in FORMS.items():
        if isinstance(value, kind) and (name != "infinity" or value in (float("inf"), float("-inf"))):
            return {f"${name}": write_form(value)}
    return value


def value(plain):
    """Return what was written so."""
    if isinstance(plain, list):
        return [value(part) for part in plain]
    if not isinstance(plain, dict):
        return plain
    name, content = next(iter(plain.items()), ("", None))
    if name.startswith("$"):
        return FORMS[name[1:]][2](content)
    return {name: value(part) for name, part in plain.items()}


def read(path):
    """Return what a file of JSON holds."""
    return value(json.loads(read_data(path)))


def read_data(path):
    """Return the bytes of a file, unpacked if it is packed."""
    content = (HERE / path).read_bytes()
    return gzip.decompress(content) if str(path).endswith(".gz") else content


def write(path, content):
    """Write bytes, or what JSON can hold, packed if the name says so."""
    data_bytes = content if isinstance(content, bytes) else _render_lines(to_plain(content)).encode()
    path = HERE / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data_bytes, mtime=0) if path.name.endswith(".gz") else data_bytes)


def _render_lines(content):
    """Return JSON with a line for each part of the outer two levels: differences can be read."""
    if isinstance(content, dict):
        parts = [f"{json.dumps(name)}: {_render_rows(part)}" for name, part in content.items()]
        return "{\n" + ",\n".join(parts) + "\n}\n"
    return _render_rows(content) + "\n"


def _render_rows(content):
    text = json.dumps(content, ensure_ascii=False)
    if isinstance(content, list) and len(text) > 100:
        return "[\n" + ",\n".join(f" {json.dumps(part, ensure_ascii=False)}" for part in content) + "\n]"
    if isinstance(content, dict) and len(text) > 100:
        rows = [f" {json.dumps(name)}: {json.dumps(part, ensure_ascii=False)}" for name, part in content.items()]
        return "{\n" + ",\n".join(rows) + "\n}"
    return text


# What detectors answer -----------------------------------------------------------------------------


def list_detections(detections):
    """Return detections as lists."""
    return [
        [detection.pattern, list(detection.events), detection.at, dict(detection.bindings), list(detection.fields)]
        for detection in detections
    ]


def to_lists(reported):
    """Return forecasts as lists; the probability comes last."""
    return [
        [
            forecast.pattern,
            forecast.key,
            forecast.horizon,
            forecast.estimator,
            _list_waiting(forecast.waiting),
            forecast.probability,
        ]
        for forecast in reported
    ]


def list_forecasts(reported):
    """Return forecasts that events gave rise to as lists; the probability comes last."""
    return [[forecast.event, forecast.at, *to_lists([forecast.forecast])[0]] for forecast in reported]


def _list_waiting(quantiles):
    return None if quantiles is None else [[share, after] for share, after in quantiles.items()]


HORIZONS = (1, 6, "3 own events", "9 s")


def forecast_now(watch, horizons=HORIZONS):
    """Return what a detector foretells as things stand."""
    return [row for name in watch for horizon in horizons for row in to_lists(watch.forecast(name, horizon=horizon))]


def watch_patterns(model, patterns, **settings):
    """Return a detector that foretells patterns, each in its own way."""
    watch, ways = td.Detector(model=model, **settings), ("crossing", "episode", "change", "every")
    for number, pattern in enumerate(patterns):
        how = {"horizon": HORIZONS[number % 4], "tell": ways[number // 3 % 4], "threshold": 0.3, "step": 0.2}
        watch.add(pattern["name"], pattern["pattern"], mode=pattern["mode"], **how)
    return watch


def collect_answer(watch, rest, end):
    """Return what a detector that goes on from a state answers to the rest of its stream."""
    due = watch.next_deadline()
    batch = watch.detect_many(rest, on_error="collect")
    answer = {"due": due, "found": list_detections(batch), "told": list_forecasts(batch.forecasts)}
    answer |= {
        "late": [[letter.event, letter.time] for letter in batch.late],
        "bad": [letter.index for letter in batch.dead_letters],
    }
    answer |= {"passed": list_detections(watch.on_time(end)), "patterns": list(watch)}
    answer |= {"counted": [watch.late, watch.dropped, watch.cut]}
    if watch.model is not None:
        answer |= {"now": forecast_now(watch), "show": watch.model.show()}
    return answer


# Folders that are packed ---------------------------------------------------------------------------


LEFT_OUT = {"spark.log", "lines.jsonl", "full", "__pycache__"}
"""What is no part of a pipeline that stopped: what Spark said, what was shown, and why it stopped."""


def pack(folder, path):
    """Pack a folder."""
    (HERE / path).parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(HERE / path, "w:gz") as tar:
        for item in sorted(folder.rglob("*")):
            if item.is_file() and not LEFT_OUT & set(item.parts):
                tar.add(item, item.relative_to(folder), filter=_drop_owner)


def _drop_owner(about):
    about.uid = about.gid = 0
    about.uname = about.gname = ""
    return about


def unpack(path, folder, *, root=None):
    """Unpack a folder at another place than `root`, where it was written.

    Spark notes full paths in its checkpoint: which files it has read, and where its own are. Whoever moves a pipeline
    has to change them, and to remove the checksums of the files that hold them: without that, files that were read are
    read again, and a query with patterns does not start. Claims get a new time: after a month without one, a query is
    taken to be gone.
    """
    with tarfile.open(HERE / path) as tar:
        tar.extractall(folder, filter="data")
    for claim in folder.glob("**/claims/*/*.json"):
        os.utime(claim)
    for file in folder.glob("state/**/*") if root is not None else ():
        if file.is_file() and f"{root}/".encode() in (content := file.read_bytes()):
            file.write_bytes(content.replace(f"{root}/".encode(), f"{folder}/".encode()))
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    return folder


def read_pipeline_rows(folder):
    """Return all that a pipeline has written, by sink: rows with the numbers of their batches, in some fixed order."""
    rows_by_kind = {}
    for part in sorted(folder.glob("**/batch=*/part-*.json")):
        batch = int(part.parent.name.partition("=")[2])
        rows = [{"batch": batch, **_sort_subscriptions(json.loads(line))} for line in part.read_text().splitlines()]
        rows_by_kind.setdefault(str(part.parent.parent.relative_to(folder)), []).extend(rows)
    return {path: sorted(rows, key=lambda row: json.dumps(row, sort_keys=True)) for path, rows in rows_by_kind.items()}


def _sort_subscriptions(row):
    """Return a row with its subscriptions in order, where it has several: none is promised."""
    return {**row, "subscriptions": sorted(row["subscriptions"])} if "subscriptions" in row else row


def sum_totals(folder):
    """Return what a run says it has done: by query and what is counted."""
    reports = [json.loads(line) for line in (folder / "lines.jsonl").read_text().splitlines()]
    totals = {}
    for report in (report for report in reports if report["kind"] == "batch"):
        of = totals.setdefault(
            report["query"], dict.fromkeys(("events", "matches", "dead_letters", "late", "detections"), 0)
        )
        for name in of:
            of[name] += report[name]
    return totals
