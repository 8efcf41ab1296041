"""The plan that `explain` returns: printable, and plain values through `to_dict`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidings.algebra import Need


@dataclass(frozen=True, slots=True)
class Plan:
    """How an algorithm goes about its subscriptions, and which attributes it reads."""

    kind: str
    work: Mapping[str, object]
    attributes: Mapping[str, Need]

    def to_dict(self) -> dict[str, object]:
        """Return plain values."""
        attributes = {name: _words(need) for name, need in sorted(self.attributes.items())}
        return {"kind": self.kind, **self.work, "attributes": attributes}

    def __str__(self) -> str:
        """Print the algorithm's figures and a line for each attribute."""
        lines = [f"matcher {self.kind}", *(f"  {name}: {value}" for name, value in self.work.items())]
        names = sorted(self.attributes)
        width = max(map(len, names), default=0)
        return "\n".join([*lines, *(f"  {name:<{width}}  {_words(self.attributes[name])}" for name in names)])


def _words(need: Need) -> str:
    words = [] if not need.several else ["several"]
    words.append(need.kind.value if need.kind else "any")
    words += [part for part in (need.tree, f"in {need.unit}" if need.unit else None) if part]
    return " ".join(words)
