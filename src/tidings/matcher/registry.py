"""Matching algorithms by name: for `td.Matcher(kind=...)`, the contract checks, the command line, benchmarks.

An algorithm of a paper is named here by the package that has it and imported when it is first built, so the product
never depends on `tidings.papers`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

from tidings.concepts import Ontology
from tidings.engine.engine import Engine
from tidings.errors import UnknownMatcher
from tidings.matcher.algorithm import Algorithm
from tidings.matcher.algorithm_store import AlgorithmStore
from tidings.matcher.brute import Brute

if TYPE_CHECKING:
    from tidings.matcher.admission import Admission
    from tidings.matcher.backend import Backend

Factory: TypeAlias = Callable[[Ontology], Algorithm]
"""Builds an empty algorithm for filters over the concepts of an ontology."""

ENGINE = "engine"
"""The name of the engine, which is a backend by itself and no algorithm of this list."""


def _build_from_paper(package: str, kind: str, ontology: Ontology) -> Algorithm:
    factories: dict[str, Factory] = import_module(f"tidings.papers.{package}").MATCHERS
    return factories[kind](ontology)


PAPERS = {
    "posets": ("counting", "forest", "poset"),
    "classifieds": ("filter-tree", "candidates-tree"),
    "hem": ("hem", "rein", "tama", "htree"),
    "ctps": ("ctps", "g-topss", "mic", "ops"),
}
"""Which package of `tidings.papers` has which matchers."""

ALGORITHMS: dict[str, Factory] = {
    "brute": lambda _: Brute(),
    **{kind: partial(_build_from_paper, package, kind) for package, kinds in PAPERS.items() for kind in kinds},
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


def build_engine(admission: Admission) -> Engine:
    """Return an empty engine for filters that this admission reads."""
    return Engine(admission.concepts, admission.bind_filter, admission.parse_stored)


def build_backend(kind: str, admission: Admission) -> Backend:
    """Return the empty backend of a matcher of this kind."""
    if kind == ENGINE:
        return build_engine(admission)
    return AlgorithmStore(build_algorithm(kind, admission.concepts), admission.bind_filter, admission.parse_stored)
