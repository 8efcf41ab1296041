"""Write the folders of pipelines that `tidings run` has stopped in: checkpoint, inputs, and what was written so far.

Written by version 0.1.0 at commit f057d71; kept so that what was written can be rebuilt; not run by tests.
In that commit's checkout: PYTHONPATH=src python -m tests.older.write_checkpoints (it needs Java, and some minutes)
"""

import json
import os
import random
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.older.forms import HERE, pack, read_pipeline_rows, sum_totals, unpack, write
from tests.older.write_snapshots import REGIONS

import tidings as td

ROOT = Path("/tmp/tidings-older")
"""Where pipelines run while they are written; what Spark notes of it is rewritten when they are unpacked elsewhere."""

COLUMNS = (
    "id BIGINT, ts TIMESTAMP, shop STRING, ip STRING, status STRING, make STRING, price DOUBLE, list_price DOUBLE, "
    "target STRING, tags ARRAY<STRING>, spot STRUCT<lon: DOUBLE, lat: DOUBLE>, "
    "items ARRAY<STRUCT<sku: STRING, qty: BIGINT>>, sold BOOLEAN, posted TIMESTAMP"
)

ONTOLOGY = """
[trees.product]
outline = \"\"\"
product
  computer
    laptop = notebook
    desktop
  accessory
\"\"\"
[attributes]
target = "concept product"
"""

ALL_KINDS = """price in [100 .. 400) or price = 7 or make = 'ford' or make in ('opel', 'fiat') or make starts with 'v'
    or make like 'b*w' ignoring case or make matches /^s[ek]/ or make = 'SEAT' ignoring case or target is a 'computer'
    or spot within POLYGON((0 0, 9 0, 9 9, 0 9, 0 0)) or spot within @downtown or spot near (8.5, 40.5) 90 km
    or ip in 10.7.0.0/16 or price < `list_price` or items has (sku = 'x' and not (qty < 3)) or sold = true
    or none(tags) = 'red' or tags is null or posted > 2024-07-01T12:20:00Z or age(posted) > 36500 days"""
"""A filter that has every kind of test in it: Spark's state knows filters by what they are made of."""

PATTERNS = {
    "intrusion": ("restart", "fail{3,} ; enter within 5 min"),
    "hammering": ("overlap", "fail{3} within 3 min"),
    "each": ("next", "fail ; enter"),
    "every": ("any limit 4", "fail ; not enter ; leave"),
    "left": ("restart", "enter ; not leave for 2 min"),
    "slow": ("restart", "f:fail ; (enter @ t(enter) - t(f) > 1 min) ; (leave @ t(leave) - t(enter) < 4 min)"),
}
"""Of an address each."""

NAMED = {
    "fail": "status = 'denied' and ip = $x",
    "enter": "status = 'success' and ip = $x",
    "leave": "status = 'logoff' and ip = $x",
}

OTHERS = f"""
pattern kinds mode next
  it = ({ALL_KINDS})
    and status != 'other'
  go = status = 'other'
  it ; go

pattern moved
  one = status = 'success' and ip = $x and make = $m
  two = status = 'logoff' and ip = $x and make = $m
  one ; two within 10 min
"""


def render_pattern(name):
    """Return a pattern of `PATTERNS` as a detector takes it."""
    expression = PATTERNS[name][1]
    return "\n".join([*(f"{name} = {text}" for name, text in NAMED.items() if name in expression), expression])


def render_patterns():
    """Return all patterns as a file."""
    blocks = [f"pattern {name} mode {mode}\n{render_pattern(name)}\n" for name, (mode, _) in PATTERNS.items()]
    return "\n".join(blocks)


SEARCHES = [
    {"id": "cheap ford", "filter": "make = 'ford' and price < 300"},
    {"id": "opel", "filter": "make=opel&price_from=100&price_to=900", "notation": "url"},
    {"id": "tree", "filter": {"or": [{"attr": "sold", "op": "=", "value": True}, {"attr": "price", "op": "exists"}]}},
    {"id": "all kinds", "filter": ALL_KINDS.replace("\n   ", "")},
    {"id": "computer", "filter": "target is a 'computer' and not (spot within @downtown)"},
    {"id": "young", "filter": "age(posted) < 30 min"},
    {"id": "items", "filter": "items has (sku = 'x' and qty > 2) or tags contains 'e'"},
    {"id": "in cents", "filter": "cents > 50000"},
    {"id": "nobody", "filter": "pirce > 5"},
]

LATER = [
    {"id": "cheap ford", "filter": "make = 'ford' and price < 500"},
    {"id": "new", "filter": "status = 'logoff' and cents > 0"},
]
"""What the file of subscriptions holds when the pipeline goes on, beside a line that cannot be read."""


