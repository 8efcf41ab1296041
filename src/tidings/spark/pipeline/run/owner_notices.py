"""What a pipeline refuses of a store's subscriptions, told to their owners: records of the audit log.

The API has judged each of them; but a schema may have changed since, or an owner's bound. Such a subscription stays as
it is and is not in force; whoever mends the schema, or the subscription, has it in force again. A record has the reason
without what stands in quotes, since the audit log holds no value of a subscription.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime
from itertools import groupby, islice
from typing import TYPE_CHECKING

from tidings.errors import TidingsError
from tidings.service.store.base import AuditRecord
from tidings.service.subscription import split_engine_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidings.matcher.algorithm import SubId
    from tidings.service.store.base import Store

ACTOR, ACTION = "pipeline", "refuse"
"""Who changes statuses and refuses subscriptions, in the audit log; and what it calls the latter."""

MOST_RECORDS = 20
"""Records of one change and owner; one more counts the others."""

MOST_CHARACTERS = 300
"""Characters of a reason."""


class OwnerNotices:
    """Tells owners what is refused; of `before` they were told, by id and reason: it is not said again."""

    def __init__(self, store: Store, before: Mapping[str, str] | None = None) -> None:
        self._audit, self._before = store.audit, dict(before or {})

    def tell(self, refused: Iterable[tuple[SubId | None, TidingsError]]) -> None:
        """Write what is refused into the audit log; where the store does not take it, nothing is said."""
        new = [(str(id), str(problem)) for id, problem in refused if id is not None]
        new = sorted(entry for entry in new if self._before.pop(entry[0], None) != entry[1])
        with suppress(TidingsError):
            for owner, group in groupby(new, key=lambda entry: split_engine_id(entry[0])[0]):
                for engine_id, reason in islice(group, MOST_RECORDS):
                    self._append(owner, split_engine_id(engine_id)[1], shorten_reason(reason))
                if rest := sum(1 for _ in group):
                    self._append(owner, f"{rest} subscriptions", "as those before")

    def _append(self, owner: str, id: str, reason: str) -> None:
        now = datetime.now(UTC)
        self._audit.append(AuditRecord(at=now, actor=f"{ACTOR}: {reason}", owner=owner, action=ACTION, id=id))


def shorten_reason(reason: str) -> str:
    r"""Return the first line of a reason, without what was quoted.

    >>> shorten_reason("`price`: 'cheap' is not a number\n  price = 'cheap'")
    "`price`: '...' is not a number"
    """
    line = reason.partition("\n")[0]
    return re.sub(r"'[^']*'|\"[^\"]*\"", "'...'", line)[:MOST_CHARACTERS]
