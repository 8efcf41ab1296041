"""`Matcher`: subscriptions in, events in, ids of the subscriptions that the events satisfy out.

A façade over three parts: `Admission` reads filters and counts what they ask of attributes, a `Backend` (the engine, or
an algorithm of a paper) keeps them and finds matches, and a `MatchView` says how events are read for the filters that
are in force. Changes are all or nothing: a refused subscription leaves everything as it was. Any number of threads may
match while others change the matcher: a match sees one view. So does a forked process (`tidings.forks`).
"""

from __future__ import annotations

from datetime import UTC, datetime
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tidings import forks
from tidings.algebra import AttributeReader, ReadSpec, Setting
from tidings.algebra.law.mismatches import MismatchCounts
from tidings.concepts import Ontology, Regions, Vocabulary, parse_now
from tidings.engine.events.event_source import ReadEvents
from tidings.engine.segment import TooManyPairs
from tidings.errors import TidingsError, UnknownSubscription
from tidings.matcher.admission import build_refusal, check_ids, check_on_error, is_id
from tidings.matcher.content import CapturedContent, build_content
from tidings.matcher.event_input import BatchReader, MatchView
from tidings.matcher.live.versions import load_folder
from tidings.matcher.loading import text_load
from tidings.matcher.loading.bulk_load import Load
from tidings.matcher.loading.parameter_table import is_parameter_table
from tidings.matcher.loading.subscription_input import iterate_subscriptions
from tidings.matcher.match_results import build_matches, concatenate_matches, list_ids
from tidings.matcher.mismatch_report import MismatchReport, describe_mismatches
from tidings.matcher.plan import Plan
from tidings.matcher.registry import ENGINE
from tidings.matcher.snapshot.snapshot import pack, save, unpack
from tidings.matcher.tuning import MATCHER_TUNING, MatcherTuning
from tidings.matcher.why import Explanation, explain_match
from tidings.model import DeadLetter, EventBatch, EventLike, Filter, Matches, Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from tidings.matcher.admission import RowRefusals
    from tidings.matcher.algorithm import SubId
    from tidings.matcher.content import MatcherContent
    from tidings.matcher.loading.subscription_input import Submission


class Piece(NamedTuple):
    """The matches of some of a batch's events; their indexes count from `first`."""

    first: int
    matches: Matches


