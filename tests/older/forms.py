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
    "span": (timedelta, lambda span: span / SECOND, lambda told: told * SECOND),
    "decimal": (Decimal, str, Decimal),
    "uuid": (UUID, str, UUID),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
    "tuple": (tuple, lambda parts: [plain(part) for part in parts], lambda parts: tuple(map(value, parts))),
    "range": (
        td.Range,
        lambda told: [plain(told.low), plain(told.high)],
        lambda ends: td.Range(*map(value, ends)),
    ),
    "infinity": (float, str, float),
}
"""What JSON has no form for stands in an object `{"$NAME": ...}`; a datetime is a date too, so it comes first."""


def plain(value):
    """Return a value as JSON holds it."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    for name, (kind, written, _) in FORMS.items():
        if isinstance(value, kind) and (name != "infinity" or value in (float("inf"), float("-inf"))):
            return {f"${name}": written(value)}
    return value


def value(plain):
    """Return what was written so."""
    if isinstance(plain, list):
        return [value(part) for part in plain]
    if not isinstance(plain, dict):
        return plain
    name, told = next(iter(plain.items()), ("", None))
    if name.startswith("$"):
        return FORMS[name[1:]][2](told)
    return {name: value(part) for name, part in plain.items()}


def read(path):
    """Return what a file of JSON holds."""
    return value(json.loads(data(path)))


def data(path):
    """Return the bytes of a file, unpacked if it is packed."""
    held = (HERE / path).read_bytes()
    return gzip.decompress(held) if str(path).endswith(".gz") else held


def write(path, content):
    """Write bytes, or what JSON can hold, packed if the name says so."""
    held = content if isinstance(content, bytes) else _lines(plain(content)).encode()
    path = HERE / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(held, mtime=0) if path.name.endswith(".gz") else held)


def _lines(content):
    """Return JSON with a line for each part of the outer two levels: differences can be read."""
    if isinstance(content, dict):
        parts = [f"{json.dumps(name)}: {_rows(part)}" for name, part in content.items()]
        return "{\n" + ",\n".join(parts) + "\n}\n"
    return _rows(content) + "\n"


def _rows(content):
    said = json.dumps(content, ensure_ascii=False)
    if isinstance(content, list) and len(said) > 100:
        return "[\n" + ",\n".join(f" {json.dumps(part, ensure_ascii=False)}" for part in content) + "\n]"
    if isinstance(content, dict) and len(said) > 100:
        rows = [f" {json.dumps(name)}: {json.dumps(part, ensure_ascii=False)}" for name, part in content.items()]
        return "{\n" + ",\n".join(rows) + "\n}"
    return said


# What detectors answer -----------------------------------------------------------------------------


def detections(found):
    """Return detections as lists."""
    return [[one.pattern, list(one.events), one.at, dict(one.bindings), list(one.fields)] for one in found]


def forecasts(told):
    """Return forecasts as lists; the probability comes last."""
    return [[one.pattern, one.key, one.horizon, one.estimator, _waiting(one.waiting), one.probability] for one in told]


def foretold(told):
    """Return forecasts that events gave rise to as lists; the probability comes last."""
    return [[one.event, one.at, *forecasts([one.forecast])[0]] for one in told]


def _waiting(quantiles):
    return None if quantiles is None else [[share, after] for share, after in quantiles.items()]


HORIZONS = (1, 6, "3 own events", "9 s")


def now(watch, horizons=HORIZONS):
    """Return what a detector foretells as things stand."""
    return [row for name in watch for horizon in horizons for row in forecasts(watch.forecast(name, horizon=horizon))]


def watching(model, patterns, **settings):
    """Return a detector that foretells patterns, each in its own way."""
    watch, ways = td.Detector(model=model, **settings), ("crossing", "episode", "change", "every")
    for number, told in enumerate(patterns):
        how = {"horizon": HORIZONS[number % 4], "tell": ways[number // 3 % 4], "threshold": 0.3, "step": 0.2}
        watch.add(told["name"], told["pattern"], mode=told["mode"], **how)
    return watch


def answered(watch, rest, end):
    """Return what a detector that goes on from a state answers to the rest of its stream."""
    due = watch.next_deadline()
    found = watch.detect_many(rest, on_error="collect")
    told = {"due": due, "found": detections(found), "told": foretold(found.forecasts)}
    told |= {"late": [[one.event, one.time] for one in found.late], "bad": [one.index for one in found.dead_letters]}
    told |= {"passed": detections(watch.on_time(end)), "patterns": list(watch)}
    told |= {"counted": [watch.late, watch.dropped, watch.cut]}
    if watch.model is not None:
        told |= {"now": now(watch), "show": watch.model.show()}
    return told


# Folders that are packed ---------------------------------------------------------------------------


LEFT_OUT = {"spark.log", "lines.jsonl", "full", "__pycache__"}
"""What is no part of a pipeline that stopped: what Spark said, what was shown, and why it stopped."""


def pack(folder, path):
    """Pack a folder."""
    (HERE / path).parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(HERE / path, "w:gz") as tar:
        for one in sorted(folder.rglob("*")):
            if one.is_file() and not LEFT_OUT & set(one.parts):
                tar.add(one, one.relative_to(folder), filter=_nobodys)


def _nobodys(about):
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
        if file.is_file() and f"{root}/".encode() in (held := file.read_bytes()):
            file.write_bytes(held.replace(f"{root}/".encode(), f"{folder}/".encode()))
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    return folder


def pipeline_rows(folder):
    """Return all that a pipeline has written, by sink: rows with the numbers of their batches, in some fixed order."""
    found = {}
    for part in sorted(folder.glob("**/batch=*/part-*.json")):
        batch = int(part.parent.name.partition("=")[2])
        rows = [{"batch": batch, **_in_order(json.loads(line))} for line in part.read_text().splitlines()]
        found.setdefault(str(part.parent.parent.relative_to(folder)), []).extend(rows)
    return {path: sorted(rows, key=lambda row: json.dumps(row, sort_keys=True)) for path, rows in found.items()}


def _in_order(row):
    """Return a row with its subscriptions in order, where it has several: none is promised."""
    return {**row, "subscriptions": sorted(row["subscriptions"])} if "subscriptions" in row else row


def totals(folder):
    """Return what a run says it has done: by query and what is counted."""
    told = [json.loads(line) for line in (folder / "lines.jsonl").read_text().splitlines()]
    found = {}
    for one in (one for one in told if one["kind"] == "batch"):
        of = found.setdefault(
            one["query"], dict.fromkeys(("events", "matches", "dead_letters", "late", "detections"), 0)
        )
        for name in of:
            of[name] += one[name]
    return found
