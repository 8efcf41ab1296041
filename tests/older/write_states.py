"""Write states of detectors in the midst of a stream: plain ones, one that foretells, and those that learn.

Written by version 0.1.0 at commit f057d71; kept so that what was written can be rebuilt; not run by tests.
In that commit's checkout: PYTHONPATH=src python -m tests.older.write_states
"""

import hashlib
import random
import shutil
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from uuid import UUID

from tests.older.forms import HERE, collect_answer, list_detections, watch_patterns, write
from tests.older.write_models import OF_KEY, PATTERNS, draw_events, render_filters
from tests.older.write_snapshots import BAD, EVENTS, FILTERS, build_keywords

import tidings as td

FOLDER = HERE / "states"
MODES = ("restart", "overlap", "next", "any")

SHAPES = {
    "next to": "a , b ; c",
    "between": "a ; not d ; b",
    "both": "(a and b) ; c",
    "either": "(a ; b) or (c , d)",
    "repeated": "a{2,3} ; b",
    "timed": "x:a ; (b @ t(b) - t(x) < 9 s) ; (c @ (t(c) - t(x) < 20 s and t(c) - t(b) > 2 s))",
    "first": "(x:a{2,} ; b) @ t(b) - t(first x) <= 12 s",
    "apart": "((a and b) @ |t(a) - t(b)| < 4 s) ; d",
    "within": "a ; b ; c within 15 s",
    "absence": "a ; not b for 6 s",
    "guarded": "a ; b ; not c for 2 s",
}

JOINS = {
    "joined": "a = kind = 'a' and k = $x and o = $o\nb = kind = 'b' and k = $x\n"
    "c = kind = 'c' and k = $x and o = $o\na ; b ; c",
    "joined apart": "a = kind = 'a' and k = $x and o = $o\nb = kind = 'b' and k = $x\n"
    "d = kind = 'd' and k = $x and o = $o\na ; not d ; b within 30 s",
    "passed on": "a = kind = 'a' and k = $x\nb = kind = 'b' and to = $x\na ; b",
    "two keys": "a = kind = 'a' and k = $x and o = $o\nb = kind = 'b' and k = $x and o = $o\na ; b",
}


# Patterns of all shapes ----------------------------------------------------------------------------


def watch_shapes(moment):
    """Return a detector of all shapes, modes and keys, where events wait, some were late, and patterns changed."""
    watch = td.Detector(keep=["o", "note"], lateness="5 s", partials=6)
    for mode in MODES:
        limit = {"limit": 3} if mode == "any" else {}
        for name, expression in SHAPES.items():
            watch.add(f"{name} {mode}", render_filters(expression), mode=mode, **limit)
            watch.add(f"{name} {mode} of key", render_filters(expression, OF_KEY), mode=mode, **limit)
        for name, text in JOINS.items():
            watch.add(f"{name} {mode}", text, mode=mode, **limit)
    watch.add("gone", render_filters("a ; d", OF_KEY))
    stream = shuffle(draw_events(150, 3))
    watch.detect_many(stream[:50])
    watch.remove("gone")
    watch.add("later", render_filters("a ; b ; d", OF_KEY), mode="next")
    watch.add("next to next", render_filters("a , c"), mode="next")  # another pattern of this name
    watch.detect_many(stream[50:moment])
    assert watch.dropped
    assert watch.late
    return watch, stream[moment : moment + 35], 400


def shuffle(stream):
    """Return events out of order by a few seconds, some of them too much, and a few that cannot be used."""
    rng = random.Random(4)
    for number, event in enumerate(stream):
        event["time"] /= 2
        event["note"] = f"n{number}" if number % 3 else {"of": [number]}
    events = sorted(stream, key=lambda event: event["time"] + rng.choice((0, 0, 0, 0, 1, 2, 9)))
    for number in range(9, len(events), 17):
        events[number] = {**events[number], "time": None}
    for number in range(12, len(events), 23):
        events[number] = {**events[number], "k": [1, 2]}
    return events


# Filters of all kinds ------------------------------------------------------------------------------


def watch_kinds():
    """Return a detector whose partial matches hold filters of every kind, and whose events wait for their turn."""
    vocabulary = build_keywords()
    vocabulary.pop("now")
    watch, asked = td.Detector(lateness="20 s", event_id="event", time="t", **vocabulary), {}
    for kind, texts in FILTERS.items():
        for number, text in enumerate(texts):
            if "experience" not in text:  # it hangs on the day
                asked[f"{kind} {number}"] = f"it = {text}\ngo = go = true\nit ; go"
    for name, text in asked.items():
        watch.add(name, text, mode="next")
    good = [event for event in EVENTS if event not in BAD]
    stream = [{"event": f"e{number}", "t": number, **event} for number, event in enumerate(good + good[:30])]
    detections = watch.detect_many([*stream, {"event": "bad", "t": 100, "price": "cheap"}], on_error="collect")
    assert len(detections.dead_letters) == 1
    return watch, [{"event": "bad again", "t": 101, "ip": 5}, {"event": "last", "t": 102, "go": True}], 1000


