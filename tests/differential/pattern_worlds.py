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


def moment(micros):
    return EPOCH + timedelta(microseconds=micros)


def micros(at):
    return (at - EPOCH) // timedelta(microseconds=1)


def stream_of(word, attributes=None):
    """Make events of symbols with times; their ids are their places."""
    attributes = attributes or [{}] * len(word)
    rows = zip(word, attributes, strict=False)
    return [{"id": place, "time": moment(at), "kind": kind} | given for place, ((kind, at), given) in enumerate(rows)]


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
    return max([micros(one["time"]) for one in events if isinstance(one.get("time"), datetime)], default=0) + more


def hold(pattern, events, found, *, until, stream=None):
    """Hold the detections of each mode to the definition: as many, each an allowed choice, in order, well bound."""
    stream = judge_events(pattern, events) if stream is None else stream
    parts = [_Listed(part, until) for part in split_stream(pattern, stream)] if stream else []
    bound = {}
    for one in (one for part in parts for one in part.listed):
        bound.setdefault((one.events, one.at), []).append(dict(one.bindings))
    for mode in found:
        wanted = sorted(
            ((part, group) for part in parts for group in group_reports(part, until, mode=mode)), key=_first
        )
        _compare(_Context(pattern, events, mode, found[mode], wanted), pattern, found[mode], wanted, bound)


class _Listed:
    """The matches of one key, listed once for all modes."""

    def __init__(self, part, until):
        self.find_last_event, self.listed = part.find_last_event, list(part.iterate_embeddings(until))

    def iterate_embeddings(self, _until):
        return self.listed


def _first(pair):
    return sort_key(pair[1][0])


def _compare(context, pattern, found, wanted, bound):
    keys = pattern.key_variables()
    left = [(micros(one.at), tuple(one.bindings[name] for name in keys), one.events) for one in found]
    for _, group in wanted:
        choices = {one.events for one in group}
        allowed = [one for one in left if one[:2] == (group[0].at, group[0].key) and one[2] in choices]
        assert allowed, f"missing {group}{context}"
        left.remove(allowed[0])
    assert not left, f"too many: {left}{context}"
    placed = [(one.at, -1 if pattern.absence else max(one.events)) for one in found]
    assert placed == sorted(placed), f"out of order{context}"
    for one in found:
        assert dict(one.bindings) in bound[one.events, micros(one.at)], f"bound {one}{context}"


class _Context:
    """What a failure is told with; written only then."""

    def __init__(self, pattern, *told):
        self.pattern, self.told = pattern, told

    def __str__(self):
        return "\n".join(["", lang.render_pattern(self.pattern), *map(str, self.told)])
