"""Subscriptions as they come: pairs, triples with a notation, a mapping, or Arrow columns `id` and `filter`.

Tables that say their filters by a column for each parameter are read in `matcher.loading.parameter_table`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from tidings.errors import TidingsError
from tidings.model.arrow_types import is_arrow

if TYPE_CHECKING:
    import pyarrow as pa

Submission: TypeAlias = tuple[Any, Any, str]
"""An id, a filter in any form, and its notation."""

Watch: TypeAlias = Callable[[int, int], None]
"""Called with the number of subscriptions read so far, and of all; once they are equal, indexing begins."""

WATCH_INTERVAL = 1000
"""Subscriptions between two calls of the watch."""


class WatchedSubscriptions(list[Submission]):
    """Subscriptions with their notations that tell how far they have been read."""

    def __init__(self, subscriptions: Iterable[Submission], watch: Watch | None) -> None:
        super().__init__(subscriptions)
        self._watch = watch

    def __iter__(self) -> Iterator[Submission]:
        if self._watch is None:
            yield from super().__iter__()
            return
        for count, subscription in enumerate(super().__iter__()):
            if count % WATCH_INTERVAL == 0:
                self._watch(count, len(self))
            yield subscription
        self._watch(len(self), len(self))


def iterate_subscriptions(subscriptions: Any) -> Iterator[Submission]:
    """Yield id, filter and notation."""
    if is_arrow(subscriptions) and hasattr(subscriptions, "schema") and hasattr(subscriptions, "column"):
        yield from _read_table(subscriptions)
        return
    if isinstance(subscriptions, Mapping):
        subscriptions = subscriptions.items()
    if isinstance(subscriptions, str | bytes) or is_arrow(subscriptions) or not isinstance(subscriptions, Iterable):
        msg = (
            "add_many takes pairs of id and filter, or an Arrow table with columns `id` and `filter`,"
            f" or `id` and parameters such as `price_to`; not `{type(subscriptions).__name__}`"
        )
        raise TidingsError(msg)
    for entry in subscriptions:
        if not isinstance(entry, tuple | list) or len(entry) not in (2, 3):
            msg = f"a subscription is a pair of id and filter, not {entry!r}"
            raise TidingsError(msg)
        yield entry[0], entry[1], (entry[2] if len(entry) == 3 else None) or "text"


def _read_table(table: pa.Table | pa.RecordBatch) -> Iterator[Submission]:
    names = table.schema.names
    missing = [name for name in ("id", "filter") if name not in names]
    if missing:
        msg = f"the table of subscriptions lacks the column `{missing[0]}`; it has {', '.join(names)}"
        raise TidingsError(msg)
    ids, filters = table.column("id").to_pylist(), table.column("filter").to_pylist()
    notations = table.column("notation").to_pylist() if "notation" in names else ["text"] * len(ids)
    for id, filter, notation in zip(ids, filters, notations, strict=True):
        yield id, filter, notation or "text"
