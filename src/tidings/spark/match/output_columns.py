"""The columns that `match` returns, decided and checked before anything runs.

| arguments | columns |
|---|---|
| `event_id` | `event`, `subscription`, then those of `keep` |
| `event_id`, `grouped` | `event`, `subscriptions`, then those of `keep` |
| `keep` alone | those of `keep`, then `subscription` |
| none | all of the event's, then `subscription` |
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.errors import BadFrame
from tidings.spark.schema import check_keep, require_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class OutputColumns:
    """The event columns that are `kept`, their new `names`, the column of matched ids, and the order of all."""

    kept: tuple[str, ...]
    names: tuple[str, ...]
    id_column: str
    output: tuple[str, ...]


def choose_columns(
    frame: StructType, *, event_id: str | None, keep: Sequence[str] | None, grouped: bool
) -> OutputColumns:
    """Return the output columns for these arguments; arguments that do not fit the frame raise `BadFrame`."""
    if grouped and event_id is None:
        msg = "grouped=True gives a row for each event, so it needs event_id: name the column that tells events apart"
        raise BadFrame(msg)
    check_keep(keep)
    id_column = "subscriptions" if grouped else "subscription"
    if event_id is not None:
        require_columns([event_id], frame, why="event_id")
        kept = tuple(keep or ())
        _check_kept(kept, frame, reserved=("event", id_column))
        return OutputColumns((event_id, *kept), ("event", *kept), id_column, ("event", id_column, *kept))
    kept = tuple(frame.names if keep is None else keep)
    if keep is not None:
        _check_kept(kept, frame, reserved=(id_column,))
    elif id_column in map(str.lower, kept):
        way_out = "say event_id= or keep= to choose the columns that come back"
        msg = f"the events have a column `{id_column}` themselves; {way_out}"
        raise BadFrame(msg)
    else:
        require_columns(dict.fromkeys(kept), frame, why="the events")
    return OutputColumns(kept, kept, id_column, (*kept, id_column))


def _check_kept(kept: tuple[str, ...], frame: StructType, *, reserved: tuple[str, ...]) -> None:
    # Spark resolves names whatever their case, so `Event` beside `event` would be ambiguous.
    clashes = [name for name in kept if name.lower() in reserved]
    repeated = [name for name, times in Counter(kept).items() if times > 1]
    mistakes = [
        f"keep: `{name}` is a column of the output already; rename the event's column first" for name in clashes
    ]
    mistakes += [f"keep: `{name}` is named twice" for name in repeated]
    if mistakes:
        raise BadFrame("\n".join(mistakes))
    require_columns(kept, frame, why="keep")
