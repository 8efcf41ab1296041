"""Matching algorithms by name: for `td.Matcher(kind=...)`, the contract checks, the command line, benchmarks.

An algorithm of a paper is named here by the package that has it and imported when it is first built, so the product
never depends on `tidings.papers`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TypeAlias

from tidings.concepts import Ontology
from tidings.errors import UnknownMatcher
from tidings.matcher.algorithm import Algorithm
from tidings.matcher.brute import Brute

Factory: TypeAlias = Callable[[Ontology], Algorithm]
"""Builds an empty algorithm for filters over the concepts of an ontology."""

ENGINE = "engine"
"""The name of the engine, which is no algorithm of this list: `td.Matcher` builds it by itself."""


def _of_paper(package: str, kind: str) -> Factory:
    """Return a factory that looks itself up in `tidings.papers.<package>.MATCHERS` when it is called."""

    def build(ontology: Ontology) -> Algorithm:
        factories: dict[str, Factory] = import_module(f"tidings.papers.{package}").MATCHERS
        return factories[kind](ontology)

    return build


PAPERS = {
    "posets": ("counting", "forest", "poset"),
    "classifieds": ("filter-tree", "candidates-tree"),
    "hem": ("hem", "rein", "tama", "htree"),
    "ctps": ("ctps", "g-topss", "mic", "ops"),
}
"""Which package of `tidings.papers` has which matchers."""

ALGORITHMS: dict[str, Factory] = {
    "brute": lambda _: Brute(),
    **{kind: _of_paper(package, kind) for package, kinds in PAPERS.items() for kind in kinds},
}
"""Each algorithm's name and how to build it for filters over these concepts."""


def matchers() -> list[str]:
    """List the names that `td.Matcher(kind=...)` takes."""
    return [ENGINE, *ALGORITHMS]


def build_algorithm(kind: str, ontology: Ontology) -> Algorithm:
    """Return a new, empty algorithm of this name."""
    if kind not in ALGORITHMS:
        msg = f"unknown matcher `{kind}`; td.matchers() lists {', '.join(matchers())}"
        raise UnknownMatcher(msg)
    return ALGORITHMS[kind](ontology)
