"""Subscriptions in the form that a matcher takes fastest: columns where it takes them, else text or trees."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from tidings.errors import TidingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidings.bench.workloads import Workload
    from tidings.matcher import Matcher


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """What `add_many` is given: a table or a list of pairs; `form` is `columns`, `text` or `filters`.

    Where columns would have been faster, `refusal` is what the matcher said to them.
    """

    form: str
    given: Any
    refusal: str = ""

    def __len__(self) -> int:
        """Count them."""
        return len(self.given)

    def cut(self, begin: int, end: int) -> Subscriptions:
        """Return those from `begin` up to `end`."""
        if isinstance(self.given, list):
            return replace(self, given=self.given[begin:end])
        return replace(self, given=self.given.slice(begin, end - begin))

    @property
    def ids(self) -> list[str]:
        """Their ids."""
        if isinstance(self.given, list):
            return [id for id, _ in self.given]
        found: list[str] = self.given.column("id").to_pylist()
        return found


def spare(n: int) -> int:
    """Return how many subscriptions are made beyond `n`, to be inserted and deleted: one in twenty, 50,000 at most."""
    return max(10, min(n // 20, 50_000))


def subscriptions_for(workload: Workload, n: int, *, kind: str | None, seed: int) -> Subscriptions:
    """Make `n` subscriptions of a workload in the fastest form that a matcher of this kind takes."""
    if workload.make_columns is None:
        with unwatched():
            pairs = list(workload.pairs(n, seed))
        return Subscriptions("text" if isinstance(pairs[0][1], str) else "filters", pairs)
    refusal = refused_columns(workload, kind=kind)
    if not refusal:
        return Subscriptions("columns", workload.columns(n, seed))
    return Subscriptions("text", workload.texts(n, seed), refusal)


def refused_columns(workload: Workload, *, kind: str | None) -> str:
    """Return what a matcher of this kind says to a table of columns, shown two rows; nothing if it takes them."""
    try:
        workload.matcher(kind).add_many(workload.columns(2, 0))
    except TidingsError as problem:
        return str(problem).partition("\n")[0]
    return ""


def loaded(workload: Workload, given: Any, *, kind: str | None) -> Matcher:
    """Return a new matcher with these subscriptions."""
    made = workload.matcher(kind)
    made.add_many(given)
    return made


def texts_for(workload: Workload, n: int, *, seed: int) -> Subscriptions:
    """Make the same subscriptions as text, whatever else they could be."""
    return Subscriptions("text", workload.texts(n, seed))


def sampled(workload: Workload, n: int, *, first: int, seed: int) -> list[tuple[str, Any]]:
    """Return the first few of `n` pairs; of pairs made as they are asked for, no others are made."""
    return list(islice(workload.pairs(n, seed), first))


@contextmanager
def unwatched() -> Iterator[None]:
    """Make many objects without the collector looking through them again and again."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
