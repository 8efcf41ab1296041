"""Columns of events that were read one by one.

Each value is mapped to each view by `views.select_encoder`, for one event as for many; a value that a view cannot
read is `UNREADABLE`, and an event has each encoded value once. Cost: one pass over the events for each column; a
single event with plain numbers costs about a microsecond a column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tidings.engine.arrays import compute_starts, expand_ranges
from tidings.engine.compile.columns import (
    EXACT,
    UNREADABLE,
    UNREADABLE_TEXT,
    Column,
    EventColumn,
    EventColumns,
    Numbers,
    Texts,
    View,
    split_number,
    to_typed_attribute,
)
from tidings.engine.events.views import ENCODERS, ViewedValue, select_encoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from tidings.algebra import Reading, Setting
    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.engine.exact.text_automaton import TextAutomaton
    from tidings.kernels.array_types import FloatArray, IntArray

NO_PATTERN = -1
"""Stands in a `PATTERNS` column for text that satisfies no pattern."""

FinderLookup: TypeAlias = "Callable[[Column], TextAutomaton]"
"""Returns the automaton of a `PATTERNS` column."""


def refuse_patterns(column: Column) -> TextAutomaton:
    """Stand for the lookup where no `PATTERNS` column is wanted: each segment finds its text patterns by itself."""
    raise LookupError(column)


def build_columns(
    readings: Sequence[Reading], wanted: Iterable[Column], *, setting: Setting, automata: FinderLookup
) -> EventColumns:
    """Return the wanted columns of these events, without those in which no event has a value."""
    if len(readings) == 1:
        return _build_single(readings[0], wanted, setting, automata)
    batch: EventColumns = {}
    count, by_attribute = len(readings), _group_values(readings)
    for column in wanted:
        events, value_lists = by_attribute.get(to_typed_attribute(column), _NOTHING)
        match column.view:
            case View.EXISTS:
                exists = [bool(reading.elements.get(column.attribute)) for reading in readings]
                for event in events:
                    exists[event] = True
                event_column = build_flags(exists)
            case View.NULL:
                event_column = build_flags([column.attribute in reading.nulls for reading in readings])
            case View.PATTERNS:
                event_column = _encode_patterns(column, value_lists, automata)
            case _:
                event_column = _encode_column(column, value_lists, setting) if value_lists else None
        if event_column is not None:
            is_complete = len(value_lists) == count or column.view in (View.EXISTS, View.NULL)
            batch[column] = event_column if is_complete else _scatter_column(event_column, events, count)
    return batch


_NOTHING: tuple[list[int], list[tuple[Any, ...]]] = ([], [])


def _group_values(readings: Sequence[Reading]) -> dict[TypedAttribute, tuple[list[int], list[tuple[Any, ...]]]]:
    """Return, for each attribute, the events that have it and their values.

    Of many attributes that filters name, an event has a few: so the cost is that of the values, not of the names.
    """
    by_attribute: dict[TypedAttribute, tuple[list[int], list[tuple[Any, ...]]]] = {}
    for event, reading in enumerate(readings):
        for name, values in reading.values.items():
            if values:
                group = by_attribute.get(name)
                if group is None:
                    group = by_attribute[name] = ([], [])
                group[0].append(event)
                group[1].append(values)
    return by_attribute


def _encode_column(column: Column, value_lists: list[tuple[Any, ...]], setting: Setting) -> EventColumn | None:
    encode, starts = select_encoder(column, setting), None
    if max(map(len, value_lists), default=0) <= 1:
        codes: list[ViewedValue | None] = [values[0] if values else None for values in value_lists]
        if column.view is not View.NUMBER or not set(map(type, codes)) <= _NUMERIC:
            codes = [None if code is None else replace_unread(encode(code)) for code in codes]
    else:
        parts = [dict.fromkeys(replace_unread(encode(value)) for value in values) for values in value_lists]
        starts = compute_starts([len(part) for part in parts])
        codes = [code for part in parts for code in part]
    if codes.count(None) == len(codes):
        return None
    if column.view.is_bytewise:
        return EventColumn(pack_texts(codes), starts=starts)
    return _encode_numbers(codes, starts)


_NUMERIC = {int, float, bool, type(None)}


def replace_unread(code: ViewedValue | None) -> ViewedValue:
    """Return the code of a value, `UNREADABLE` where the view cannot read it."""
    return UNREADABLE if code is None else code


def _scatter_column(column: EventColumn, events: list[int], count: int) -> EventColumn:
    """Return a column of some events as one of all `count` events; the others have no value."""
    indexes = np.array(events, dtype=np.int64)
    if column.starts is not None:
        counts = np.zeros(count, dtype=np.int64)
        counts[indexes] = np.diff(column.starts)
        return EventColumn(column.low, column.high, column.open, compute_starts(counts))
    low = _scatter_values(column.low, indexes, count)
    high = None if column.high is None else _scatter_values(column.high, indexes, count)
    return EventColumn(low, high, None if column.open is None else _scatter_array(column.open, indexes, count, 0))


def _scatter_values(points: Any, indexes: IntArray, count: int) -> Any:
    if isinstance(points, Texts):
        return Texts(_scatter_array(points.index, indexes, count, -1), points.distinct)
    rest = None if points.rest is None else _scatter_array(points.rest, indexes, count, 0)
    return Numbers(_scatter_array(points.near, indexes, count, np.nan), rest)


def _scatter_array(values: NDArray[Any], indexes: IntArray, count: int, empty: float) -> NDArray[Any]:
    whole = np.full(count, empty, values.dtype)
    whole[indexes] = values
    return whole


def _encode_numbers(codes: list[Any], starts: IntArray | None) -> EventColumn:
    if tuple not in set(map(type, codes)):
        return EventColumn(pack_numbers(codes), starts=starts)
    spans = [code if isinstance(code, tuple) else (code, code, 0) for code in codes]
    ends = [[span[side] if span[side] is not None or span[2] == 0 else 0.0 for span in spans] for side in (0, 1)]
    kinds = np.array([span[2] for span in spans], dtype=np.uint8)
    return EventColumn(pack_numbers(ends[0]), pack_numbers(ends[1]), kinds, starts)


def pack_numbers(values: list[Any]) -> Numbers:
    """Return numbers without loss; None stands for no value."""
    near = np.array(values, dtype=np.float64)
    if not (np.abs(near[np.isfinite(near)]) >= EXACT).any():
        return Numbers(near)
    rest = np.array([split_number(value)[1] if type(value) is int else 0 for value in values], dtype=np.int16)
    return Numbers(near, rest if rest.any() else None)


def pack_texts(values: list[Any]) -> Texts:
    """Return byte strings, each distinct one once; None stands for no value."""
    indexes: dict[bytes, int] = {}
    index = [indexes.setdefault(value, len(indexes)) if type(value) is bytes else _NO_TEXT[value] for value in values]
    return Texts(np.array(index, dtype=np.int32), list(indexes))


_NO_TEXT = {None: -1, UNREADABLE: UNREADABLE_TEXT}


def build_flags(flags: Any) -> EventColumn | None:
    """Return a column that has 0 where a flag is true; None where none is."""
    mask = np.asarray(flags, dtype=bool)
    return EventColumn(Numbers(np.where(mask, 0.0, np.nan))) if mask.any() else None


def _encode_patterns(column: Column, value_lists: list[tuple[Any, ...]], automata: FinderLookup) -> EventColumn | None:
    indexes: dict[Any, int] = {}
    events = [event for event, values in enumerate(value_lists) for _ in values]
    if not events:
        return None
    texts = [value if isinstance(value, str) else None for values in value_lists for value in values]
    index = [-1 if text is None else indexes.setdefault(text, len(indexes)) for text in texts]
    return build_pattern_column(len(value_lists), np.array(events), np.array(index), list(indexes), automata(column))


def build_pattern_column(
    count: int, events: IntArray, index: IntArray, texts: Sequence[str], automaton: TextAutomaton
) -> EventColumn:
    """Return the `PATTERNS` column of `count` events, where event `events[i]` holds `texts[index[i]]` (-1: no text).

    An event has the ids of the patterns that its texts satisfy, each once and ascending: so the column decides what
    some text satisfies or none does, not what all of them do.
    """
    starts, ids = (np.asarray(array, dtype=np.int64) for array in automaton.find_many(texts))
    starts = np.append(starts, starts[-1])  # a value that is not a text has the last place, and no ids
    counts = np.diff(starts)[index]
    owners, ids = np.repeat(events, counts), ids[expand_ranges(starts[index], counts)]
    without = np.setdiff1d(events, owners)
    owners, ids = np.concatenate([owners, without]), np.concatenate([ids, np.full(len(without), NO_PATTERN)])
    width = int(ids.max()) + 2
    owners, ids = np.divmod(np.unique(owners * width + ids + 1), width)
    return EventColumn(Numbers((ids - 1).astype(np.float64)), starts=np.searchsorted(owners, np.arange(count + 1)))


# Filling the slots directly takes half the time of the frozen classes' own constructors (0.5 against 0.9
# microseconds for a column), which is most of what a column of one event costs.
_new = object.__new__
_set_near, _set_rest = (vars(Numbers)[name].__set__ for name in ("near", "rest"))
_set_low, _set_high, _set_open, _set_starts = (
    vars(EventColumn)[name].__set__ for name in ("low", "high", "open", "starts")
)


def _build_single(reading: Reading, wanted: Iterable[Column], setting: Setting, automata: FinderLookup) -> EventColumns:
    batch: EventColumns = {}
    plain: list[Column] = []
    near: list[Any] = []
    read_values = reading.values
    for column in wanted:
        values = read_values.get(to_typed_attribute(column), ())
        encode = ENCODERS.get(column.view)
        if encode is None or len(values) != 1:
            event_column = _build_special(column, values, reading, setting, automata)
        else:
            code: Any = encode(values[0])
            if code is None:
                code = UNREADABLE
            kind = type(code)
            if (kind is float or kind is int) and -EXACT < code < EXACT:
                plain.append(column)
                near.append(code)
                continue
            event_column = (
                EventColumn(Texts(_FIRST, [code])) if kind is bytes else _encode_column(column, [values], setting)
            )
        if event_column is not None:
            batch[column] = event_column
    if plain:
        _add_plain_numbers(batch, plain, np.array(near, dtype=np.float64))
    return batch


def _add_plain_numbers(batch: EventColumns, plain: list[Column], near: FloatArray) -> None:
    for index, column in enumerate(plain):
        low = _new(Numbers)
        _set_near(low, near[index : index + 1])
        _set_rest(low, None)
        event_column = batch[column] = _new(EventColumn)
        _set_low(event_column, low)
        _set_high(event_column, None)
        _set_open(event_column, None)
        _set_starts(event_column, None)


_FIRST = np.zeros(1, dtype=np.int32)
_PRESENT = EventColumn(Numbers(np.zeros(1)))


def _build_special(
    column: Column, values: tuple[Any, ...], reading: Reading, setting: Setting, automata: FinderLookup
) -> EventColumn | None:
    """Return the column of one event where it takes more than encoding one value."""
    match column.view:
        case View.EXISTS:
            return _PRESENT if values or reading.elements.get(column.attribute) else None
        case View.NULL:
            return _PRESENT if column.attribute in reading.nulls else None
        case View.PATTERNS:
            return _encode_patterns(column, [values], automata)
    return _encode_column(column, [values], setting) if values else None