def draw_events(count, seed, *, start, id):
    """Return events in about the order of their times, from a minute of the hour on."""
    rng, at, rows = random.Random(seed), start * 60, []
    for number in range(count):
        at += rng.choice((1, 4, 9, 20, 40))
        moment = datetime(2024, 7, 1, 12, tzinfo=UTC) + timedelta(seconds=at - rng.choice((0, 0, 0, 15, 30)))
        place = (rng.choice((1.5, 8.5, 20)), rng.choice((3, 40.5, 47.5)))
        row = {
            "id": id + number,
            "ts": moment.isoformat(),
            "shop": rng.choice("xy"),
            "ip": f"10.{rng.choice('0077')}.0.1",
        }
        row |= {"status": rng.choice(("denied", "denied", "denied", "success", "success", "logoff", "other"))}
        row |= {"make": rng.choice(("ford", "opel", "vw", "bmw", "skoda", "seat", "zonda")), "sold": rng.random() < 0.1}
        row |= {"price": rng.choice((7, 90, 150, 350, 650, 900)), "list_price": rng.choice((80, 300, None))}
        row |= {"target": rng.choice(("laptop", "desktop", "accessory", "thing", None))}
        row |= {"tags": rng.choice((["red"], ["blue", "green"], ["red", "blue"], None))}
        row |= {"spot": {"lon": place[0], "lat": place[1]}, "posted": moment.isoformat()}
        row |= {"items": [{"sku": rng.choice("xy"), "qty": rng.randrange(5)} for _ in range(rng.randrange(3))]}
        rows.append(row)
    return rows


def render_lines(rows):
    """Return rows as JSON lines; what is text already is written as it is."""
    return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)


def list_batches():
    """Return the files of events: those that are read before the pipeline stops, and those that come later."""
    files = [draw_events(18, 10 + place, start=5 * place, id=100 * place) for place in range(6)]
    files[1].append({"id": 190, "status": "denied", "ip": "10.0.0.1", "price": 5})  # no time
    files[1].append("no JSON")
    files[2].append({**files[0][3], "id": 290})  # late for patterns
    files[4] += [files[0][0], files[3][2]]  # doubles of what was read before the stop
    files[4].append({**files[0][5], "id": 491, "ts": "2024-07-01T10:00:00+00:00"})  # late for matching too
    files[4].append('{"id": 492, "price": "dear"}')
    return files


NAMES = 'ontology = "shop.toml"\nregions = "regions.geojson"'

PIPELINE = f"""
checkpoint = "state"
trigger = "available now"
NAMES
[source]
kind = "json"
path = "ads"
columns = "{COLUMNS}"
id = "id"
time = "ts"
[source.options]
maxFilesPerTrigger = 1
[derived]
cents = "price * 100"
[shown]
view = "off"
lines = "lines.jsonl"
[spark]
spark.sql.shuffle.partitions = 2
"""

WATCHING = """
[subscriptions]
file = "searches.jsonl"
[matching]
keep = ["price"]
now = 2024-07-01T12:50:00Z
[[sink]]
kind = "json"
path = "matches"
[late]
after = "90 minutes"
[duplicates]
within = "36500 days"
[patterns]
file = "logins.patterns"
lateness = "1 minute"
key = "shop"
keep = ["price"]
[[detections]]
kind = "json"
path = "detections"
"""

FORETELLING = """
[subscriptions]
snapshot = "live"
[matching]
per = "event"
[[sink]]
kind = "python"
function = "older_hook:step"
[[sink]]
kind = "json"
path = "matches"
[patterns]
file = "logins.patterns"
lateness = "1 minute"
model = "logins.model"
horizon = "4 own events"
threshold = 0.3
[[detections]]
kind = "json"
path = "detections"
"""

HOOK = """
from pathlib import Path


def step(frame, batch):
    if batch == 2 and Path(__file__).with_name("full").exists():
        raise OSError("no room")
"""


def make_folder(name, toml):
    """Make the folder of a pipeline anew."""
    folder = ROOT / name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "ads").mkdir(parents=True)
    names = "" if "snapshot" in toml else NAMES  # a snapshot brings its own
    (folder / "pipeline.toml").write_text(PIPELINE.replace("NAMES", names) + toml)
    (folder / "shop.toml").write_text(ONTOLOGY)
    (folder / "regions.geojson").write_text(json.dumps(REGIONS))
    return folder


def put(folder, files, *, first=0):
    """Put files of events in place; each is older than the next."""
    for place, rows in enumerate(files, first):
        path = folder / "ads" / f"{place}.json"
        path.write_text(render_lines(rows))
        os.utime(path, (1.72e9 + place, 1.72e9 + place))


