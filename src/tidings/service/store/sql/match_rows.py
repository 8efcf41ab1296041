"""A batch of matches on its way into the tables.

Of each subscription's rows only the last `keep` are looked at further, so one that matches everything costs no more
than any other. Subscriptions are looked up once each, with the place of their newest match.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import bindparam, func, select

from tidings.model.values import to_microseconds
from tidings.service.store.rows import is_storable
from tidings.service.store.sql.codec import compute_owner_key, encode_json
from tidings.service.store.sql.contents import ContentTable, release_contents
from tidings.service.store.sql.pairs import make_pair_change, make_pair_query
from tidings.service.store.sql.statements import bind, make_insert
from tidings.service.store.sql.tables import BATCHES, CONTENTS, MATCH_HEAD, MATCHES, SUBSCRIPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidings.service.store.sql.database import Database, Transaction
    from tidings.service.subscription import MatchRow

Homes: TypeAlias = "dict[tuple[str, str], list[int]]"
"""The number of a subscription, and the place of its newest match, by owner and id."""

_S, _M, _B = SUBSCRIPTIONS.c, MATCHES.c, BATCHES.c
_PLACE = select(func.max(_M.place)).where(_M.subscription == _S.number).correlate(SUBSCRIPTIONS).scalar_subquery()
FIND = make_pair_query(select(_S.owner, _S.id, _S.number, _PLACE), _S.owner, _S.id)
HAS_BATCH = select(_B.at).where(_B.query == bind(_B.query), _B.batch == bind(_B.batch))
INSERT_BATCH = make_insert(BATCHES)
INSERT_MATCH = make_insert(MATCHES)
INSERT_CONTENT = make_insert(CONTENTS)
TAKE_NUMBERS = (
    MATCH_HEAD.update()
    .values(number=MATCH_HEAD.c.number + bindparam("count", type_=_M.place.type))
    .returning(MATCH_HEAD.c.number)
)
DELETE_BEYOND = make_pair_change(
    lambda subscription, place: (
        MATCHES.delete().where(_M.subscription == subscription, _M.place <= place).returning(_M.content)
    )
)


@dataclass(frozen=True, slots=True)
class MatchBatch:
    """One batch of a query, of whose rows each subscription keeps `keep`."""

    query: str
    batch: int
    at: datetime
    keep: int

    def write(self, database: Database, rows: Iterable[MatchRow]) -> int:
        """Write the rows of subscriptions that exist, unless the batch was written; return how many."""
        newest = self._take_newest(rows)
        with database.write() as transaction:
            database.backend.lock_matches(transaction)
            if transaction.fetch_one(HAS_BATCH, query=self.query, batch=self.batch) is not None:
                return 0
            homes = _find_homes(database, transaction, [key for key in newest if all(map(is_storable, key))])
            ordered = sorted((pair for key in homes for pair in newest[key]), key=itemgetter(0))
            (last,) = transaction.fetch_one(TAKE_NUMBERS, count=len(ordered)) or (0,)
            transaction.insert_rows(INSERT_BATCH, [(self.query, self.batch, to_microseconds(self.at), last)])
            matches, contents = _build_rows([row for _, row in ordered], homes, last - len(ordered))
            transaction.insert_rows(INSERT_MATCH, matches)
            transaction.insert_rows(INSERT_CONTENT, contents)
            self._delete_beyond(database, transaction, homes)
        return len(ordered)

    def _take_newest(self, rows: Iterable[MatchRow]) -> dict[tuple[str, str], deque[tuple[int, MatchRow]]]:
        """Return the last rows of each subscription, with their places in the batch."""
        newest: dict[tuple[str, str], deque[tuple[int, MatchRow]]] = {}
        for place, row in enumerate(rows):
            queue = newest.get((row.owner, row.subscription))
            if queue is None:
                queue = newest[row.owner, row.subscription] = deque(maxlen=self.keep)
            queue.append((place, row))
        return newest

    def _delete_beyond(self, database: Database, transaction: Transaction, homes: Homes) -> None:
        full = [(number, place - self.keep) for number, place in homes.values() if place > self.keep]
        release_contents(database, transaction, database.backend.fetch_pairs(transaction, DELETE_BEYOND, full))


def _find_homes(database: Database, transaction: Transaction, keys: Sequence[tuple[str, str]]) -> Homes:
    """Return the number and the newest place of each subscription that exists."""
    rows = database.backend.fetch_pairs(transaction, FIND, keys)
    return {(owner, id): [number, place or 0] for owner, id, number, place in rows}


def _build_rows(
    rows: Sequence[MatchRow], homes: Homes, last: int
) -> tuple[list[tuple[Any, ...]], list[tuple[int, str, int]]]:
    """Return the rows of matches, numbered from `last` on, and of contents; move the places of their homes."""
    contents, matches = ContentTable(), []
    for number, row in enumerate(rows, last + 1):
        home = homes[row.owner, row.subscription]
        home[1] += 1
        events = None if row.events is None else encode_json(row.events)
        place, content = (home[0], home[1], compute_owner_key(row.owner)), contents.add(row, number)
        matches.append((number, *place, row.kind, to_microseconds(row.at), content, events, row.probability))
    return matches, contents.list_rows()
