"""The façade over the engine and the other matching algorithms.

It parses and binds subscriptions, keeps the kinds they agree on, reads events once, and hands them to the
algorithm named by `kind`. Changes are all or nothing: a refused subscription leaves everything as it was.
Any number of threads may match while others change it; each match sees one state. So does a process that is forked
meanwhile (`tidings.forks`).
"""

from __future__ import annotations

from datetime import UTC, datetime
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tidings import forks
from tidings.algebra import Reader, Setting
from tidings.algebra.law.mismatches import Mismatches
from tidings.concepts import Ontology, Vocabulary, parse_now
from tidings.engine.engine import Engine
from tidings.engine.events.event_source import Read
from tidings.engine.segment import Crowded
from tidings.errors import TidingsError, UnknownSubscription
from tidings.matcher.admission import Admission, check_ids, is_id, build_refusal
from tidings.matcher.algorithm_store import AlgorithmStore
from tidings.matcher.event_input import Arriving
from tidings.matcher.loading.parameter_table import in_parameters
from tidings.matcher.loading.subscription_input import Watched, pairs_of
from tidings.matcher.mismatch_report import MismatchReport, describe_mismatches
from tidings.matcher.plan import Plan
from tidings.matcher.registry import ENGINE, build_algorithm
from tidings.matcher.results import ids_of, concatenate_matches, matches_of
from tidings.matcher.why import Explanation, explain_match
from tidings.model import EventBatch, Matches
from tidings.model.events import is_arrow

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    from tidings.algebra import Need, Reading, Requirements
    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.concepts import Regions
    from tidings.engine.state import State
    from tidings.matcher.admission import RowRefusals
    from tidings.matcher.algorithm import SubId
    from tidings.matcher.loading.bulk_load import Load
    from tidings.model import DeadLetter, EventLike, Filter, Schema

DEFAULT_KIND = ENGINE
"""The algorithm of `td.Matcher()`."""


BATCH = 32
"""From so many events on, subscriptions that wait are compiled before they are asked."""


class MatchView(NamedTuple):
    """What is read of events and the subscriptions that are asked, of one moment: each change replaces both."""

    reader: Reader
    required: Requirements
    counted: frozenset[TypedAttribute]  # what mismatches are counted of
    state: State | None  # nothing: not the engine


class Piece(NamedTuple):
    """The matches of some of a batch's events; their indexes count from `first`."""

    first: int
    matches: Matches


