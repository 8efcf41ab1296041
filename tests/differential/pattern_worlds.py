"""Streams for detectors, and the comparison of what they report with what the definition allows."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import tidings as td
from tidings.patterns.definition import embeddings, reports, seen

S = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PLENTY = 1_000_000


def moment(micros):
    return EPOCH + timedelta(microseconds=micros)


def micros(at):
    return (at - EPOCH) // timedelta(microseconds=1)


def stream_of(word, attributes=None):
    """Make events of symbols with times; their ids are their places."""
    attributes = attributes or [{}] * len(word)
    rows = zip(word, attributes, strict=False)
    return [
        {"id": place, "time": moment(at), "kind": kind} | given for place, ((kind, at), given) in enumerate(rows)
    ]


def detector_of(pattern, *modes, **options):
    """Watch one pattern in several modes, each under the mode's name."""
    made = td.Detector(**options)
    for mode in modes:
        made.add(str(mode), pattern, mode=mode, limit=PLENTY if mode == "any" else None)
    return made


def alike(found):
    """Tell detections in words that can be compared and sorted."""
    return [(one.pattern, micros(one.at), one.events, tuple(sorted(one.bindings.items()))) for one in found]


def same(found, others):
    """Two runs of one stream agree; what completes at one moment has no order of its own."""
    return Counter(alike(found)) == Counter(alike(others)) and [x.at for x in found] == [x.at for x in others]


def end_of(events, more=0):
    """Return when to look at the clock last, in microseconds."""
    return (micros(events[-1]["time"]) if events else 0) + more


def expect(pattern, events, found, mode, *, until):
    """Hold the detections of one pattern to the definition: as many, each an allowed choice, in order, well bound."""
    stream = seen(pattern, events)
    wanted = reports(pattern, stream, mode, until=until) if stream else []
    keys = pattern.key_variables()
    left = [(micros(one.at), tuple(one.bindings[name] for name in keys), one.events) for one in found]
    context = f"\n{td.render_pattern(pattern)}\n{events}\nmode {mode}, found {left}\nwanted {wanted}"
    for report in wanted:
        allowed = [one for one in left if one[:2] == (report.at, report.key) and one[2] in report.choices]
        assert allowed, f"missing {report}{context}"
        left.remove(allowed[0])
    assert not left, f"too many: {left}{context}"
    placed = [(one.at, -1 if pattern.absence else max(one.events)) for one in found]
    assert placed == sorted(placed), f"out of order{context}"
    _well_bound(pattern, stream, found, until, context)


def _well_bound(pattern, stream, found, until, context):
    bound = {}
    for one in embeddings(pattern, stream, until=until) if stream else []:
        bound.setdefault((one.events, one.at), []).append(dict(one.bindings))
    for one in found:
        assert dict(one.bindings) in bound[one.events, micros(one.at)], f"bound {one}{context}"
