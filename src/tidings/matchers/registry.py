"""Matching algorithms by name: for `td.Matcher(kind=...)`, the contract checks, the command line, benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.errors import UnknownMatcher
from tidings.matchers.brute import Brute

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.concepts import Ontology
    from tidings.matchers.base import Algorithm

ENGINE = "engine"
"""The name of the engine, which has a package of its own."""

ALGORITHMS: dict[str, Callable[[Ontology], Algorithm]] = {
    "brute": lambda _: Brute(),
}
"""One line for each algorithm: its name and how to make it for filters over these concepts."""


def algorithm(kind: str, ontology: Ontology) -> Algorithm:
    """Return a new, empty algorithm of this name."""
    if kind not in ALGORITHMS:
        msg = f"unknown matcher `{kind}`; td.matchers() lists {', '.join([ENGINE, *ALGORITHMS])}"
        raise UnknownMatcher(msg)
    return ALGORITHMS[kind](ontology)
