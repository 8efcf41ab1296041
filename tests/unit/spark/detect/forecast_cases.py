"""Patterns and events for the tests of training and forecasts on Spark, and the forecasts a local detector makes."""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import tidings as td

START = datetime(2024, 7, 1, tzinfo=UTC)


COLUMNS = "id BIGINT, ts TIMESTAMP, kind STRING, key INT, other DOUBLE"


NAMES = tuple(column.split()[0] for column in COLUMNS.split(","))


KEYED = "a = kind = 'a' and key = $x\nb = kind = 'b' and key = $x\n"


PLAIN = "a = kind = 'a'\nb = kind = 'b'\nc = kind = 'c'\n"


PATTERN_TEXTS = {
    "next": f"{KEYED}a , b",
    "then": f"{KEYED}a ; b",
    "soon": f"{KEYED}a ; b within 5 s",
    "silent": f"{KEYED}a ; not b for 5 s",
    "crossed": "a = kind = 'a' and key = $x\nb = kind = 'b' and other = $x\na ; b",
    "plain": f"{PLAIN}a , b ; c",
    "other": f"{PLAIN}(a or b) ; c",
    "late": f"{PLAIN}a ; b ; c @ t(c) - t(a) > 3 s",
    "same": f"{PLAIN}a , b ; c",  # as `plain`: counted once, whatever it is called
}


def at(seconds):
    return START + timedelta(seconds=seconds)


def log(count=400, *, seed=1):
    """Return events in the order of time; `key` and `other` give the same numbers as different types, or none."""
    rng, now, rows = random.Random(seed), 0, []
    for number in range(count):
        now += rng.choice((0, 0, 1, 2))
        values = (rng.choice((None, 1, 2, 3, 4)), rng.choice((None, 1.0, 2.0, 2.5)))
        rows.append((number, at(now), rng.choice("abcxx"), *values))
    return rows


def in_order(rows):
    """Return events as they are taken: of one time, as they lie."""
    mixed = sorted(rows, key=lambda row: (row[0] % 3, row[0]))
    return [dict(zip(NAMES, row, strict=True)) for row in sorted(mixed, key=lambda row: row[1])]


def watch_patterns(patterns):
    detector = td.Detector(time="ts")
    for name, pattern in patterns.items():
        detector.add(name, pattern, mode="overlap" if name == "then" else "restart")
    return detector


TELLS = ("crossing", "episode", "every", "change")


def watch_with_model(model, patterns=PATTERN_TEXTS, *, own=False):
    """Return a detector of the patterns; with `own`, keys are foretold by their own events alone."""
    detector = td.Detector(model=model, time="ts")
    for number, (name, pattern) in enumerate(patterns.items()):
        horizon = "4 own events" if own and "$x" in pattern else (6, "4 s", 6, "4 s", 20)[number % 5]
        tell = "every" if name == "crossed" else TELLS[number % 4]
        options = {"horizon": horizon, "threshold": 0.3, "tell": tell, "step": 0.2}
        detector.add(name, pattern, mode="overlap" if name == "then" else "restart", **options)
    return detector


def count_forecasts_locally(detector, events):
    rows = detector.detect_many(events).forecasts.to_arrow().to_pylist()
    return Counter(
        (row["pattern"], row["key"], row["at"], row["event"], round(row["probability"], 9), row["horizon"])
        for row in rows
    )


def count_forecasts(rows):
    forecasts = [row for row in rows if row["kind"] == "forecast"]
    moments = [row["at"].replace(tzinfo=UTC) for row in forecasts]
    return Counter(
        (row["pattern"], row["key"], moment, *row["events"], round(row["probability"], 9), row["horizon"])
        for row, moment in zip(forecasts, moments, strict=True)
    )


def as_events(rows):
    return [dict(zip(NAMES, row, strict=True)) for row in rows]
