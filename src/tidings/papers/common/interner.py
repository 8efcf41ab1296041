"""Small numbers for things, as indexes into arrays: the number of a thing that is gone is used again."""

from __future__ import annotations

from typing import Any


class Slots:
    """Items by number; the number of a removed item goes to a later one."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        """Count the items, without the free numbers."""
        return len(self.items) - len(self._free)

    def add(self, item: Any) -> int:
        """Take an item in and return its number."""
        if self._free:
            number = self._free.pop()
            self.items[number] = item
        else:
            number = len(self.items)
            self.items.append(item)
        return number

    def remove(self, number: int) -> None:
        """Forget the item of a number."""
        self.items[number] = None
        self._free.append(number)


class Interner:
    """Maps each value in use to a number; equal values share one, and each reference to it is counted."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self._slots = Slots()
        self.values = self._slots.items
        self._counts: list[int] = []

    def __len__(self) -> int:
        """Count the values in use."""
        return len(self.numbers)

    def take(self, value: Any) -> int:
        """Return the number of a value and count one more reference to it."""
        number = self.numbers.get(value)
        if number is None:
            number = self.numbers[value] = self._slots.add(value)
            if number == len(self._counts):
                self._counts.append(0)
        self._counts[number] += 1
        return number

    def release(self, number: int) -> bool:
        """Count one reference less; return whether it was the last, so that the value has no number any more."""
        self._counts[number] -= 1
        if self._counts[number]:
            return False
        del self.numbers[self.values[number]]
        self._slots.remove(number)
        return True
