"""The stores of a pipeline: each URL is opened once, for its feed, its sinks and its reports, and closed at the end.

SQLAlchemy and its drivers come with the extra `[service]`, so they are imported when a pipeline names a store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidings.service.store.base import Store


class OpenStores:
    """The open stores of one run, by URL."""

    def __init__(self) -> None:
        self._stores: dict[str, Store] = {}

    def open(self, url: str) -> Store:
        """Return the store of a URL; `StoreError` where it cannot be opened."""
        if url not in self._stores:
            from tidings.service.store.opening import open_store

            self._stores[url] = open_store(url)
        return self._stores[url]

    def close(self) -> None:
        """Close all of them, and wake whoever waits for one."""
        while self._stores:
            self._stores.popitem()[1].close()
