"""A detector as bytes, and back."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np

from tidings.errors import StateError
from tidings.kernels.patterns.partials import KEY, SLOTS
from tidings.lang import WrittenPattern, parse_pattern, render_pattern
from tidings.matcher.snapshot.snapshot import read_surroundings, surroundings_of
from tidings.model.patterns import Mode
from tidings.patterns.run.event_archive import EventArchive, EventRecords, unite_numbers
from tidings.patterns.run.event_reader import EncodedEvents, adapt_events
from tidings.patterns.run.value_numbers import ValueNumbers
from tidings.patterns.state.run_bytes import load_run, dump_run, pack_state, hash_text, unpack_state

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidings.model import Filter
    from tidings.patterns.detector import Detector


def snapshot(detector: Detector) -> bytes:
    """Return a detector's patterns and where they stand."""
    header: dict[str, Any] = {
        "patterns": [
            [
                told.name,
                json.loads(render_pattern(told.pattern, "json")),
                str(told.mode),
                told.limit,
                told.born,
                told.since,
            ]
            for told in detector.watched
        ],
        "settings": [detector.time, detector.event_id, list(detector.keep), detector.lateness, detector.partials],
    }
    arrays: dict[str, Any] = {f"around.{name}": data for name, data in surroundings_of(detector._matcher).items()}
    kept, kept_arrays = detector._kept()
    at, more = position(detector)
    return pack_state(header | kept | at, arrays | kept_arrays | more)


def resume(kind: type[Detector], state: bytes) -> Detector:
    """Return the detector of a snapshot."""
    header, arrays = unpack_state(state)
    if "patterns" not in header:
        msg = "this is the state of a stream, not of a detector; Detector.snapshot() writes one"
        raise StateError(msg)
    around = {name[7:]: data for name, data in arrays.items() if name.startswith("around.")}
    when, event_id, keep, lateness, partials = header["settings"]
    made = kind(time=when, event_id=event_id, keep=keep, partials=partials, **read_surroundings(around))
    made.lateness = lateness
    made._take_back(header, arrays)
    for name, tree, mode, limit, born, since in header["patterns"]:
        made._seq = born  # a pattern sees what came after it was added
        given = limit if Mode(mode) is Mode.ANY else None
        made.add_many([WrittenPattern(name, parse_pattern(tree, notation="json"), Mode(mode), given)])
        made._watched[name] = replace(made._watched[name], since=since)
    go_on(made, header, arrays)
    return made


def where(detector: Detector) -> bytes:
    """Return where a detector's patterns stand, for a detector that has the patterns already (`forked`)."""
    return pack_state(*position(detector))


def resume_at(detector: Detector, state: bytes) -> None:
    """Let a forked detector go on where another of the same or other patterns stood (`where`)."""
    go_on(detector, *unpack_state(state))


def position(detector: Detector) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return where a detector's patterns stand, without the patterns themselves."""
    runs = [(machine, *dump_run(run, machine.names)) for machine, run in detector._runs()]
    keys = [run.keys_in_use() for _, run in detector._runs()]
    events = [run.events_in_use() for _, run in detector._runs()]
    waiting = detector._waiting
    if waiting is not None:
        keys += [column[column >= 0] for column in waiting.values.values()]
    keys += detector._held()
    held, seqs = unite_numbers(keys), unite_numbers(events)
    told = detector._archive.take(seqs).to_lists()
    header: dict[str, Any] = {
        "at": [detector._seq, detector._arrived, detector._latest, detector.late],
        "runs": [[[list(way) for way in machine.ways], head, machine.timed] for machine, head, _ in runs],
        "names": [_plain(detector._names.values[number]) for number in held.tolist()],
        "ids": [_plain(one) for one in told.ids],
        "fields": None if told.fields is None else [_fields(row) for row in told.fields],
        "waiting": None,
    }
    arrays: dict[str, Any] = {"held": held, "seqs": seqs}
    for number, (_, _, state) in enumerate(runs):
        arrays |= {f"run{number}.{name}": array for name, array in state.items()}
    if waiting is not None:
        header["waiting"], more = _of_waiting(waiting, detector)
        arrays |= more
    also, more = detector._standing(held)
    return header | also, arrays | more


