"""How the event loop asks the store: at once where an answer takes microseconds, in a thread where it is a round trip.

SQLite and memory answer a read by key in less time than a thread takes to wake up; PostgreSQL is asked in threads, so
that the loop goes on meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar

from anyio.to_thread import run_sync

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.service.store.base import Store

P = ParamSpec("P")
"""The arguments of a question."""

T = TypeVar("T")
"""Its answer."""


class StoreAccess:
    """A store, and whether the event loop may wait for it."""

    def __init__(self, store: Store, *, is_local: bool) -> None:
        self.store, self.is_local = store, is_local

    async def ask(self, question: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
        """Return the answer to a question that is a read by key, or of a few rows."""
        if self.is_local:
            return question(*arguments, **keywords)
        return await run_sync(lambda: question(*arguments, **keywords))

    async def work(self, question: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
        """Return the answer to a question that takes longer; in a thread, whatever the store."""
        return await run_sync(lambda: question(*arguments, **keywords))
