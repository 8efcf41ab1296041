"""Subscriptions that change while streams run: every change is a version, every batch uses one of them.

    live = td.Live("searches/")                  # a folder that everybody sees
    live.add("s1", "price < 9000")               # written, and in force in every batch that starts from now on
    ts.match(ads, live, event_id="id")

A change costs what it changes: the new subscriptions become a small segment beside the large ones, and the version is
a small file. Several processes may write, one after the other (a lock on the folder); each goes on from the newest
version, whoever wrote it. `follow` names a feed that is looked at when a batch begins: a folder of changes, say.
"""

from __future__ import annotations

import hashlib
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tidings import forks
from tidings.concepts import parse_now
from tidings.errors import SnapshotError, TidingsError
from tidings.matcher.admission import check_id, check_ids, build_refusal
from tidings.matcher.live import claims, versions
from tidings.matcher.live.change_rounds import Step, rounds_of
from tidings.matcher.live.claims import Claim
from tidings.matcher.live.feeds import feed_of
from tidings.matcher.live.sharded_store import ShardedStore
from tidings.matcher.loading.subscription_input import pairs_of
from tidings.matcher.matcher import Matcher
from tidings.matcher.snapshot.directory import MANIFEST, alone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime

    from tidings.concepts import Ontology, Regions
    from tidings.matcher.admission import RowRefusals
    from tidings.matcher.algorithm import SubId
    from tidings.matcher.live.feeds import Feed
    from tidings.matcher.live.versions import Version
    from tidings.model import Filter, Schema

TOKENS = 4096
"""Subscriptions are dealt to tokens by a fixed hash of their ids, and tokens to shards."""


@dataclass(frozen=True, slots=True)
class Change:
    """What became of a change: the version that has it, and how much it was."""

    version: int
    added: int = 0
    removed: int = 0
    refused: list[tuple[Any, TidingsError]] = field(default_factory=list)


def shard_of(id: SubId, shards: int) -> int:
    """Return the shard of a subscription: the same everywhere and always (`spark.compile` says it in SQL)."""
    token = int(hashlib.sha256(str(id).encode()).hexdigest()[:8], 16) % TOKENS
    return token * shards // TOKENS