def go_on(detector: Detector, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Let a detector that has seen nothing go on where another stood."""
    detector._seq, detector._arrived, detector._latest, detector.late = header["at"]
    held = arrays["held"]
    # Numbers in the state are those of before: the names stand at the same places, with nothing between them.
    names = ValueNumbers(_value(one) for one in header["names"])
    detector._names = names
    ids = [_value(one) for one in header["ids"]]
    fields = header["fields"]
    rows = None if fields is None else [{name: _value(one) for name, one in row.items()} for row in fields]
    detector._archive = EventArchive(((arrays["seqs"], EventRecords(ids, rows)),)) if ids else EventArchive()
    for machine, run in detector._runs():
        for number, (ways, head, *timed) in enumerate(header["runs"]):
            if tuple(map(tuple, ways)) == machine.ways and timed in ([machine.timed], []):
                mine = _arrays_of(f"run{number}.", arrays)
                _renumber(mine, head["slots"], held, keyed=machine.is_keyed)
                load_run(run, machine.names, head, mine, len(names))
    if header["waiting"] is not None:
        waiting = _waiting(header["waiting"], arrays, held, detector._filters)
        detector._waiting = adapt_events(waiting, detector._filters.values(), detector._reading().attributes)
    detector._stand(header, arrays)


def _arrays_of(prefix: str, arrays: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return copies of a run's arrays: in older states, patterns with and without times share them."""
    return {name.removeprefix(prefix): of.copy() for name, of in arrays.items() if name.startswith(prefix)}


def _renumber(arrays: dict[str, np.ndarray], slots: int, held: np.ndarray, *, keyed: bool) -> None:
    """Call keys and values by their places among those that are held."""
    pool = arrays["pool"]
    arrays["spent"] = arrays["spent"][np.isin(arrays["spent"][:, 1], held) | (not keyed)]
    if keyed:
        for table, column in ((pool, KEY), (arrays["cells"], 1), (arrays["spent"], 1), (arrays["fresh"], 0)):
            table[:, column] = np.searchsorted(held, table[:, column])
    values = pool[:, SLOTS + slots :]
    values[values >= 0] = np.searchsorted(held, values[values >= 0])


def _of_waiting(waiting: EncodedEvents, detector: Detector) -> tuple[dict[str, Any], dict[str, Any]]:
    told = waiting.records.to_lists()
    filters = {number: place for place, number in enumerate(detector._filters.values())}
    symbols = np.array([filters[number] for number in waiting.symbols.tolist()], np.int64)
    header = {
        "ids": [_plain(one) for one in told.ids],
        "fields": None if told.fields is None else [_fields(row) for row in told.fields],
        "values": list(waiting.values),
        "filters": [hash_text(repr(told)) for told in detector._filters],
    }
    arrays = {"waiting.times": waiting.times, "waiting.at": waiting.symbols_at, "waiting.symbols": symbols}
    if waiting.timed is not None:
        arrays["waiting.timed"] = waiting.timed
    for number, column in enumerate(waiting.values.values()):
        arrays[f"waiting.value{number}"] = column
    return header, arrays


def _waiting(
    header: dict[str, Any], arrays: dict[str, Any], held: np.ndarray, filters: Mapping[Filter, int]
) -> EncodedEvents:
    """Return the events that wait, by the numbers that filters have now; -1 for those that are gone."""
    numbers = {hash_text(repr(told)): number for told, number in filters.items()}
    known = np.array([numbers.get(name, -1) for name in header["filters"]], np.int64)
    values = {}
    for number, name in enumerate(header["values"]):
        column = arrays[f"waiting.value{number}"]
        values[name] = np.where(column >= 0, np.searchsorted(held, column), -1)
    fields = header["fields"]
    rows = None if fields is None else [{name: _value(one) for name, one in row.items()} for row in fields]
    told = EventRecords([_value(one) for one in header["ids"]], rows)
    times, ends, symbols = arrays["waiting.times"], arrays["waiting.at"], known[arrays["waiting.symbols"]]
    return EncodedEvents(times, told, ends, symbols, values, arrays.get("waiting.timed"))


def _fields(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    """Return a value as JSON keeps it; what JSON has no form for goes in a small object."""
    match value:
        case None | bool() | int() | str():
            return value
        case np.generic():
            return _plain(value.item())
        case list():
            return {"list": [_plain(part) for part in value]}
        case tuple():
            return {"tuple": [_plain(part) for part in value]}
        case dict():
            return {"record": [[_plain(name), _plain(part)] for name, part in value.items()]}
    for kind, (of, written, _) in _FORMS.items():
        if isinstance(value, of):
            return {kind: written(value)}
    return {"text": str(value)}


def _value(plain: Any) -> Any:
    match plain:
        case {"list": parts}:
            return [_value(part) for part in parts]
        case {"tuple": parts}:
            return tuple(_value(part) for part in parts)
        case {"record": parts}:
            return {_value(name): _value(part) for name, part in parts}
        case dict():
            kind, told = next(iter(plain.items()))
            return told if kind == "text" else _FORMS[kind][2](told)
    return plain


# A datetime is a date too, so it stands before it.
_FORMS: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "float": (float, float.hex, float.fromhex),
    "time": (datetime, datetime.isoformat, datetime.fromisoformat),
    "date": (date, date.isoformat, date.fromisoformat),
    "clock": (time, time.isoformat, time.fromisoformat),
    "span": (timedelta, lambda span: span // timedelta(microseconds=1), lambda told: timedelta(microseconds=told)),
    "decimal": (Decimal, str, Decimal),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
    "uuid": (UUID, str, UUID),
}
