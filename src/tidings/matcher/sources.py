"""Subscriptions as they come: pairs, triples with a notation, a mapping, or Arrow columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tidings.errors import TidingsError
from tidings.model.events import is_arrow


def pairs_of(subscriptions: Any) -> Iterator[tuple[Any, Any, str]]:
    """Yield id, filter and notation."""
    if is_arrow(subscriptions):
        yield from _columns(subscriptions)
        return
    if isinstance(subscriptions, Mapping):
        subscriptions = subscriptions.items()
    if isinstance(subscriptions, str | bytes) or not isinstance(subscriptions, Iterable):
        msg = "add_many takes pairs of id and filter, or an Arrow table with columns `id` and `filter`"
        raise TidingsError(msg)
    for given in subscriptions:
        yield _triple(given)


def _triple(given: Any) -> tuple[Any, Any, str]:
    if isinstance(given, tuple | list) and len(given) == 2:
        return given[0], given[1], "text"
    if isinstance(given, tuple | list) and len(given) == 3:
        return given[0], given[1], given[2] or "text"
    msg = f"a subscription is a pair of id and filter, not {given!r}"
    raise TidingsError(msg)


def _columns(table: Any) -> Iterator[tuple[Any, Any, str]]:
    names = table.schema.names
    missing = [name for name in ("id", "filter") if name not in names]
    if missing:
        msg = f"the table of subscriptions lacks the column `{missing[0]}`; it has {', '.join(names)}"
        raise TidingsError(msg)
    ids, filters = table.column("id").to_pylist(), table.column("filter").to_pylist()
    notations = table.column("notation").to_pylist() if "notation" in names else ["text"] * len(ids)
    for id, filter, notation in zip(ids, filters, notations, strict=True):
        yield id, filter, notation or "text"
