"""The façade over the matching algorithms.

It parses and binds subscriptions, keeps the kinds they agree on, reads events once, and hands plain
readings to the algorithm named by `kind`. Changes are all or nothing: a refused subscription leaves
everything as it was.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tidings.algebra import Binder, Needs, Reader, Setting, fold_names
from tidings.concepts import Ontology, check_surroundings, moment
from tidings.errors import BadEvent, BadSubscriptions, TidingsError, UnknownSubscription
from tidings.lang import parse
from tidings.matcher.plan import Plan
from tidings.matcher.sources import pairs_of
from tidings.matcher.why import Explanation, explained
from tidings.matchers import algorithm
from tidings.model import And, DeadLetter, EventBatch, Matches, Not, Or, Test

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tidings.algebra import Need, Reading
    from tidings.concepts import Regions
    from tidings.matchers import SubId
    from tidings.model import EventLike, Filter, Schema

DEFAULT_KIND = "brute"
"""The algorithm of `td.Matcher()`."""


class Matcher:
    """Who must hear of which event.

    >>> searches = Matcher()
    >>> searches.add("s1", "make = 'ford' and price < 9000")
    >>> searches.match({"make": "ford", "price": 8500})
    ['s1']

    Ids are `str` or `int`, not mixed. `schema`, `ontology` and `regions` say what names mean; without a
    schema, kinds come from the filters, and filters that contradict each other are refused. `now` fixes
    the time for `age(...)`; without it each call takes the time it is made at.
    """

    def __init__(
        self,
        kind: str = DEFAULT_KIND,
        *,
        schema: Schema | None = None,
        ontology: Ontology | None = None,
        regions: Regions | None = None,
        now: datetime | None = None,
    ) -> None:
        """Start without subscriptions."""
        check_surroundings(schema, ontology, regions)
        self.kind = kind
        self.schema, self.ontology, self.regions, self.now = schema, ontology, regions, moment(now)
        self._used = ontology or Ontology()
        self._algorithm = algorithm(kind)
        self._binder = Binder(schema, self._used, regions)
        self._needs = Needs(schema, self._used)
        self._filters: dict[SubId, Filter] = {}
        self._reader: Reader | None = None

    # Subscriptions -----------------------------------------------------------------------------

    def add(self, id: SubId, filter: str | Filter, *, notation: str = "text") -> None:
        """Add a subscription, or replace the one with this id."""
        for _, problem in self._staged([(id, filter, notation)], keep_good=False):
            raise problem

    def add_many(
        self, subscriptions: Any, *, on_error: Literal["raise", "collect"] = "raise"
    ) -> list[tuple[SubId, TidingsError]]:
        """Add many: pairs of id and filter, or an Arrow table with columns `id`, `filter` (and `notation`).

        All or nothing: one bad filter among a thousand raises `BadSubscriptions`, which lists every bad one,
        and adds none. With `on_error="collect"` the good ones are added and the bad ones returned.
        """
        _check_on_error(on_error)
        given = list(pairs_of(subscriptions))
        errors = self._staged(given, keep_good=on_error == "collect")
        if errors and on_error == "raise":
            raise _refused(errors, len(given))
        return errors

    def remove(self, id: SubId) -> None:
        """Remove a subscription; `UnknownSubscription`, a `KeyError`, if it is not there."""
        self._needs.discard(fold_names(self._filter(id), self._used))
        del self._filters[id]
        self._algorithm.remove(id)
        self._reader = None

    def _staged(self, given: list[tuple[SubId, Any, str]], *, keep_good: bool) -> list[tuple[SubId, TidingsError]]:
        """Enter the subscriptions one by one, then hand them to the algorithm at once; return the refusals."""
        bound: dict[SubId, Filter] = {}
        before: dict[SubId, Filter | None] = {}
        errors: list[tuple[SubId, TidingsError]] = []
        for id, source, notation in given:
            try:
                self._check_id(id)
                before.setdefault(id, self._filters.get(id))
                bound[id] = self._book(id, self._parsed(source, notation))
            except TidingsError as problem:
                errors.append((id, problem))
        if errors and not keep_good:
            self._restore(before)
            return errors
        self._algorithm.add_many(bound.items())
        self._reader = None
        return errors

    def _parsed(self, source: Any, notation: str) -> Filter:
        if isinstance(source, Test | And | Or | Not):
            return source
        if isinstance(source, dict | bool | list):
            notation = "json"
        return parse(source, notation=notation, schema=self.schema, ontology=self.ontology, regions=self.regions)

    def _book(self, id: SubId, tree: Filter) -> Filter:
        """Enter a filter and its demands, and return what it means; on refusal nothing has changed."""
        folded, old = fold_names(tree, self._used), self._filters.get(id)
        bound = self._binder.bound(folded)
        if old is not None:
            self._needs.discard(fold_names(old, self._used))
        try:
            self._needs.add(folded, f"subscription `{id}`")
        except TidingsError:
            if old is not None:
                self._needs.add(fold_names(old, self._used), f"subscription `{id}`")
            raise
        self._filters[id] = tree
        return bound

    def _restore(self, before: dict[SubId, Filter | None]) -> None:
        for id in before:
            if id in self._filters:
                self._needs.discard(fold_names(self._filters.pop(id), self._used))
        for id, old in before.items():
            if old is not None:
                self._needs.add(fold_names(old, self._used), f"subscription `{id}`")
                self._filters[id] = old

    def _check_id(self, id: SubId) -> None:
        if not _is_id(id):
            msg = f"an id is text or an integer, not {id!r}"
            raise TidingsError(msg)
        first = next(iter(self._filters), id)
        if type(first) is not type(id):
            msg = f"ids are all text or all integers: {id!r} comes after {first!r}"
            raise TidingsError(msg)

    def _filter(self, id: SubId) -> Filter:
        if id not in self:
            msg = f"no subscription has the id {id!r}"
            raise UnknownSubscription(msg)
        return self._filters[id]

    def __len__(self) -> int:
        """Count the subscriptions."""
        return len(self._filters)

    def __contains__(self, id: object) -> bool:
        """Tell whether there is a subscription with this id."""
        return _is_id(id) and id in self._filters

    def __iter__(self) -> Iterator[SubId]:
        """Yield the ids."""
        return iter(list(self._filters))

    def __getitem__(self, id: SubId) -> Filter:
        """Return a subscription's filter as written."""
        return self._filter(id)

    # Matching ----------------------------------------------------------------------------------

    def match(self, event: EventLike, *, now: datetime | None = None) -> list[SubId]:
        """Return the ids of the subscriptions that accept the event, each once, in no promised order."""
        setting = self._setting(now)
        return self._algorithm.match(self._read(event, setting), setting)

    def match_many(
        self, events: Any, *, on_error: Literal["raise", "collect"] = "raise", now: datetime | None = None
    ) -> Matches:
        """Match a list of events, an Arrow table or a `td.EventBatch`.

        A bad event raises `BadEvent`; with `on_error="collect"` it goes to `.dead_letters` with its index.
        """
        _check_on_error(on_error)
        batch, setting = EventBatch.of(events), self._setting(now)
        indexes, readings, dead = self._readings(batch, setting, collect=on_error == "collect")
        lists = self._algorithm.match_many(readings, setting)
        counts = [len(found) for found in lists]
        event_index = np.repeat(np.array(indexes, dtype=np.int64), counts)
        return Matches(event_index, [id for found in lists for id in found], len(batch), tuple(dead))  # type: ignore[arg-type]

    def _readings(
        self, batch: EventBatch, setting: Setting, *, collect: bool
    ) -> tuple[list[int], list[Reading], list[DeadLetter]]:
        indexes: list[int] = []
        readings: list[Reading] = []
        dead: list[DeadLetter] = []
        for index, event in enumerate(batch):
            try:
                readings.append(self._read(event, setting))
                indexes.append(index)
            except BadEvent as problem:
                if not collect:
                    msg = f"event {index}: {problem}"
                    raise BadEvent(msg, attribute=problem.attribute, index=index) from problem
                dead.append(DeadLetter(index, str(problem)))
        return indexes, readings, dead

    def why(self, event: EventLike, id: SubId, *, now: datetime | None = None) -> Explanation:
        """Tell why a subscription hears of an event: the tests that decided, and what they saw."""
        written, setting = self._filter(id), self._setting(now)
        bound = self._binder.bound(fold_names(written, self._used))
        return explained(id, written, bound, self._read(event, setting), setting)

    def why_not(self, event: EventLike, id: SubId, *, now: datetime | None = None) -> Explanation:
        """Tell why a subscription does not hear of an event; `matched` says if it does after all."""
        return self.why(event, id, now=now)

    def explain(self) -> Plan:
        """Return the plan: how the algorithm goes about these subscriptions."""
        return Plan(self.kind, self._algorithm.explain(), self.needs())

    def needs(self) -> dict[str, Need]:
        """Return the attributes that matching reads, with their kinds."""
        return self._needs.resolved()

    def _read(self, event: EventLike, setting: Setting) -> Reading:
        if self._reader is None:
            self._reader = Reader(self._needs.resolved(), self._used)
        return self._reader.read(event, setting.now)

    def _setting(self, now: datetime | None) -> Setting:
        return Setting(self._used, moment(now) or self.now or datetime.now(UTC))

    # Keeping -----------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write a snapshot directory; a reader sees the old one or the new one, never half."""
        from tidings.matcher.snapshot import save

        save(self, path)

    @classmethod
    def open(cls, path: str | Path) -> Matcher:
        """Open a snapshot directory; it can still add and remove."""
        from tidings.matcher.snapshot import load

        return load(path)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what was given, and build the rest again."""
        surroundings = (self.schema, self.ontology, self.regions, self.now)
        return _rebuilt, (self.kind, surroundings, list(self._filters.items()))

    def __repr__(self) -> str:
        """Show the algorithm and the number of subscriptions."""
        return f"<Matcher {self.kind}: {len(self):,} subscriptions>"


def _rebuilt(kind: str, surroundings: tuple[Any, ...], filters: Iterable[tuple[SubId, Filter]]) -> Matcher:
    schema, ontology, regions, now = surroundings
    made = Matcher(kind, schema=schema, ontology=ontology, regions=regions, now=now)
    made.add_many(filters)
    return made


def _check_on_error(on_error: str) -> None:
    if on_error not in ("raise", "collect"):
        msg = f"on_error is `raise` or `collect`, not `{on_error}`"
        raise TidingsError(msg)


def _is_id(id: object) -> bool:
    return isinstance(id, str | int) and not isinstance(id, bool)


def _refused(errors: list[tuple[SubId, TidingsError]], total: int) -> BadSubscriptions:
    listed = "\n".join(f"  `{id}`: {problem}".replace("\n", "\n    ") for id, problem in errors)
    msg = f"{len(errors)} of {total} subscriptions were refused, so none was added:\n{listed}"
    return BadSubscriptions(msg, errors=tuple(errors))
