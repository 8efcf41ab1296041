"""`tidings match`: JSON lines of event and subscription, as the events come.

Events go through in batches, each written out and flushed before the next is read, so memory stays small and pipes
flow. A bad event never stops the rest: it is a dead letter, counted and reported at the end.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tidings.cli import render
from tidings.cli.match.dead_letters import (
    MAX_SHOWN,
    describe_kept,
    describe_rejected,
    open_dead_letters,
    read_event_id,
    write_dead_letter,
)
from tidings.cli.options import Unknown
from tidings.cli.row_writer import RowWriter
from tidings.errors import BadEvent, UnknownAttributes
from tidings.matcher.loading.row_files import Form, RowFile
from tidings.matcher.unknown_names import find_asking, refuse_unknown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from tidings.cli.match.subscription_origin import SubscriptionOrigin
    from tidings.matcher import Matcher
    from tidings.matcher.loading.row_readers import Row

DeadRow: TypeAlias = "tuple[object, str, Row]"
"""The id of an event that could not be read, the reason, and its row."""


@dataclass(frozen=True, slots=True)
class Matching:
    """What `match` has of its own: the events' id field, unknown names, dead letters and the closing summary."""

    event_id: str | None
    unknown: Unknown
    dead_letters: Path | None
    quiet: bool


@dataclass(slots=True)
class MatchTally:
    """Counts for the closing messages."""

    events: int = 0
    matched: int = 0  # events with at least one match
    dead: int = 0
    first: list[str] = field(default_factory=list)


def run(origin: SubscriptionOrigin, events: str, task: Matching) -> None:
    """Match the events and print the pairs; names that the columns of their file do not have are refused first."""
    started = time.perf_counter()
    with ExitStack() as stack:
        # The events are opened first: a wrong name is told before a million filters are read.
        file = stack.enter_context(RowFile(events, form=Form(origin.form) if origin.form else None))
        letters = stack.enter_context(open_dead_letters(task.dead_letters, events)) if task.dead_letters else None
        matcher = origin.open_matcher()
        if task.unknown is Unknown.error:
            _refuse_unknown(matcher, file, skip=origin.skip_bad)
        batches = stack.enter_context(render.show_progress(file, "events", beside_output=True))
        tally, writer = MatchTally(), RowWriter[str]()
        for batch in batches:
            _record_dead(_match_batch(matcher, batch, task.event_id, writer, tally), letters, tally)
    warn_of_mismatches(matcher.mismatches())
    if tally.dead:
        problem = "could not be read and were not matched"
        render.warn(describe_rejected(tally.first, tally.dead, tally.events, problem, describe_kept(task.dead_letters)))
    if not task.quiet:
        counts = f"{tally.events:,} events, {len(matcher):,} subscriptions: {writer.count:,} matches"
        dead = f"{tally.dead:,} dead letters ({time.perf_counter() - started:.1f} s)"
        render.note(f"{counts}, {tally.matched:,} events with a match, {dead}")


def warn_of_mismatches(mismatches: Sequence[object]) -> None:
    """Warn of values that could not be read as the kinds that filters require."""
    lines = [str(mismatch) for mismatch in mismatches[:MAX_SHOWN]]
    if len(mismatches) > MAX_SHOWN:
        lines.append(f"and {len(mismatches) - MAX_SHOWN:,} attributes more")
    if lines:
        render.warn("\n".join(lines))


def _refuse_unknown(matcher: Matcher, file: RowFile, *, skip: bool) -> None:
    """Refuse names that no column of the events has; with `skip` remove the subscriptions that use them."""
    columns = file.find_columns()
    if columns is None:
        return
    way_out = "correct the names, or say --unknown absent: then they are absent in every event"
    try:
        refuse_unknown(matcher, columns, where=f"the columns of `{file.name}` do", way_out=way_out)
    except UnknownAttributes as problem:
        if not skip:
            raise
        asking = find_asking(matcher, problem.names)
        matcher.remove_many(asking)
        render.warn(f"{problem}\ngoing on without these {len(asking):,} subscriptions")


def _match_batch(
    matcher: Matcher, batch: list[Row], event_id: str | None, writer: RowWriter[str], tally: MatchTally
) -> list[DeadRow]:
    """Write the matches of a batch; return the events that could not be read, each with the reason."""
    dead: list[DeadRow] = []
    good: list[tuple[object, Row]] = []
    for row in batch:
        try:
            good.append((read_event_id(row, event_id), row))
        except BadEvent as problem:
            dead.append((row.number, str(problem), row))
    matches = matcher.match_many([row.values for _, row in good], on_error="collect")
    dead += [(good[letter.index][0], letter.reason, good[letter.index][1]) for letter in matches.dead_letters]
    # Formatted here: ids are the only values, and a call of its own for each pair would be felt.
    writer.write_rows([f'{{"event": {_to_json(good[at][0])}, "subscription": {_to_json(id)}}}' for at, id in matches])
    tally.events += len(batch)
    tally.matched += len(set(matches.event_index.tolist()))
    return dead


def _to_json(value: object) -> str:
    return str(value) if type(value) is int else render.to_json(value)


def _record_dead(dead: list[DeadRow], letters: TextIO | None, tally: MatchTally) -> None:
    tally.dead += len(dead)
    for event, reason, row in sorted(dead, key=lambda letter: letter[2].number):
        if len(tally.first) < MAX_SHOWN:
            tally.first.append(f"{row.place}: {reason}")
        if letters is not None:
            write_dead_letter(letters, event, reason, row)
