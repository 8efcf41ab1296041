"""Small numbers for distinct values, reference-counted, so that the numbers of forgotten values are used again."""

from __future__ import annotations

from typing import Any


class Interner:
    """Maps each value in use to a number; equal values share one."""

    def __init__(self) -> None:
        """Start empty."""
        self.numbers: dict[Any, int] = {}
        self.values: list[Any] = []
        self._counts: list[int] = []
        self._free: list[int] = []

    def take(self, value: Any) -> int:
        """Return the number of a value and count one more reference to it."""
        number = self.numbers.get(value)
        if number is None:
            if self._free:
                number = self._free.pop()
                self.values[number] = value
            else:
                number = len(self.values)
                self.values.append(value)
                self._counts.append(0)
            self.numbers[value] = number
        self._counts[number] += 1
        return number

    def release(self, number: int) -> bool:
        """Count one reference less; tell whether the value was forgotten."""
        self._counts[number] -= 1
        if self._counts[number]:
            return False
        del self.numbers[self.values[number]]
        self.values[number] = None
        self._free.append(number)
        return True

    def __len__(self) -> int:
        """Count the values in use."""
        return len(self.numbers)