class Matcher:
    """Who must hear of which event.

    >>> searches = Matcher()
    >>> searches.add("s1", "make = 'ford' and price < 9000")
    >>> searches.match({"make": "ford", "price": 8500})
    ['s1']

    Ids are `str` or `int`, not mixed. `schema`, `ontology` and `regions` say what names mean; without a
    schema, each filter reads an attribute as the kind it asks for, whatever other filters ask. `now` fixes
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
        Vocabulary.of(schema, ontology, regions)
        self.kind = kind
        self.schema, self.ontology, self.regions, self.now = schema, ontology, regions, parse_now(now)
        self._used = ontology or Ontology()
        self.admission = Admission(schema, ontology, self._used, regions)
        self.backend: Engine | AlgorithmStore = (
            Engine(self._used, self.admission.bind_filter, self.admission.parse_stored)
            if kind == ENGINE
            else AlgorithmStore(build_algorithm(kind, self._used), self.admission.bind_filter, self.admission.parse_stored)
        )
        self._view: MatchView | None = None
        self._mismatches = Mismatches()
        self._lock = RLock()
        forks.guard(self, forks.Level.MATCHER)

    # Subscriptions -----------------------------------------------------------------------------

    def add(self, id: SubId, filter: str | Filter, *, notation: str = "text") -> None:
        """Add a subscription, or replace the one with this id."""
        for _, problem in self._enter([(id, filter, notation)], keep_good=False):
            raise problem

    def add_many(
        self, subscriptions: Any, *, on_error: Literal["raise", "collect"] = "raise"
    ) -> list[tuple[SubId, TidingsError]]:
        """Add many: pairs of id and filter, or an Arrow table with columns `id`, `filter` (and `notation`).

        A table with `id` and no `filter` has a column for each parameter: `make` (equality; a list is a set),
        `price_from` and `price_to` (closed ends of a range), `price_above` and `price_below` (open ends),
        `spot_within` (an area in WKT). A null asks nothing, and a row is the `and` of what it asks. This is by
        far the fastest way in.

        All or nothing: one bad filter among a thousand raises `BadSubscriptions`, which lists every bad one,
        and adds none. With `on_error="collect"` the good ones are added and the bad ones returned.
        """
        check_on_error(on_error)
        keep_good = on_error == "collect"
        load_of = self._load_of(subscriptions)
        if load_of is not None:
            with self._lock:
                load = load_of(subscriptions, self.admission, self.backend, schema=self.schema, ontology=self._used)
                total, errors = load.table.num_rows, load.enter(keep_good=keep_good)
                self._view = None
        else:
            given = subscriptions if isinstance(subscriptions, Watched) else list(pairs_of(subscriptions))
            total, errors = len(given), self._enter(given, keep_good=keep_good)
        if errors and on_error == "raise":
            raise build_refusal(errors, total)
        return errors

    def _load_of(self, subscriptions: Any) -> type[Load] | None:
        """Return how a table goes in by whole columns, if it does."""
        if in_parameters(subscriptions):
            from tidings.matcher.loading.bulk_load import Load

            return Load
        if self.kind == ENGINE and is_arrow(subscriptions):
            from tidings.matcher.loading import text_load

            return text_load.TextLoad if text_load.takes(subscriptions) else None
        return None

    def _enter(self, given: list[Any], *, keep_good: bool) -> list[tuple[SubId, TidingsError]]:
        return [(given[row][0], problem) for row, problem in self.enter_rows(given, keep_good=keep_good)]

    def enter_rows(self, given: list[Any], *, keep_good: bool) -> RowRefusals:
        """Put subscriptions in force; return the rows that were refused, in order."""
        from tidings.matcher.loading import text_load

        table = text_load.table_of(given) if self.kind == ENGINE else None
        with self._lock:
            if table is not None:
                load = text_load.TextLoad(table, self.admission, self.backend, schema=self.schema, ontology=self._used)
                problems = [problem for _, problem in load.enter(keep_good=keep_good)]
                self._view = None
                return list(zip(load.refused, problems, strict=True))
            errors = self.admission.enter_rows(given, self.backend, keep_good=keep_good)
            self._view = None
        return errors

    def release_demands(self, trees: Iterable[Filter]) -> None:
        """Take back the demands of filters that are in force elsewhere, in another shard of the same whole."""
        with self._lock:
            for tree in trees:
                self.admission.release(tree)
            self._view = None

    def remove(self, id: SubId) -> None:
        """Remove a subscription; `UnknownSubscription`, a `KeyError`, if it is not there."""
        with self._lock:
            self.admission.release(self._filter(id))
            self.backend.discard([id])
            self._view = None

    def remove_many(self, ids: Iterable[SubId]) -> None:
        """Remove many; if one of them is not there, `UnknownSubscription`, and none is removed."""
        gone = check_ids(ids)
        with self._lock:
            found = self.backend.remove(gone)
            if found.missing:
                others = f" (nor {len(found.missing) - 1:,} others of these)" if len(found.missing) > 1 else ""
                msg = f"no subscription has the id {found.missing[0]!r}{others}"
                raise UnknownSubscription(msg)
            for (name, demand), count in found.demands.items():
                self.admission.needs.count(name, demand, -count)
            for tree in found.trees:
                self.admission.release(tree)
            self._view = None

    def _filter(self, id: SubId) -> Filter:
        found = self.backend.get_filter(id) if is_id(id) else None
        if found is None:
            msg = f"no subscription has the id {id!r}"
            raise UnknownSubscription(msg)
        return found

    def __len__(self) -> int:
        """Count the subscriptions."""
        return len(self.backend)

    def __contains__(self, id: object) -> bool:
        """Tell whether there is a subscription with this id."""
        return is_id(id) and id in self.backend

    def __iter__(self) -> Iterator[SubId]:
        """Yield the ids."""
        return iter(self.backend)

    def __getitem__(self, id: SubId) -> Filter:
        """Return a subscription's filter as written."""
        return self._filter(id)

    def compact(self) -> None:
        """Put all subscriptions into one index now; otherwise that happens bit by bit, in the background."""
        if isinstance(self.backend, Engine):
            self.backend.compact()

    def settle(self) -> None:
        """Wait until nothing is left to merge in the background."""
        if isinstance(self.backend, Engine):
            self.backend.settle()

    @property
    def merging(self) -> bool:
        """Whether segments are being merged in the background."""
        return isinstance(self.backend, Engine) and self.backend.is_merging

    # Matching ----------------------------------------------------------------------------------

    def match(self, event: EventLike, *, now: datetime | None = None) -> list[SubId]:
        """Return the ids of the subscriptions that accept the event, each once, in no promised order."""
        setting, moment = self._setting(now), self.current_view()
        reading = moment.reader.read(event, setting.now)
        self._mismatches.count([reading], moment.counted)
        arrivals = Read([reading], setting)
        return ids_of(self.backend.match(arrivals, moment.state))

    def match_many(
        self, events: Any, *, on_error: Literal["raise", "collect"] = "raise", now: datetime | None = None
    ) -> Matches:
        """Match a list of events, an Arrow table or a `td.EventBatch`.

        A bad event raises `BadEvent`; with `on_error="collect"` it goes to `.dead_letters` with its index.
        """
        pieces = list(self.match_in_pieces(events, on_error=on_error, now=now))
        return pieces[0].matches if len(pieces) == 1 else concatenate_matches(pieces)

    def match_in_pieces(
        self, events: Any, *, on_error: Literal["raise", "collect"] = "raise", now: datetime | None = None
    ) -> Iterator[Piece]:
        """Match as `match_many` does, for more matches than memory holds: a piece of the events after the other.

        A batch is one piece unless its matches are too many (tens of millions); a piece tells how many events
        came before it. All pieces see the subscriptions of the moment when the first was asked for.
        """
        check_on_error(on_error)
        batch, setting = EventBatch.of(events), self._setting(now)
        moment = self.prepare_view(len(batch))
        waiting = [(0, batch)]
        while waiting:
            first, some = waiting.pop()
            try:
                yield Piece(first, self._matched(some, moment, setting, collect=on_error == "collect"))
            except Crowded as crowd:
                if len(some) == 1:
                    msg = f"one event matches {crowd.pairs:,} subscriptions of one segment; split them into shards"
                    raise TidingsError(msg) from crowd
                starts = range(0, len(some), crowd.fewer)
                waiting += [(first + start, some.slice(start, crowd.fewer)) for start in reversed(starts)]

    def dead_letters(self, events: Any, *, now: datetime | None = None) -> list[DeadLetter]:
        """Return the events that cannot be read, with the reason, and ask no subscription about the others."""
        batch, moment = EventBatch.of(events), self.current_view()
        arriving = Arriving(moment.reader, moment.required, self._setting(now))
        arriving.batch(batch, () if moment.state is not None else None, collect=True)
        return sorted(arriving.dead, key=lambda letter: letter.index)

    def _matched(self, batch: EventBatch, moment: MatchView, setting: Setting, *, collect: bool) -> Matches:
        arriving = Arriving(moment.reader, moment.required, setting, self._mismatches)
        wanted = None if moment.state is None else moment.state.wanted()
        arrived = arriving.batch(batch, wanted, collect=collect)
        self._mismatches.count(arriving.readings, moment.counted)
        found = [(index, one) for arrivals, index in arrived for one in self.backend.match(arrivals, moment.state)]
        return matches_of(found, len(batch), tuple(arriving.dead))

    def why(self, event: EventLike, id: SubId, *, now: datetime | None = None) -> Explanation:
        """Tell why a subscription hears of an event: the tests that decided, and what they saw."""
        written, setting = self._filter(id), self._setting(now)
        bound = self.admission.bind_filter(written)
        return explain_match(id, written, bound, self._read(event, setting), setting)

    def why_not(self, event: EventLike, id: SubId, *, now: datetime | None = None) -> Explanation:
        """Tell why a subscription does not hear of an event; `matched` says if it does after all."""
        return self.why(event, id, now=now)

    def explain(self) -> Plan:
        """Return the plan: how the algorithm goes about these subscriptions."""
        return Plan(self.kind, self.backend.explain(), self.needs(), self.mismatches())

    def mismatches(self) -> tuple[MismatchReport, ...]:
        """Return which values of events matched so far are not of the kind that subscriptions ask for, and who asks."""
        return tuple(describe_mismatches(self._mismatches, self.backend))

    def find_readers(self, keys: Collection[TypedAttribute]) -> list[SubId]:
        """Return the ids of the subscriptions that read some attribute in one of these ways."""
        return self.backend.find_readers(keys)

    def drain_mismatches(self) -> list[list[Any]]:
        """Return the counts of `mismatches` in plain values, for who adds them up, and start counting anew."""
        if not self._mismatches.sorts:  # what fits is counted on, until something does not
            return []
        counted, self._mismatches = self._mismatches, Mismatches()
        return counted.to_rows()

    def needs(self) -> dict[str, tuple[Need, ...]]:
        """Return the attributes that matching reads, and the ways in which it reads each of them."""
        return dict(self.current_view().required.attributes)

    def current_view(self) -> MatchView:
        """Return how to read events and whom to ask; waits for a change only when nobody matched since the last one."""
        known = self._view
        if known is None:
            with self._lock:
                required = self.admission.needs.resolved()
                known = self._view = MatchView(Reader(required, self._used), required, required.lenient(), self._state)
        elif known.state is not self._state and self._lock.acquire(blocking=False):
            # Merged, and the same as before: nobody is changing it while we hold the lock.
            try:
                if self._view is known:
                    known = self._view = known._replace(state=self._state)
            finally:
                self._lock.release()
        return known

    def prepare_view(self, events: int) -> MatchView:
        """Return the moment for a batch; for more than a few events, what waits is compiled first.

        Asking what waits reads every event by itself, which costs more than an index of a few subscriptions.
        """
        moment = self.current_view()
        if events >= BATCH and moment.state and moment.state.waiting and self._lock.acquire(blocking=False):
            try:
                if isinstance(self.backend, Engine):
                    self.backend.seal()
            finally:
                self._lock.release()
            moment = self.current_view()
        return moment

    @property
    def _state(self) -> State | None:
        return self.backend.state if isinstance(self.backend, Engine) else None

    def _read(self, event: EventLike, setting: Setting) -> Reading:
        return self.current_view().reader.read(event, setting.now)

    def _setting(self, now: datetime | None) -> Setting:
        return Setting(self._used, parse_now(now) or self.now or datetime.now(UTC))

    # Keeping -----------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write a snapshot directory; a reader sees the old one or the new one, never half."""
        from tidings.matcher.snapshot.snapshot import save

        save(self, path)

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = True) -> Matcher:
        """Open a snapshot directory; it can still add and remove.

        The files are mapped, and each is compared with its checksum once in this process: a damaged one is refused.
        `verify=False` saves that (5 ms for 100 MB in memory); then damage may give wrong answers or end the process.
        """
        from tidings.matcher.snapshot.snapshot import load

        return load(path, verify=verify)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the engine's arrays; of other kinds what was given, to build the rest again."""
        from tidings.matcher.snapshot.snapshot import packed, unpacked

        arrays = packed(self)
        if arrays is not None:
            return unpacked, (arrays,)
        surroundings = (self.schema, self.ontology, self.regions, self.now)
        return _rebuilt, (self.kind, surroundings, [(id, self._filter(id)) for id in self])

    def __repr__(self) -> str:
        """Show the algorithm and the number of subscriptions."""
        return f"<Matcher {self.kind}: {len(self):,} subscriptions>"


def _rebuilt(kind: str, surroundings: tuple[Any, ...], filters: Iterable[tuple[SubId, Filter]]) -> Matcher:
    schema, ontology, regions, now = surroundings
    made = Matcher(kind, schema=schema, ontology=ontology, regions=regions, now=now)
    made.add_many(filters)
    return made


def check_on_error(on_error: str) -> None:
    """Refuse what is none of the two ways to treat what is bad."""
    if on_error not in ("raise", "collect"):
        msg = f"on_error is `raise` or `collect`, not `{on_error}`"
        raise TidingsError(msg)
