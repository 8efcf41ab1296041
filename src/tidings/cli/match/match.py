"""`tidings match`: JSON lines of who must hear of what, as the events come.

Events go through in batches, each written out and flushed before the next is read, so memory stays small and pipes
flow. A bad event never stops the rest: it is a dead letter, counted and reported at the end.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING

from tidings.algebra.law.event_reading import leaves
from tidings.cli import render
from tidings.cli.options import Unknown
from tidings.errors import BadEvent, FileError, UnknownAttributes
from tidings.matcher.loading.row_files import Form, RowFile
from tidings.matcher.unknown_names import asking_for, refuse_unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import TextIO

    from tidings.cli.match.subscription_origin import Origin
    from tidings.cli.options import FileForm
    from tidings.matcher import Matcher
    from tidings.matcher.loading.row_readers import Row

SHOWN = 5
"""Dead letters told in words; all of them go to the file of `--dead-letters`."""


@dataclass(slots=True)
class Tally:
    """What was done, for the closing words."""

    events: int = 0
    heard: int = 0
    pairs: int = 0
    dead: int = 0
    first: list[str] = field(default_factory=list)


def run(
    origin: Origin,
    events: str,
    *,
    event_id: str | None,
    form: FileForm | None,
    dead_letters: Path | None,
    quiet: bool,
    unknown: Unknown = Unknown.error,
) -> None:
    """Match the events and print the pairs; names that the columns of their file do not have are refused first."""
    started = time.perf_counter()
    with ExitStack() as stack:
        # The events are opened first: a wrong name is told before a million filters are read.
        file = stack.enter_context(RowFile(events, form=Form(form) if form else None))
        letters = stack.enter_context(kept_letters(dead_letters, events)) if dead_letters else None
        matcher = origin.matcher()
        if unknown is Unknown.error:
            _refuse_unknown(matcher, file, skip=origin.skip_bad)
        batches = stack.enter_context(render.progress(file, "events", beside_output=True))
        tally = Tally()
        for batch in batches:
            _match(matcher, batch, event_id=event_id, letters=letters, tally=tally)
    tell_mismatches(matcher.mismatches())
    _close(tally, len(matcher), time.perf_counter() - started, quiet=quiet, kept=dead_letters)


def tell_mismatches(mismatches: Sequence[object]) -> None:
    """Say which values could not be read as filters ask for them; what nobody hears of must not be silent."""
    lines = [str(one) for one in mismatches[:SHOWN]]
    if len(mismatches) > SHOWN:
        lines.append(f"and {len(mismatches) - SHOWN:,} attributes more")
    if lines:
        render.warning("\n".join(lines))


def _refuse_unknown(matcher: Matcher, file: RowFile, *, skip: bool) -> None:
    """Refuse names that no column of the events has; with `skip` go on without the subscriptions that ask for them."""
    columns = file.columns()
    if columns is None:
        return
    way_out = "correct the names, or say --unknown absent: then they are absent in every event"
    try:
        refuse_unknown(matcher, columns, where=f"the columns of `{file.name}` do", way_out=way_out)
    except UnknownAttributes as problem:
        if not skip:
            raise
        asking = asking_for(matcher, problem.names)
        matcher.remove_many(asking)
        render.warning(f"{problem}\ngoing on without these {len(asking):,} subscriptions")


def _match(matcher: Matcher, batch: list[Row], *, event_id: str | None, letters: TextIO | None, tally: Tally) -> None:
    dead: list[tuple[object, str, Row]] = []
    good: list[tuple[object, Row]] = []
    for row in batch:
        try:
            good.append((id_of(row, event_id), row))
        except BadEvent as problem:
            dead.append((row.number, str(problem), row))
    found = matcher.match_many([row.values for _, row in good], on_error="collect")
    dead += [(good[letter.index][0], letter.reason, good[letter.index][1]) for letter in found.dead_letters]
    lines = [f'{{"event": {_encoded(good[at][0])}, "subscription": {_encoded(id)}}}' for at, id in found]
    if lines:
        render.out("\n".join(lines))
    tally.events += len(batch)
    tally.pairs += len(lines)
    tally.heard += len(set(found.event_index.tolist()))
    _bury(dead, letters, tally)


def id_of(row: Row, event_id: str | None) -> object:
    """Return the event's id: the field that was named, else the number of its line."""
    if row.values is None:
        raise BadEvent(row.problem, attribute=None)
    if event_id is None:
        return row.number
    found = list(leaves(row.values, tuple(event_id.split("."))))
    if len(found) != 1 or not _is_name(found[0]):
        msg = f"the event has no single value `{event_id}`, which --event-id names"
        raise BadEvent(msg, attribute=event_id)
    return found[0]


def _is_name(value: object) -> bool:
    """Tell whether JSON can write the value as one thing."""
    return not (value is None or isinstance(value, dict | list) or (isinstance(value, float) and not isfinite(value)))


def _encoded(value: object) -> str:
    return str(value) if type(value) is int else render.as_json(value)


# Dead letters ----------------------------------------------------------------------------------


@contextmanager
def kept_letters(path: Path, events: str) -> Iterator[TextIO]:
    """Open the file of dead letters, which is none of the files that are read."""
    try:
        if events != "-" and path.exists() and path.samefile(events):
            msg = f"`{path}` is the file of events; give the dead letters a file of their own"
            raise FileError(msg)
        with path.open("w", encoding="utf-8", errors="backslashreplace") as file:
            yield file
    except BrokenPipeError:
        raise
    except OSError as problem:
        msg = f"cannot write the dead letters to `{path}`: {problem.strerror}"
        raise FileError(msg) from problem


def _bury(dead: list[tuple[object, str, Row]], letters: TextIO | None, tally: Tally) -> None:
    tally.dead += len(dead)
    for event, reason, row in sorted(dead, key=lambda letter: letter[2].number):
        if len(tally.first) < SHOWN:
            tally.first.append(f"{row.place}: {reason}")
        if letters is not None:
            letters.write(render.as_json({"event": event, "reason": reason, "row": row.raw}) + "\n")


def _close(tally: Tally, subscriptions: int, seconds: float, *, quiet: bool, kept: Path | None) -> None:
    if tally.dead:
        render.warning("\n".join(_about_dead(tally, kept)))
    if not quiet:
        render.note(
            f"{tally.events:,} events, {subscriptions:,} subscriptions: {tally.pairs:,} matches,"
            f" {tally.heard:,} events with a match, {tally.dead:,} dead letters ({seconds:.1f} s)"
        )


def _about_dead(tally: Tally, kept: Path | None) -> Iterator[str]:
    yield f"{tally.dead:,} of {tally.events:,} events could not be read and were not matched"
    yield from (f"  {reason}" for reason in tally.first)
    if tally.dead > len(tally.first):
        yield f"  and {tally.dead - len(tally.first):,} more"
    yield f"they are in `{kept}`" if kept else "--dead-letters FILE keeps them all"