# Ids and keys of all kinds -------------------------------------------------------------------------

MOMENT = datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
IDS = [0, -5, 2**80, "text", "", 1.5, float("inf"), True, b"\x00\xff", UUID(int=5), Decimal("1.50"), MOMENT.date()]
IDS += [MOMENT, MOMENT.replace(tzinfo=None), time(3, 4), timedelta(days=-1, microseconds=1), (1, ("a", 2.5)), [1, [2]]]
IDS += [{"float": 1, "list": [None]}, None]
KEYS = [0, 2**70, "text", 1.5, True, Decimal("2.50"), MOMENT, date(2020, 1, 1), "1"]


def watch_names():
    """Return a detector that holds ids and keys of all kinds, and has taken its events one by one."""
    watch = td.Detector(keep=["note"])
    watch.add("any key", render_filters("a ; b", OF_KEY), mode="next")
    watch.add("no key", render_filters("a ; b"), mode="any")
    for number, id in enumerate(IDS):
        watch.on_event({"id": id, "time": number, "kind": "a", "k": KEYS[number % len(KEYS)], "note": id})
    rest = [{"id": number, "time": 50, "kind": "b", "k": key} for number, key in enumerate(KEYS)]
    return watch, rest, 60


# Forecasts -----------------------------------------------------------------------------------------


def watch_foretelling():
    """Return a detector with a model, of which it has counted all patterns but one."""
    counted = td.Detector()
    for pattern in PATTERNS[:-1]:
        counted.add(pattern["name"], pattern["pattern"], mode=pattern["mode"])
    model = td.train(counted, draw_events(300, 5), horizons=["9 s"])
    watch, stream = watch_patterns(model, PATTERNS, lateness="2 s"), draw_events(80, 6)
    assert len(watch.detect_many(stream[:50]).forecasts)
    return watch, stream[50:], 300


def watch_learning():
    """Return a detector that began with nothing and learns."""
    watch = td.Detector(learn=True)
    chosen = [pattern for pattern in PATTERNS if pattern["name"] in ("next to", "between", "soon", "never", "joined")]
    for pattern in chosen:
        watch.add(pattern["name"], pattern["pattern"], mode=pattern["mode"], horizon="3 own events", tell="every")
    stream = draw_events(150, 7)
    watch.detect_many(stream[:60])
    watch.add("each", PATTERNS[10]["pattern"], mode="next", horizon="9 s", threshold=0.4)
    watch.detect_many(stream[60:90])
    return watch, stream[90:], 500


def watch_learning_on():
    """Return a detector that goes on learning from a model that forgets."""
    chosen = [pattern for pattern in PATTERNS if pattern["name"] in ("both", "thrice", "quiet")]
    counted = td.Detector()
    for pattern in chosen:
        counted.add(pattern["name"], pattern["pattern"], mode=pattern["mode"])
    model = td.train(counted, draw_events(200, 8), half_life=50, context=1, horizons=["9 s"])
    watch = watch_patterns(model, chosen, learn=True, lateness="1 s")
    stream = draw_events(100, 9, start=1000)
    watch.detect_many(stream[:60])
    return watch, stream[60:], 1400


STATES = {
    **{f"shapes-{moment}": partial(watch_shapes, moment) for moment in (60, 84, 100)},
    "kinds": watch_kinds,
    "names": watch_names,
    "foretelling": watch_foretelling,
    "learning": watch_learning,
    "learning-on": watch_learning_on,
}


def main():
    """Write the states, and what each answers to the rest of its stream."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name, watch_one in STATES.items():
        watch, rest, end = watch_one()
        state = watch.snapshot()
        inputs = {"rest": rest, "end": datetime.fromtimestamp(end, UTC)}
        inputs |= collect_answer(td.Detector.resume(state), **inputs)
        alone = [*list_detections(watch.detect_many(rest, on_error="collect")), *list_detections(watch.on_time(end))]
        assert alone == [*inputs["found"], *inputs["passed"]], name
        assert alone, name
        if watch.model is None:  # models in a state are packed, and packers change
            inputs["again"] = hashlib.blake2b(td.Detector.resume(state).snapshot()).hexdigest()
        write(f"states/{name}.state.gz", state)
        write(f"states/{name}.json.gz", inputs)


if __name__ == "__main__":
    main()
