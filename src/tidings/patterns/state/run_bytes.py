"""A pattern set and a run over it as a header (JSON) and arrays, and back.

Patterns are written in their JSON notation, filters by a hash of what they say, values by kind. Keys are written as
positions among those that are still in use, so a state has nothing of what the run has forgotten. A state is loaded
into a run of the same or other patterns: what both have goes on, the rest is dropped.
"""

from __future__ import annotations

import json
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np

from tidings.errors import StateError
from tidings.kernels.patterns.layout import KEY, MOMENTS
from tidings.lang import WrittenPattern, parse_pattern, render_pattern
from tidings.matcher.snapshot.vocabulary_files import dump_vocabulary, read_vocabulary
from tidings.model.patterns import Mode
from tidings.patterns.pattern_set import PatternCatalog, PatternSet, StreamSettings
from tidings.patterns.run.event_archive import EventArchive, EventRecords
from tidings.patterns.run.event_reader import EncodedEvents, adapt_events
from tidings.patterns.run.variable_values import ValueNumbers
from tidings.patterns.state.graph_bytes import (
    Arrays,
    Header,
    State,
    dump_graph_run,
    fingerprint_text,
    load_graph_run,
    pack_state,
    unpack_state,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidings.kernels.array_types import IntArray
    from tidings.model import Filter
    from tidings.patterns.run.run import Run


def dump_patterns(patterns: PatternSet) -> State:
    """Return patterns, settings and vocabulary."""
    settings = patterns.settings
    header: Header = {
        "patterns": [
            [p.name, json.loads(render_pattern(p.pattern, "json")), str(p.mode), p.limit, p.born, p.since]
            for p in patterns.patterns
        ],
        "settings": [settings.time, settings.event_id, list(settings.keep), settings.lateness, settings.partials],
    }
    vocabulary = dump_vocabulary(patterns.vocabulary)
    return header, {f"around.{name}": data for name, data in vocabulary.items()}


def load_patterns(header: Header, arrays: Arrays) -> PatternCatalog:
    """Return the catalog of such patterns; `StateError` when the state has none."""
    if "patterns" not in header:
        msg = "this is the state of a stream, not of a detector; Detector.snapshot() writes one"
        raise StateError(msg)
    files = {name.removeprefix("around."): data for name, data in arrays.items() if name.startswith("around.")}
    time_field, event_id, keep, lateness, partials = header["settings"]
    settings = StreamSettings(time_field, event_id, tuple(keep), lateness, partials)
    catalog = PatternCatalog(read_vocabulary(files), settings)
    for name, tree, mode, limit, born, since in header["patterns"]:
        own_limit = limit if Mode(mode) is Mode.ANY else None
        pattern = parse_pattern(tree, notation="json")
        catalog.add_many([WrittenPattern(name, pattern, Mode(mode), own_limit)], born=born, since=since)
    return catalog


def run_to_bytes(run: Run) -> bytes:
    """Return the state of a run without its patterns, for a run that has them already."""
    return pack_state(*dump_run(run))


def run_from_bytes(run: Run, state: bytes) -> None:
    """Load a state into a run that has taken no events; its patterns may differ from those of the state."""
    load_run(run, *unpack_state(state))


def dump_run(run: Run) -> State:
    """Return the state of a run and of its observers."""
    graphs = [(machine, *dump_graph_run(part, machine.stable_names)) for machine, part in run.prepare_graph_runs()]
    kept, numbers = run.find_used_keys(), run.find_used_events()
    records = run.archive.select(numbers).to_lists()
    header: Header = {
        "at": [run.position, run.arrived, run.latest, run.late_count],
        "runs": [[[list(way) for way in machine.ways], head, machine.timed] for machine, head, _ in graphs],
        "names": [to_plain(run.value_numbers.values[number]) for number in kept.tolist()],
        **_dump_records(records),
        "waiting": None,
    }
    arrays: Arrays = {"held": kept, "seqs": numbers}
    for place, (_, _, state) in enumerate(graphs):
        arrays |= {f"run{place}.{name}": array for name, array in state.items()}
    if run.waiting is not None:
        header["waiting"], waiting_arrays = _dump_waiting(run.waiting, run.patterns.filters)
        arrays |= waiting_arrays
    for observer in run.observers:
        observer_header, observer_arrays = observer.dump(kept)
        header, arrays = header | observer_header, arrays | observer_arrays
    return header, arrays


def load_run(run: Run, header: Header, arrays: Arrays) -> None:
    """Load the state of a run and of its observers into a run that has taken no events."""
    run.position, run.arrived, run.latest, run.late_count = header["at"]
    kept = arrays["held"]
    # Numbers in the state are those of before: the values stand at the same positions, with nothing between them.
    run.value_numbers = ValueNumbers(from_plain(value) for value in header["names"])
    run.archive = EventArchive.of(arrays["seqs"], _load_records(header))
    for machine, graph_run in run.prepare_graph_runs():
        for place, (ways, head, *timed) in enumerate(header["runs"]):
            if tuple(map(tuple, ways)) == machine.ways and timed in ([machine.timed], []):
                own = [(name, array) for name, array in arrays.items() if name.startswith(f"run{place}.")]
                # Copies: in older states, patterns with and without times share them.
                copies = {name.removeprefix(f"run{place}."): array.copy() for name, array in own}
                _renumber(copies, head["slots"], kept, keyed=machine.has_keys)
                load_graph_run(graph_run, machine.stable_names, head, copies, len(run.value_numbers))
    if header["waiting"] is not None:
        waiting = _load_waiting(header["waiting"], arrays, kept, run.patterns.filters)
        run.waiting = adapt_events(waiting, run.patterns.filters.values(), run.patterns.attributes)
    if len(run.patterns):
        run.prepare()
        for observer in run.observers:
            observer.load(header, arrays)


def _dump_records(records: EventRecords) -> Header:
    fields = records.fields
    rows = None if fields is None else [{name: to_plain(value) for name, value in row.items()} for row in fields]
    return {"ids": [to_plain(id_) for id_ in records.ids], "fields": rows}


def _load_records(header: Header) -> EventRecords:
    rows = header["fields"]
    fields = None if rows is None else [{name: from_plain(value) for name, value in row.items()} for row in rows]
    return EventRecords([from_plain(id_) for id_ in header["ids"]], fields)


def _renumber(arrays: dict[str, IntArray], moments: int, kept: IntArray, *, keyed: bool) -> None:
    """Replace numbers of keys and values by their positions in `kept`; keys that are not there are forgotten."""
    pool = arrays["pool"]
    arrays["spent"] = arrays["spent"][np.isin(arrays["spent"][:, 1], kept) | (not keyed)]
    if keyed:
        for table, column in ((pool, KEY), (arrays["cells"], 1), (arrays["spent"], 1), (arrays["fresh"], 0)):
            table[:, column] = np.searchsorted(kept, table[:, column])
    values = pool[:, MOMENTS + moments :]
    values[values >= 0] = np.searchsorted(kept, values[values >= 0])


def _dump_waiting(waiting: EncodedEvents, filters: Mapping[Filter, int]) -> State:
    places = {number: place for place, number in enumerate(filters.values())}
    symbols = np.array([places[number] for number in waiting.symbols.tolist()], np.int64)
    hashes = [fingerprint_text(repr(tree)) for tree in filters]
    header = {**_dump_records(waiting.records.to_lists()), "values": list(waiting.values), "filters": hashes}
    arrays = {"waiting.times": waiting.times, "waiting.at": waiting.symbols_at, "waiting.symbols": symbols}
    timed = {} if waiting.timed is None else {"waiting.timed": waiting.timed}
    values = {f"waiting.value{number}": column for number, column in enumerate(waiting.values.values())}
    return header, arrays | timed | values


def _load_waiting(header: Header, arrays: Arrays, kept: IntArray, filters: Mapping[Filter, int]) -> EncodedEvents:
    """Return the events that wait, by the numbers that filters have now; -1 for filters that are gone."""
    numbers = {fingerprint_text(repr(tree)): number for tree, number in filters.items()}
    current = np.array([numbers.get(name, -1) for name in header["filters"]], np.int64)
    values = {}
    for number, name in enumerate(header["values"]):
        column = arrays[f"waiting.value{number}"]
        values[name] = np.where(column >= 0, np.searchsorted(kept, column), -1)
    times, offsets, symbols = arrays["waiting.times"], arrays["waiting.at"], current[arrays["waiting.symbols"]]
    return EncodedEvents(times, _load_records(header), offsets, symbols, values, arrays.get("waiting.timed"))


def to_plain(value: Any) -> Any:
    """Return a value as JSON; a kind that JSON does not have becomes an object `{kind: text}`."""
    match value:
        case None | bool() | int() | str():
            return value
        case np.generic():
            return to_plain(value.item())
        case list():
            return {"list": [to_plain(part) for part in value]}
        case tuple():
            return {"tuple": [to_plain(part) for part in value]}
        case dict():
            return {"record": [[to_plain(name), to_plain(part)] for name, part in value.items()]}
    for kind, (value_type, to_json, _) in _FORMS.items():
        if isinstance(value, value_type):
            return {kind: to_json(value)}
    return {"text": str(value)}


def from_plain(plain: Any) -> Any:
    """Return the value that `to_plain` wrote."""
    match plain:
        case {"list": parts}:
            return [from_plain(part) for part in parts]
        case {"tuple": parts}:
            return tuple(from_plain(part) for part in parts)
        case {"record": parts}:
            return {from_plain(name): from_plain(part) for name, part in parts}
        case dict():
            kind, content = next(iter(plain.items()))
            return content if kind == "text" else _FORMS[kind][2](content)
    return plain


# A datetime is a date too, so it stands before it.
_FORMS: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "float": (float, float.hex, float.fromhex),
    "time": (datetime, datetime.isoformat, datetime.fromisoformat),
    "date": (date, date.isoformat, date.fromisoformat),
    "clock": (time, time.isoformat, time.fromisoformat),
    "span": (timedelta, lambda span: span // timedelta(microseconds=1), lambda count: timedelta(microseconds=count)),
    "decimal": (Decimal, str, Decimal),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
    "uuid": (UUID, str, UUID),
}
