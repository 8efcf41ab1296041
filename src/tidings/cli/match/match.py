"""`tidings match`: JSON lines of event and subscription, as the events come.

Events go through in batches, each written out and flushed before the next is read, so memory stays small and pipes
flow. A bad event never stops the rest: it is a dead letter, counted and reported at the end.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from tidings.cli import render
from tidings.cli.input_files import MAX_SHOWN, RejectedRow, Rejections, describe_kept, open_events, read_event_id
from tidings.cli.options import UnknownChoice
from tidings.cli.render import RowWriter
from tidings.errors import BadEvent, UnknownAttributes
from tidings.matcher import Matcher
from tidings.matcher.unknown_names import find_asking, refuse_unknown

if TYPE_CHECKING:
    from tidings.cli.match.subscription_origin import SubscriptionOrigin
    from tidings.matcher.loading.row_files import RowFile
    from tidings.matcher.loading.row_readers import Row


def run(
    origin: SubscriptionOrigin,
    events: str,
    *,
    event_id: str | None,
    unknown: UnknownChoice,
    dead_letters: Path | None,
    quiet: bool,
) -> None:
    """Match the events and print the pairs; names that the columns of their file do not have are refused first."""
    started = time.perf_counter()
    with open_events(events, form=origin.form, dead_letters=dead_letters) as ([file], letters):
        matcher = origin.open_matcher()
        if unknown is UnknownChoice.error:
            _refuse_unknown(matcher, file, skip=origin.skip_bad)
        dead = Rejections("could not be read and were not matched", letters)
        writer, total, matched = RowWriter[str](), 0, 0
        with render.show_progress(file, "events", beside_output=True) as batches:
            for batch in batches:
                total += len(batch)
                matched += _match_batch(batch, matcher, event_id, writer, dead)
    if mismatches := matcher.mismatches():
        more = f"\nand {len(mismatches) - MAX_SHOWN:,} attributes more" if len(mismatches) > MAX_SHOWN else ""
        render.warn("\n".join(map(str, mismatches[:MAX_SHOWN])) + more)
    dead.warn(total, describe_kept(dead_letters))
    if not quiet:
        counts = f"{total:,} events, {len(matcher):,} subscriptions: {writer.count:,} matches"
        seconds = time.perf_counter() - started
        render.note(f"{counts}, {matched:,} events with a match, {dead.count:,} dead letters ({seconds:.1f} s)")


def _match_batch(
    batch: list[Row], matcher: Matcher, event_id: str | None, writer: RowWriter[str], dead: Rejections
) -> int:
    """Write the matches of a batch, record the events that cannot be read, and count those with a match."""
    bad: list[RejectedRow] = []
    good: list[tuple[object, Row]] = []
    for row in batch:
        try:
            good.append((read_event_id(row, event_id), row))
        except BadEvent as problem:
            bad.append(RejectedRow(row.number, str(problem), row))
    matches = matcher.match_many([row.values for _, row in good], on_error="collect")
    bad += [RejectedRow(good[letter.index][0], letter.reason, good[letter.index][1]) for letter in matches.dead_letters]
    # Formatted here: ids are the only values, and a call of its own for each pair would be felt.
    writer.write_rows(
        [f'{{"event": {_to_json(good[index][0])}, "subscription": {_to_json(id)}}}' for index, id in matches]
    )
    dead.record(bad)
    return len(set(matches.event_index.tolist()))


def _to_json(value: object) -> str:
    return str(value) if type(value) is int else render.to_json(value)


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
