"""What the events of matches looked like: each once for all its rows, gone with the last of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tidings.service.store.sql.codec import encode_json
from tidings.service.store.sql.pairs import make_pair_change
from tidings.service.store.sql.tables import CONTENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.service.store.sql.database import Database, Transaction
    from tidings.service.subscription import MatchRow

_C = CONTENTS.c
RELEASE = make_pair_change(
    lambda number, count: CONTENTS.update().where(_C.number == number).values(uses=_C.uses - count)
)
DELETE_UNUSED = make_pair_change(lambda number, uses: CONTENTS.delete().where(_C.number == number, _C.uses <= uses))


class ContentTable:
    """What the events of a batch looked like, each once: by the very object, or else by its text."""

    def __init__(self) -> None:
        self._by_object: dict[tuple[int, str | None], int] = {}
        self._by_text: dict[str, int] = {}
        self._uses: dict[int, int] = {}

    def add(self, row: MatchRow, number: int) -> int:
        """Return the number of a row's content, which is that of the first row that has it."""
        key = (id(row.values), row.event)
        content = self._by_object.get(key)
        if content is None:
            text = _encode_content(row)
            content = self._by_object[key] = self._by_text.setdefault(text, number)
        self._uses[content] = self._uses.get(content, 0) + 1
        return content

    def list_rows(self) -> list[tuple[int, str, int]]:
        """Return number, text and uses of each content."""
        return [(number, text, self._uses[number]) for text, number in self._by_text.items()]


def _encode_content(row: MatchRow) -> str:
    try:
        return encode_json((row.event, row.values))
    except RecursionError:  # what came by a topic may be as deep as can just be read; a batch must not fail for it
        return encode_json((row.event, {}))


def release_contents(database: Database, transaction: Transaction, rows: Sequence[tuple[Any, ...]]) -> None:
    """Count one use less for each row that is gone, and remove what nobody uses."""
    counts = Counter(number for (number,) in rows)
    database.backend.run_pairs(transaction, RELEASE, list(counts.items()))
    database.backend.run_pairs(transaction, DELETE_UNUSED, [(number, 0) for number in counts])
