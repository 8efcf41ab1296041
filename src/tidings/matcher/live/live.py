"""Subscriptions that change while streams run: every change is a version, every batch uses one of them.

    live = td.Live("searches/")                  # a folder that all processes see
    live.add("s1", "price < 9000")               # written, and in force in every batch that starts from now on
    ts.match(ads, live, event_id="id")

A change costs in proportion to itself: the new subscriptions become a small segment beside the large ones, and the
version is a small file. Several processes may write, one after the other (a lock on the folder); each goes on from the
newest version, whichever process wrote it. `follow` names a feed that is read when a batch begins: a folder of change
files, say.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tidings import forks
from tidings.concepts import Ontology, Regions, parse_now
from tidings.errors import SnapshotError, TidingsError
from tidings.matcher.admission import build_refusal, check_id, check_ids
from tidings.matcher.content import MatcherContent, build_content
from tidings.matcher.live import claims, versions
from tidings.matcher.live.bulk_changes import BulkChange
from tidings.matcher.live.change_rounds import ChangeStep, split_rounds
from tidings.matcher.live.claims import Claim
from tidings.matcher.live.feeds import Feed, open_feed
from tidings.matcher.live.sharded_store import ShardedStore
from tidings.matcher.loading.subscription_input import iterate_subscriptions
from tidings.matcher.matcher import Matcher
from tidings.matcher.registry import ENGINE
from tidings.matcher.snapshot.snapshot import write_parts
from tidings.matcher.snapshot.snapshot_folder import MANIFEST, lock_folder
from tidings.matcher.tuning import LIVE_TUNING, LiveTuning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from tidings.matcher.algorithm import SubId
    from tidings.matcher.live.bulk_changes import SubscriptionTable
    from tidings.matcher.live.versions import Version
    from tidings.matcher.snapshot.snapshot_folder import Manifest
    from tidings.model import Filter, Schema


@dataclass(frozen=True, slots=True)
class Change:
    """The outcome of a change: the version that has it, how many ids it added and removed, and the refusals."""

    version: int
    added: int = 0
    removed: int = 0
    refused: list[tuple[Any, TidingsError]] = field(default_factory=list)


class Live:
    """A folder of subscriptions that may change at any time."""

    def __init__(  # noqa: PLR0913 - the public keywords
        self,
        folder: str | Path,
        *,
        shards: int | None = None,
        schema: Schema | None = None,
        ontology: Ontology | None = None,
        regions: Regions | None = None,
        now: datetime | None = None,
        follow: Feed | str | Path | None = None,
        verify: bool = True,
        tuning: LiveTuning = LIVE_TUNING,
    ) -> None:
        """Open the folder, or make one; an existing one has its own schema, ontology, regions and shards.

        With `verify`, files are compared with their checksums when they are first mapped.
        """
        self.folder, self.verify, self.tuning = Path(folder), verify, tuning
        self.follow = open_feed(follow) if isinstance(follow, str | Path) else follow
        self._lock, self._depth = threading.RLock(), 0
        # What a writer goes on from: a version, its subscriptions as one matcher, and the store that has them by shard.
        self._opened: tuple[Version, Matcher, ShardedStore] | None = None
        forks.listen(self)
        keywords = {"schema": schema, "ontology": ontology, "regions": regions, "now": parse_now(now)}
        if versions.find_newest(self.folder) is None:
            self._make_folder(1 if shards is None else shards, keywords)
        else:
            self._check_folder(shards, keywords)

    def _make_folder(self, shards: int, keywords: dict[str, Any]) -> None:
        if shards < 1:
            msg = f"shards is 1 or more, not {shards}"
            raise TidingsError(msg)
        if (self.folder / MANIFEST).exists():  # its files would be removed, as no version names them
            msg = f"`{self.folder}` is a snapshot; open it with td.Matcher, and make a new folder for td.Live"
            raise SnapshotError(msg)
        with self._keep_writers_out():
            if versions.find_newest(self.folder) is None:
                entries = [dict(versions.EMPTY) for _ in range(shards)]
                versions.write_version(self.folder, 1, entries, matcher=Matcher(**keywords), position={}, ids=None)

    def _check_folder(self, shards: int | None, keywords: dict[str, Any]) -> None:
        """Refuse shards and a vocabulary that are not those of the folder."""
        latest = self.version
        if shards is not None and shards != len(latest.shards):
            msg = f"`{self.folder}` has {len(latest.shards)} shards, not {shards}; make another folder to change that"
            raise SnapshotError(msg)
        values = {name: value for name, value in keywords.items() if value is not None}
        matcher = Matcher(content=versions.load_version(self.folder, latest, 0, verify=self.verify)) if values else None
        for name, value in values.items():
            if value != getattr(matcher, name):
                msg = f"`{self.folder}` was made with another `{name}`; make another folder to change that"
                raise SnapshotError(msg)

    def after_fork(self) -> None:
        """In a child: a change that another thread had begun goes on in the parent alone; all versions are on disk."""
        if self._lock.acquire(blocking=False):  # free, or held by the thread that forked
            self._lock.release()
            return
        self._lock, self._depth, self._opened = threading.RLock(), 0, None

    # Looking -----------------------------------------------------------------------------------

    @property
    def version(self) -> Version:
        """The newest version, whichever process wrote it."""
        return versions.read_version(self.folder)

    def open(self, version: int | None = None) -> Matcher:
        """Return a matcher of a version's subscriptions, by default the newest's; changing it changes no version."""
        entry = versions.read_version(self.folder, version)
        return Matcher(content=versions.load_version(self.folder, entry, verify=self.verify))

    def __len__(self) -> int:
        return self.version.count

    def __iter__(self) -> Iterator[SubId]:
        return iter(self.open())

    def __contains__(self, id: object) -> bool:
        return id in self.open()

    def __repr__(self) -> str:
        return f"<Live {str(self.folder)!r}: {len(self):,} subscriptions, version {self.version.number}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the folder's path; the subscriptions stay on disk."""
        return _reopen, (str(self.folder.resolve()), self.follow, self.verify, self.tuning)

    # Changing ----------------------------------------------------------------------------------

    def add(self, id: SubId, filter: str | Filter, *, notation: str = "text") -> int:
        """Add or replace one subscription, and return the version that has it."""
        change = self.change([(id, filter, notation)], on_error="collect")
        for _, problem in change.refused:
            raise problem
        return change.version

    def add_many(self, subscriptions: Any, *, on_error: Literal["raise", "collect"] = "raise") -> Change:
        """Add or replace many, all or nothing; with `on_error="collect"` the good ones."""
        return self.change(subscriptions, on_error=on_error)

    def remove(self, id: SubId) -> int:
        """Remove one subscription, and return the version that lacks it; an unknown id is no mistake."""
        return self.change((), [id]).version

    def change(
        self,
        added: Any = (),
        removed: Iterable[SubId] = (),
        *,
        on_error: Literal["raise", "collect"] = "raise",
        position: Mapping[str, Any] | None = None,
    ) -> Change:
        """Add, replace and remove in one version; `position` is where a feed has been read to.

        What is removed goes first, so what is both removed and added is added, unless its filter is refused. Of
        several filters for one id the last good one counts. A change that changes nothing makes no version.
        """
        steps = [
            *(ChangeStep(id, removes=True) for id in check_ids(removed)),
            *(ChangeStep(*triple) for triple in iterate_subscriptions(added)),
        ]
        with self._keep_writers_out():
            return self._apply(steps, position, keep_good=on_error == "collect")

    def replace(self, matcher: Matcher, *, position: Mapping[str, Any] | None = None) -> Change:
        """Put the subscriptions of a matcher in force instead of all there are; its schema and ontology come along."""
        with self._keep_writers_out():
            latest = self.version
            if len(latest.shards) > 1:
                msg = f"`{self.folder}` has {len(latest.shards)} shards; a snapshot is of one"
                raise SnapshotError(msg)
            version = self._publish(latest, matcher, [versions.write_shard(self.folder, matcher)], position)
            self._opened = None  # the matcher stays the caller's
            return Change(version.number, added=version.count)

    def load(
        self,
        portions: Iterable[SubscriptionTable],
        removed: Iterable[SubId] = (),
        *,
        replaces: bool = False,
        position: Mapping[str, Any] | None = None,
    ) -> Change:
        """Remove, and add or replace whole tables of `id` and `filter`: for changes in hundreds of thousands.

        No id comes twice. One whose filter is refused is not in force any more, whatever it had before. With
        `replaces`, nothing but the portions stays in force.
        """
        with self._keep_writers_out():
            latest, matcher, store = self._open_latest()
            self._opened = None  # from here on it is half changed; and of two sets of a million, one is enough
            content = MatcherContent(matcher.kind, matcher.now, matcher.admission, store)
            if replaces:
                content = build_content(ENGINE, matcher.admission.vocabulary, matcher.now)
                bulk = BulkChange.start(content, len(store.engines))
            else:
                bulk = BulkChange(content, store.engines)
            gone = bulk.remove(removed)
            added, refused = bulk.add(portions)
            shards = [write_parts(self.folder, engine.seal().parts) for engine in bulk.store.engines]
            version = self._publish(latest, bulk.matcher, shards, position)
            self._opened = version, bulk.matcher, bulk.store
            return Change(version.number, added, gone, refused)

    def _apply(self, steps: list[ChangeStep], position: Mapping[str, Any] | None, *, keep_good: bool) -> Change:
        """Apply the changes to the newest version, and publish the result as the next one."""
        latest, matcher, store = self._open_latest()
        try:
            change = _apply_steps(steps, matcher)
            if change.refused and not keep_good:
                raise build_refusal(change.refused, sum(not step.removes for step in steps))
            if not change.added and not change.removed and (position is None or position == latest.position):
                return replace(change, version=latest.number)
            shards = [write_parts(self.folder, engine.seal().parts) for engine in store.engines]
            version = self._publish(latest, matcher, shards, position)
            self._opened = version, matcher, store
        except BaseException:
            self._opened = None  # the matcher is half changed, or changed and not written
            raise
        return replace(change, version=version.number)

    def _publish(
        self, latest: Version, matcher: Matcher, shards: Sequence[Manifest], position: Mapping[str, Any] | None
    ) -> Version:
        """Write the version after the latest, which consists of these shards; remove old versions."""
        first = next(iter(matcher), None)
        version = versions.write_version(
            self.folder,
            latest.number + 1,
            shards,
            matcher=matcher,
            position=latest.position if position is None else position,
            ids=latest.ids if first is None else "integer" if isinstance(first, int) else "text",
        )
        claimed = claims.find_claimed_versions(self.folder, silent_seconds=self.tuning.silent_seconds)
        versions.remove_old(self.folder, claimed, keep=self.tuning.versions_kept)
        return version

    def _open_latest(self) -> tuple[Version, Matcher, ShardedStore]:
        """Return the newest version, open to be changed; what this process wrote last is open already."""
        latest = self.version
        if self._opened is None or self._opened[0].checksum != latest.checksum:
            # Unlike a reader's, every shard has an engine of its own; the demands are those of all shards.
            content = versions.prepare_content(self.folder, latest)
            engines = [
                versions.load_engine(self.folder, [shard], content.admission, verify=self.verify)
                for shard in latest.shards
            ]
            store = ShardedStore(engines)
            self._opened = latest, Matcher(content=content._replace(backend=store)), store
        return self._opened

    @contextmanager
    def _keep_writers_out(self) -> Iterator[None]:
        """Keep all other writers out: other threads by a lock, other processes by a lock on the folder."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            msg = f"cannot write to the folder `{self.folder}`: {problem}"
            raise SnapshotError(msg) from problem
        with self._lock, nullcontext() if self._depth else lock_folder(self.folder):
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1

    # Batches -----------------------------------------------------------------------------------

    def sync(self) -> Change:
        """Apply what the feed has, now; without a feed, or with nothing new, there is no new version."""
        if self.follow is None:
            return Change(self.version.number)
        with self._keep_writers_out():
            changes = self.follow.changes(self.version.position, self)
            return self._apply(changes.steps, changes.position, keep_good=True)

    def claim(
        self,
        query: str,
        batch: int,
        *,
        facts: Mapping[str, Any] | None = None,
        on_change: Callable[[Change], object] | None = None,
    ) -> Claim:
        """Settle which version a batch uses: the newest at this moment; called again, the answer is the same.

        The feed is read first, so a change that was written before the batch began is in force in it; `on_change`
        is called with what it brought. `facts` are kept with the claim: whatever else must be the same the next time.
        """
        settled = claims.read_claim(self.folder, query, batch)
        if settled is not None:
            return settled
        with self._keep_writers_out():
            change = self.sync()
            claim = Claim(change.version, dict(facts or {}))
            claim = claims.settle(self.folder, query, batch, claim=claim, keep=self.tuning.claims_kept)
        if on_change is not None:
            on_change(change)
        return claim


def _apply_steps(steps: list[ChangeStep], matcher: Matcher) -> Change:
    """Judge and apply the changes in their order; count the ids that are in force in the end, and those that went."""
    problems = {number: problem for number, step in enumerate(steps) if (problem := _find_problem(step)) is not None}
    good = [(number, step) for number, step in enumerate(steps) if number not in problems]
    before = matcher.backend.find_existing(list({step.id for _, step in good if step.removes}))
    in_force: dict[SubId, bool] = {}
    for round in split_rounds(good):
        matcher.remove_many(matcher.backend.find_existing(round.removed))
        in_force |= dict.fromkeys(round.removed, False)
        refusals = dict(matcher.enter_rows(round.added, keep_good=True))
        problems |= {round.numbers[row]: problem for row, problem in refusals.items()}
        in_force |= {id: True for row, (id, _, _) in enumerate(round.added) if row not in refusals}
    added = sum(in_force.values())
    removed = sum(not exists and id in before for id, exists in in_force.items())
    return Change(0, added, removed, [(steps[number].id, problems[number]) for number in sorted(problems)])


def _find_problem(step: ChangeStep) -> TidingsError | None:
    """Return why a change cannot even be judged: it could not be read, or has no id."""
    if step.problem is None:
        try:
            check_id(step.id)
        except TidingsError as problem:
            return problem
    return step.problem


def _reopen(folder: str, follow: Feed | None, verify: bool, tuning: LiveTuning) -> Live:
    versions.read_version(folder)  # a process that does not see the folder must not make an empty one
    return Live(folder, follow=follow, verify=verify, tuning=tuning)
