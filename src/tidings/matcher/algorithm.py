"""What every matching algorithm offers the façade: filters in, readings in, ids out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidings.algebra import Reading, Setting
    from tidings.model import Filter

SubId: TypeAlias = str | int


class Algorithm(Protocol):
    """Finds the bound filters that a reading satisfies; agrees with `algebra.holds` always.

    A filter comes in two steps. `compile_filter` returns it in the algorithm's own terms or refuses it, and changes
    nothing; `add_many` takes what that returned. So many filters are all taken, or none.
    """

    def compile_filter(self, tree: Filter) -> Any:
        """Return the filter in the algorithm's own terms; what it cannot express raises `Unsupported`."""

    def add_many(self, filters: Iterable[tuple[SubId, Any]]) -> None:
        """Take compiled filters in; a known id is replaced."""

    def remove(self, id: SubId) -> None:
        """Forget a filter that is there."""

    def match(self, reading: Reading, setting: Setting) -> list[SubId]:
        """Return the ids of the filters that accept the reading, each once."""

    def match_many(self, readings: Sequence[Reading], setting: Setting) -> list[list[SubId]]:
        """Return the same for each of many readings; here one by one, for algorithms that gain nothing from batches."""
        return [self.match(reading, setting) for reading in readings]

    def explain(self) -> dict[str, object]:
        """Return what the algorithm does with these filters, in plain values."""