class Matcher:
    """Subscriptions, and which of them an event satisfies.

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
        kind: str = ENGINE,
        *,
        schema: Schema | None = None,
        ontology: Ontology | None = None,
        regions: Regions | None = None,
        now: datetime | None = None,
        tuning: MatcherTuning = MATCHER_TUNING,
        content: MatcherContent | None = None,
    ) -> None:
        """Start empty, or with the `content` of a snapshot, which stands for the arguments before `tuning`."""
        if content is None:
            content = build_content(kind, Vocabulary.of(schema, ontology, regions), now)
        self.kind, self.now, self.tuning = content.kind, parse_now(content.now), tuning
        self.admission, self.backend = content.admission, content.backend
        vocabulary = content.admission.vocabulary
        self.schema, self.ontology, self.regions = vocabulary.schema, vocabulary.ontology, vocabulary.regions
        self.mismatch_counts = MismatchCounts()
        self._view: MatchView | None = None
        self.lock = RLock()
        forks.guard(self, forks.Level.MATCHER)

    # Subscriptions -----------------------------------------------------------------------------

    def add(self, id: SubId, filter: str | Filter, *, notation: str = "text") -> None:
        """Add a subscription, or replace the one with this id."""
        for _, problem in self.enter_rows([(id, filter, notation)], keep_good=False):
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
        keep_good, takes_texts = on_error == "collect", self.backend.bulk_engine is not None
        if is_parameter_table(subscriptions) or (takes_texts and text_load.is_worth_columns(subscriptions)):
            ids, refusals = subscriptions.column("id"), self.enter_table(subscriptions, keep_good=keep_good)
            total, errors = len(ids), [(ids[row].as_py(), problem) for row, problem in refusals]
        else:
            rows = list(iterate_subscriptions(subscriptions))
            refusals = self.enter_rows(rows, keep_good=keep_good)
            total, errors = len(rows), [(rows[row][0], problem) for row, problem in refusals]
        if errors and on_error == "raise":
            raise build_refusal(errors, total)
        return errors

    def enter_rows(self, rows: list[Submission], *, keep_good: bool) -> RowRefusals:
        """Put triples of id, filter and notation in force; return the rows that were refused, in order.

        Where one is refused, nothing is put in force, unless `keep_good`.
        """
        table = text_load.build_text_table(rows) if self.backend.bulk_engine is not None else None
        if table is not None:
            return self.enter_table(table, keep_good=keep_good)
        with self.lock:
            refusals = self.admission.enter_rows(rows, self.backend, keep_good=keep_good)
            self._view = None  # only now: until then, readers go on with the old one
        return refusals

    def enter_table(self, table: pa.Table | pa.RecordBatch, *, keep_good: bool) -> RowRefusals:
        """Put an Arrow table of parameters, or of filters in text, in force as `enter_rows` does with triples."""
        build_load = Load if is_parameter_table(table) else text_load.build_text_load
        with self.lock:
            load = build_load(table, self.admission, self.backend, bulk_rows=self.tuning.bulk_rows)
            refusals = load.enter(keep_good=keep_good)
            self._view = None
        return refusals

    def release_demands(self, filters: Iterable[Filter]) -> None:
        """Take back the demands of filters that are in force elsewhere, in another shard of the same whole."""
        with self.lock:
            for tree in filters:
                self.admission.release(tree)
            self._view = None

    def remove(self, id: SubId) -> None:
        """Remove a subscription; `UnknownSubscription`, a `KeyError`, if there is none with this id."""
        if not is_id(id):
            raise _build_unknown([id])
        self._remove([id])

    def remove_many(self, ids: Iterable[SubId]) -> None:
        """Remove many; if one of them is unknown, `UnknownSubscription`, and none is removed."""
        self._remove(check_ids(ids))

    def _remove(self, ids: list[SubId]) -> None:
        with self.lock:
            if (removal := self.backend.remove(ids)).missing:
                raise _build_unknown(removal.missing)
            self.admission.release_removed(removal)
            self._view = None

    def __len__(self) -> int:
        return len(self.backend)

    def __contains__(self, id: object) -> bool:
        return is_id(id) and id in self.backend

    def __iter__(self) -> Iterator[SubId]:
        return iter(self.backend)

    def __getitem__(self, id: SubId) -> Filter:
        if not is_id(id) or (tree := self.backend.get_filter(id)) is None:
            raise _build_unknown([id])
        return tree

    def compact(self) -> None:
        """Put all subscriptions into one index now; otherwise that happens bit by bit, in the background."""
        self.backend.compact()

    def settle(self) -> None:
        """Wait until nothing is left to merge in the background."""
        self.backend.settle()

    @property
    def merging(self) -> bool:
        """Whether segments are being merged in the background."""
        return self.backend.is_merging

    # Matching ----------------------------------------------------------------------------------

    def match(self, event: EventLike, *, now: datetime | None = None) -> list[SubId]:
        """Return the ids of the subscriptions that accept the event, each once, in no promised order."""
        setting, view = self.make_setting(now), self.get_view()
        reading = view.reader.read(event, setting.now)
        self.mismatch_counts.count([reading], view.counted)
        return list_ids(self.backend.match(ReadEvents([reading], setting), view.state))

    def match_many(
        self,
        events: Any,
        *,
        on_error: Literal["raise", "collect"] = "raise",
        now: datetime | None = None,
        counts: MismatchCounts | None = None,
    ) -> Matches:
        """Match a list of events, an Arrow table or a `td.EventBatch`.

        A bad event raises `BadEvent`; with `on_error="collect"` it goes to `.dead_letters` with its index.
        """
        pieces = list(self.match_in_pieces(events, on_error=on_error, now=now, counts=counts))
        return pieces[0].matches if len(pieces) == 1 else concatenate_matches(pieces)

    def match_in_pieces(
        self,
        events: Any,
        *,
        on_error: Literal["raise", "collect"] = "raise",
        now: datetime | None = None,
        counts: MismatchCounts | None = None,
    ) -> Iterator[Piece]:
        """Match as `match_many` does, for more matches than memory holds: one piece of the events after the other.

        A batch is one piece unless its matches are too many (tens of millions); a piece tells how many events
        came before it. All pieces see the subscriptions of the moment when the first was asked for. Mismatches
        are counted in `counts` instead of the matcher's own counts, where that is given.
        """
        check_on_error(on_error)
        batch, setting = EventBatch.of(events), self.make_setting(now)
        view, counts = self.prepare_view(len(batch)), self.mismatch_counts if counts is None else counts
        waiting = [(0, batch)]
        while waiting:
            first, part = waiting.pop()
            reader = BatchReader(view, setting, counts)
            try:
                yield Piece(first, self._match_batch(part, reader, collect=on_error == "collect"))
            except TooManyPairs as crowd:
                if len(part) == 1:
                    msg = f"one event matches {crowd.pairs:,} subscriptions of one segment; split them into shards"
                    raise TidingsError(msg) from crowd
                starts = range(0, len(part), crowd.batch_size)
                waiting += [(first + start, part.slice(start, crowd.batch_size)) for start in reversed(starts)]

    def dead_letters(self, events: Any, *, now: datetime | None = None) -> list[DeadLetter]:
        """Return the events that cannot be read, with the reason; the others are matched with no subscription."""
        batch, view = EventBatch.of(events), self.get_view()
        reader = BatchReader(view, self.make_setting(now))
        reader.read_batch(batch, (), collect=True)
        return sorted(reader.dead, key=lambda letter: letter.index)

    def _match_batch(self, batch: EventBatch, reader: BatchReader, *, collect: bool) -> Matches:
        state = reader.view.state
        groups = reader.read_batch(batch, state.collect_columns(), collect=collect)
        reader.count_mismatches()
        matches = [(index, part) for events, index in groups for part in self.backend.match(events, state)]
        return build_matches(matches, len(batch), tuple(reader.dead))

    def why(self, event: EventLike, id: SubId, *, now: datetime | None = None, most: int | None = None) -> Explanation:
        """Explain why a subscription matches an event: the tests that decided it, and the values that they saw.

        Of more than `most` tests, the first are given, and the others are counted (`more`).
        """
        tree, setting = self[id], self.make_setting(now)
        reading = self.get_view().reader.read(event, setting.now)
        return explain_match(id, tree, self.admission.bind_filter(tree), reading, setting, most=most)

    def why_not(self, event: EventLike, id: SubId, *, now: datetime | None = None) -> Explanation:
        """Explain why a subscription does not match an event; `matched` tells if it does after all."""
        return self.why(event, id, now=now)

    def explain(self) -> Plan:
        """Return the plan: how subscriptions are found, what each way costs, and what makes matching slow."""
        return Plan(self.kind, self.backend.explain(), self.needs(), self.mismatches())

    def mismatches(self) -> tuple[MismatchReport, ...]:
        """Return which values of events matched so far are not of the kind that subscriptions ask for, and who asks."""
        return tuple(describe_mismatches(self.mismatch_counts, self.backend))

    def drain_mismatches(self) -> list[list[Any]]:
        """Return the counts of `mismatches` in plain values, for a caller that adds them up, and start anew."""
        if not self.mismatch_counts.types:  # values that fit are counted on, until one does not
            return []
        counts, self.mismatch_counts = self.mismatch_counts, MismatchCounts()
        return counts.to_rows()

    def needs(self) -> dict[str, tuple[ReadSpec, ...]]:
        """Return the attributes that matching reads, and the ways in which it reads each of them."""
        return dict(self.get_view().required.attributes)

    def get_view(self) -> MatchView:
        """Return the view in force; only the first call after a change waits for the lock and so for changes."""
        view = self._view
        if view is None:
            with self.lock:
                required = self.admission.needs.to_requirements()
                reader = AttributeReader(required, self.admission.concepts)
                view = self._view = MatchView(reader, required, required.find_lenient(), self.backend.state)
        elif view.state is not self.backend.state and self.lock.acquire(blocking=False):
            # Merged, and the same subscriptions as before: nobody changes them while we hold the lock.
            try:
                if self._view is view:
                    view = self._view = view._replace(state=self.backend.state)
            finally:
                self.lock.release()
        return view

    def prepare_view(self, events: int) -> MatchView:
        """Return the view for a batch of so many events; where they are many, what waits is compiled first.

        Testing what waits reads every event by itself, which costs more than an index of a few subscriptions.
        """
        view = self.get_view()
        if events >= self.tuning.batch_events and view.state.waiting and self.lock.acquire(blocking=False):
            try:
                self.backend.seal()
            finally:
                self.lock.release()
            view = self.get_view()
        return view

    def make_setting(self, now: datetime | None = None) -> Setting:
        """Return what tests are decided by besides the event: the concepts and the time."""
        return Setting(self.admission.concepts, parse_now(now) or self.now or datetime.now(UTC))

    # Keeping -----------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write a snapshot directory; a reader sees the old one or the new one, never half."""
        save(self.capture, path)

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = True) -> Matcher:
        """Open a snapshot directory; it can still add and remove.

        The files are mapped, and each is compared with its checksum once in this process: a damaged one is refused.
        `verify=False` saves that (5 ms for 100 MB in memory); then damage may give wrong answers or end the process.
        """
        return Matcher(content=load_folder(path, verify=verify))

    def capture(self) -> CapturedContent:
        """Compile what waits, and return the segments in force with the demands that go with them."""
        with self.lock:
            parts, demands = self.backend.seal().parts, self.admission.needs.to_dict()
            filters = [(id, self[id]) for id in self] if parts is None else ()
        return CapturedContent(self.kind, self.now, self.admission.vocabulary, demands, parts, filters)

    def __reduce__(self) -> tuple[Callable[..., Matcher], tuple[Any, ...]]:
        """Pickle segments as their arrays; of backends without segments the filters, to be added again."""
        return _unpack_matcher, pack(self.capture())

    def __repr__(self) -> str:
        return f"<Matcher {self.kind}: {len(self):,} subscriptions>"


def _unpack_matcher(*packed: Any) -> Matcher:
    return Matcher(content=unpack(*packed))


def _build_unknown(ids: Sequence[SubId]) -> UnknownSubscription:
    others = f" (nor {len(ids) - 1:,} others of these)" if len(ids) > 1 else ""
    return UnknownSubscription(f"no subscription has the id {ids[0]!r}{others}")