class Live:
    """A folder of subscriptions that may change at any time."""

    def __init__(
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
    ) -> None:
        """Open the folder, or make one; what is there already brings its own schema, ontology, regions and shards.

        Files are compared with their checksums when they are first mapped, unless told not to `verify` them.
        """
        self.folder, self.verify = Path(folder), verify
        self.follow = feed_of(follow) if isinstance(follow, str | Path) else follow
        self._lock, self._depth = threading.RLock(), 0
        self._version: Version | None = None
        self._open: list[Matcher] = []
        forks.listen(self)
        around = {"schema": schema, "ontology": ontology, "regions": regions, "now": parse_now(now)}
        if versions.newest(self.folder) is None:
            self._make(1 if shards is None else shards, around)
        else:
            self._agree(shards, around)

    def _make(self, shards: int, around: dict[str, Any]) -> None:
        if shards < 1:
            msg = f"shards is 1 or more, not {shards}"
            raise TidingsError(msg)
        if (self.folder / MANIFEST).exists():  # its files would be removed as files that no version names
            msg = f"`{self.folder}` is a snapshot; open it with td.Matcher, and make a new folder for td.Live"
            raise SnapshotError(msg)
        with self._writing():
            if versions.newest(self.folder) is None:
                empty = Matcher(**around)
                none = [dict(versions.EMPTY) for _ in range(shards)]
                versions.write_version(self.folder, 1, none, around=empty, position={}, ids=None)

    def _agree(self, shards: int | None, around: dict[str, Any]) -> None:
        there = self.version
        if shards is not None and shards != len(there.shards):
            msg = f"`{self.folder}` has {len(there.shards)} shards, not {shards}; make another folder to change that"
            raise SnapshotError(msg)
        given_ones = {name: given for name, given in around.items() if given is not None}
        kept = versions.open_version(self.folder, there, 0, verify=self.verify) if given_ones else None
        for name, given in given_ones.items():
            if given != getattr(kept, name):
                msg = f"`{self.folder}` was made with another `{name}`; make another folder to change that"
                raise SnapshotError(msg)

    def _after_fork(self) -> None:
        """In a child: what another thread had begun goes on in the parent alone; what is in force is on disk."""
        if self._lock.acquire(blocking=False):  # nobody's, or the thread's own that forked
            self._lock.release()
            return
        self._lock, self._depth, self._version, self._open = threading.RLock(), 0, None, []

    # Looking -----------------------------------------------------------------------------------

    @property
    def version(self) -> Version:
        """The newest version, whoever wrote it."""
        return versions.read_version(self.folder)

    def open(self, version: int | None = None) -> Matcher:
        """Return the subscriptions of a version, by default the newest; what is done to them stays with you."""
        there = versions.read_version(self.folder, version)
        return versions.open_version(self.folder, there, verify=self.verify)

    def __len__(self) -> int:
        """Count the subscriptions."""
        return self.version.count

    def __iter__(self) -> Iterator[SubId]:
        """Yield the ids."""
        return iter(self.open())

    def __contains__(self, id: object) -> bool:
        """Tell whether there is a subscription with this id."""
        return id in self.open()

    def __repr__(self) -> str:
        """Show the folder and the newest version."""
        return f"<Live {str(self.folder)!r}: {len(self):,} subscriptions, version {self.version.number}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as the folder's path: the subscriptions stay where they are."""
        return _again, (str(self.folder.resolve()), self.follow, self.verify)

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
        """Remove one subscription, and return the version that lacks it; what is not there is no mistake."""
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
        steps = [*(Step(id, removes=True) for id in check_ids(removed)), *(Step(*triple) for triple in pairs_of(added))]
        with self._writing():
            return self._changed(steps, position, keep_good=on_error == "collect")

    def replace(self, matcher: Matcher, *, position: Mapping[str, Any] | None = None) -> Change:
        """Put the subscriptions of a matcher in force instead of all there are; its schema and ontology come along."""
        with self._writing():
            there = self._latest()
            if len(self._open) > 1:
                msg = f"`{self.folder}` has {len(self._open)} shards; a snapshot is of one"
                raise SnapshotError(msg)
            self._open = [matcher]
            made = self._published(there, position)
            self._version = None  # the matcher stays the caller's
            return Change(made.number, added=made.count)

    def _changed(self, steps: list[Step], position: Mapping[str, Any] | None, *, keep_good: bool) -> Change:
        there = self._latest()
        try:
            applied = self._applied(steps)
            if applied.refused and not keep_good:
                raise build_refusal(applied.refused, sum(not step.removes for step in steps))
            if not applied.added and not applied.removed and (position is None or position == there.position):
                return Change(there.number, refused=applied.refused)
            made = self._published(there, position)
        except BaseException:
            self._version = None  # what is open is half changed, or changed and not written
            raise
        return replace(applied, version=made.number)

    def _applied(self, steps: list[Step]) -> Change:
        """Judge and apply the changes in their order; count what has become of each id in the end."""
        problems = {place: problem for place, step in enumerate(steps) if (problem := _unfit(step)) is not None}
        good = [(place, step) for place, step in enumerate(steps) if place not in problems]
        before = self._known({step.id for _, step in good if step.removes})
        in_force: dict[SubId, bool] = {}
        for one in rounds_of(good):
            self._removed(one.removed)
            in_force |= dict.fromkeys(one.removed, False)
            bad = dict(self._entered(one.added))
            problems |= {one.places[row]: problem for row, problem in bad.items()}
            in_force |= {id: True for row, (id, _, _) in enumerate(one.added) if row not in bad}
        added = sum(in_force.values())
        removed = sum(not there and id in before for id, there in in_force.items())
        return Change(0, added, removed, [(steps[place].id, problems[place]) for place in sorted(problems)])

    def _entered(self, given: list[Any]) -> RowRefusals:
        if len(self._open) == 1:
            return self._open[0].enter_rows(given, keep_good=True)
        return self._open[0].admission.enter_rows(given, self._dealt(), keep_good=True)

    def _removed(self, ids: list[SubId]) -> None:
        """Remove those that are there."""
        known = self._known(ids)
        for shard, matcher in enumerate(self._open if known else ()):
            mine = [id for id in known if self._shard(id) == shard]
            if mine:
                matcher.remove_many(mine)

    def _known(self, ids: Iterable[SubId]) -> set[SubId]:
        """Return those of the ids that are in force."""
        known: set[SubId] = self._dealt().find_existing(list(ids))
        return known

    def _dealt(self) -> Any:
        return ShardedStore([matcher.backend for matcher in self._open], self._shard)  # type: ignore[misc]

    def _shard(self, id: Any) -> int:
        return shard_of(id, len(self._open)) if len(self._open) > 1 else 0

    def _published(self, there: Version, position: Mapping[str, Any] | None) -> Version:
        shards = [versions.write_shard(self.folder, matcher) for matcher in self._open]
        first = next((id for matcher in self._open for id in matcher), None)
        ids = there.ids if first is None else "integer" if isinstance(first, int) else "text"
        self._version = versions.write_version(
            self.folder,
            there.number + 1,
            shards,
            around=self._open[0],
            position=there.position if position is None else position,
            ids=ids,
        )
        versions.remove_old(self.folder, claims.versions_claimed(self.folder))
        return self._version

    def _latest(self) -> Version:
        """Return the newest version, open to be changed."""
        there = self.version
        if self._version is None or self._version.checksum != there.checksum:
            self._open = versions.open_shards(self.folder, there, verify=self.verify)
            self._version = there
        return there

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Keep all other writers out: other threads by a lock, other processes by one on the folder."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            msg = f"cannot write to the folder `{self.folder}`: {problem}"
            raise SnapshotError(msg) from problem
        with self._lock, ExitStack() as stack:
            if not self._depth:
                stack.enter_context(alone(self.folder))
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1

    # Batches -----------------------------------------------------------------------------------

    def sync(self) -> Change:
        """Take in what the feed has, now; without a feed, or with nothing new, there is no new version."""
        if self.follow is None:
            return Change(self.version.number)
        with self._writing():
            there = self._latest()
            found = self.follow.changes(there.position, self)
            return self._changed(found.steps, found.position, keep_good=True)

    def claim(
        self,
        query: str,
        batch: int,
        *,
        facts: Mapping[str, Any] | None = None,
        heard: Callable[[Change], object] | None = None,
    ) -> Claim:
        """Settle what a batch uses: the newest version at this moment; asked again, the answer is the same.

        The feed is looked at first, so a change that was written before the batch began is in force in it; `heard` is
        told what it brought. `facts` are kept with the claim: whatever else must be the same the next time.
        """
        known = claims.claimed(self.folder, query, batch)
        if known is not None:
            return known
        with self._writing():
            change = self.sync()
            claim = claims.settle(self.folder, query, batch, claim=Claim(change.version, dict(facts or {})))
        if heard is not None:
            heard(change)
        return claim


def _unfit(step: Step) -> TidingsError | None:
    """Return why a change cannot even be judged: it could not be read, or has no id."""
    try:
        check_id(step.id) if step.problem is None else None
    except TidingsError as problem:
        return problem
    return step.problem


def _again(folder: str, follow: Feed | None, verify: bool) -> Live:
    versions.read_version(folder)  # who does not see the folder must not make an empty one
    return Live(folder, follow=follow, verify=verify)
