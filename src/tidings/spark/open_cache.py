"""What a Python worker has opened and keeps between batches: the most recently used few, by content.

Keys name content (a checksum, a digest), never a path alone, so an entry cannot go stale.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Item = TypeVar("Item")
"""What is kept open."""


class OpenCache(Generic[Item]):
    """A cache of the `size` most recently used items."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._items: OrderedDict[Hashable, Item] = OrderedDict()

    def get(self, key: Hashable, open_item: Callable[[], Item]) -> Item:
        """Return the item of a key, opened now if it is not in the cache; the least recently used one may go."""
        item = self._items.pop(key, None)
        self._items[key] = open_item() if item is None else item
        while len(self._items) > self.size:
            self._items.popitem(last=False)
        return self._items[key]

    def clear(self) -> None:
        """Drop all items."""
        self._items.clear()