def run(folder, *, fails=None):
    """Run a pipeline until all is read, or it fails for this reason."""
    (folder / "lines.jsonl").unlink(missing_ok=True)
    command = [sys.executable, "-m", "tidings", "run", "pipeline.toml", "--once"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != (0 if fails is None else 1) or (fails or "") not in done.stderr:
        msg = f"{folder} ended with {done.returncode}: {done.stderr}"
        raise SystemExit(msg)


def continue_pipeline(name, files, *, searches=None):
    """Unpack a pipeline at another place, let it go on with further files, and return what comes of that."""
    folder = ROOT / "elsewhere" / name
    shutil.rmtree(folder, ignore_errors=True)
    unpack(f"checkpoints/{name}.tar.gz", folder, root=ROOT / name)
    before = read_pipeline_rows(folder)
    put(folder, files, first=4)
    if searches is not None:
        (folder / "searches.jsonl").write_text(searches)
    run(folder)
    assert len([*folder.glob("state/subscriptions/*")]) <= 1  # those of before are used
    after = read_pipeline_rows(folder)
    assert all(row in after[path] for path, rows in before.items() for row in rows)
    new = {path: [row for row in rows if row not in before.get(path, ())] for path, rows in after.items()}
    answer = {"root": str(ROOT / name), "files": [render_lines(rows) for rows in files], "searches": searches}
    return answer | {"before": before, "after": new, "totals": sum_totals(folder)}


def run_straight(name, toml, prepare, files):
    """Return the detections of the same pipeline that never stopped."""
    folder = make_folder(name, toml)
    prepare(folder)
    put(folder, files)
    run(folder)
    return read_pipeline_rows(folder)["detections"]


def write_watching(files):
    """Write a pipeline with a file of subscriptions, bounds of lateness, doubles, and patterns; it ended by itself."""

    def prepare(folder):
        (folder / "logins.patterns").write_text(render_patterns() + OTHERS)
        (folder / "searches.jsonl").write_text(render_lines(SEARCHES))

    folder = make_folder("watching", WATCHING)
    prepare(folder)
    put(folder, files[:4])
    run(folder)
    pack(folder, f"checkpoints/{folder.name}.tar.gz")
    answer = continue_pipeline("watching", files[4:], searches=render_lines([*LATER, "no JSON"]))
    whole = run_straight("straight", WATCHING, prepare, files)
    assert sorted(map(str, _drop_numbers(whole))) == sorted(
        map(str, _drop_numbers(answer["before"]["detections"] + answer["after"]["detections"]))
    )
    return answer


def write_foretelling(files):
    """Write a pipeline with a folder of versions, and patterns with a model; it failed in the midst of a batch."""
    # What is read before it fails is young then; the batch that is done again must reckon with the time it had.
    files = [
        [{**row, "posted": _read_clock()} if place < 3 and isinstance(row, dict) else row for row in rows]
        for place, rows in enumerate(files)
    ]

    def prepare(folder):
        (folder / "logins.patterns").write_text(render_patterns())
        (folder / "older_hook.py").write_text(HOOK)
        _train_model().save(folder / "logins.model")
        vocabulary = {"ontology": td.Ontology.load(folder / "shop.toml"), "regions": td.Regions.from_dict(REGIONS)}
        live = td.Live(folder / "live", shards=2, **vocabulary)
        live.add_many([tuple(search.values()) for search in SEARCHES[:-1]])

    folder = make_folder("foretelling", FORETELLING)
    prepare(folder)
    (folder / "full").touch()
    put(folder, files[:4])
    run(folder, fails="no room")
    live = td.Live(folder / "live")
    live.change([("late", "price > 0")], ["tree"])  # not in force in the batch that is done again
    pack(folder, f"checkpoints/{folder.name}.tar.gz")
    answer = continue_pipeline("foretelling", files[4:])
    whole = run_straight("straight", FORETELLING, prepare, files)
    assert sorted(map(str, _drop_numbers(whole))) == sorted(
        map(str, _drop_numbers(answer["before"]["detections"] + answer["after"]["detections"]))
    )
    return answer


def _read_clock():
    return datetime.now(UTC).isoformat()


def _train_model():
    watch = td.Detector(time="ts")
    for name, (mode, _) in PATTERNS.items():
        watch.add(name, render_pattern(name), mode=mode.partition(" ")[0])
    return td.train(watch, draw_events(300, 99, start=0, id=0), context=1)


def _drop_numbers(rows):
    return [{name: value for name, value in row.items() if name != "batch"} for row in rows]


def main():
    """Write both."""
    files = list_batches()
    (HERE / "checkpoints").mkdir(exist_ok=True)
    for name, write_one in (("watching", write_watching), ("foretelling", write_foretelling)):
        if name in (sys.argv[1:] or [name]):
            write(f"checkpoints/{name}.json.gz", write_one(files))


if __name__ == "__main__":
    main()
