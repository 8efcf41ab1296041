"""Streams for detectors, and the comparison of what they report with what the definition allows."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import tidings as td
from tidings import lang
from tidings.patterns.definition import group_reports, judge_events, sort_key, split_stream

S = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PLENTY = 1_000_000


def to_moment(micros):
    return EPOCH + timedelta(microseconds=micros)


def to_micros(at):
    return (at - EPOCH) // timedelta(microseconds=1)


def build_stream(word, attributes=None):
    """Make events of symbols with times; their ids are their places."""
    attributes = attributes or [{}] * len(word)
    rows = zip(word, attributes, strict=False)
    return [
        {"id": place, "time": to_moment(at), "kind": kind} | values for place, ((kind, at), values) in enumerate(rows)
    ]


def number_symbol(minterms, satisfied):
    """Return the number of the minterm of an event; names that are none of the pattern's do not count."""
    return minterms.symbols.index(frozenset(satisfied).intersection(minterms.names))


def walk_automaton(automaton, word):
    """Read events, each as the names it satisfies, and tell of each whether it reports."""
    state = 0
    for satisfied in word:
        symbol = number_symbol(automaton.minterms, satisfied)
        yield bool(automaton.reports[state, symbol])
        state = int(automaton.table[state, symbol])


def build_detector(pattern, *modes, **options):
    """Watch one pattern in several modes, each under the mode's name."""
    detector = td.Detector(**options)
    for mode in modes:
        detector.add(str(mode), pattern, mode=mode, limit=PLENTY if mode == "any" else None)
    return detector


def to_tuples(detections):
    """Tell detections in words that can be compared and sorted."""
    return [
        (detection.pattern, to_micros(detection.at), detection.events, tuple(sorted(detection.bindings.items())))
        for detection in detections
    ]


def is_same(detections, expected):
    """Two runs of one stream agree; what completes at one moment has no order of its own."""
    return Counter(to_tuples(detections)) == Counter(to_tuples(expected)) and [x.at for x in detections] == [
        x.at for x in expected
    ]


def find_end(events, more=0):
    """Return when to look at the clock last, in microseconds."""
    return (
        max([to_micros(event["time"]) for event in events if isinstance(event.get("time"), datetime)], default=0) + more
    )


def check_reports(pattern, events, detections, *, until, stream=None):
    """Hold the detections of each mode to the definition: as many, each an allowed choice, in order, well bound."""
    stream = judge_events(pattern, events) if stream is None else stream
    parts = [_Listed(part, until) for part in split_stream(pattern, stream)] if stream else []
    bound = {}
    for detection in (detection for part in parts for detection in part.listed):
        bound.setdefault((detection.events, detection.at), []).append(dict(detection.bindings))
    for mode in detections:
        wanted = sorted(
            ((part, group) for part in parts for group in group_reports(part, until, mode=mode)), key=get_sort_key
        )
        _compare(_Context(pattern, events, mode, detections[mode], wanted), pattern, detections[mode], wanted, bound)


class _Listed:
    """The matches of one key, listed once for all modes."""

    def __init__(self, part, until):
        self.find_last_event, self.listed = part.find_last_event, list(part.iterate_embeddings(until))

    def iterate_embeddings(self, _until):
        return self.listed


def get_sort_key(pair):
    return sort_key(pair[1][0])


def _compare(context, pattern, detections, wanted, bound):
    keys = pattern.key_variables()
    left = [
        (to_micros(detection.at), tuple(detection.bindings[name] for name in keys), detection.events)
        for detection in detections
    ]
    for _, group in wanted:
        choices = {detection.events for detection in group}
        allowed = [
            detection for detection in left if detection[:2] == (group[0].at, group[0].key) and detection[2] in choices
        ]
        assert allowed, f"missing {group}{context}"
        left.remove(allowed[0])
    assert not left, f"too many: {left}{context}"
    placed = [(detection.at, -1 if pattern.absence else max(detection.events)) for detection in detections]
    assert placed == sorted(placed), f"out of order{context}"
    for detection in detections:
        assert dict(detection.bindings) in bound[detection.events, to_micros(detection.at)], (
            f"bound {detection}{context}"
        )


class _Context:
    """What a failure is told with; written only then."""

    def __init__(self, pattern, *details):
        self.pattern, self.details = pattern, details

    def __str__(self):
        return "\n".join(["", lang.render_pattern(self.pattern), *map(str, self.details)])
