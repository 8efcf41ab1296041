"""Matching algorithms by name: for `td.Matcher(kind=...)`, the contract checks, the command line, benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.errors import UnknownMatcher
from tidings.matchers.boxes import Boxes
from tidings.matchers.brute import Brute
from tidings.matchers.candidates_tree import CandidatesTree
from tidings.matchers.counting import Counting
from tidings.matchers.ctps import Ctps
from tidings.matchers.filter_tree import FilterTree
from tidings.matchers.forest import Forest
from tidings.matchers.g_topss import GTopss
from tidings.matchers.hem import Hem
from tidings.matchers.htree import HTree
from tidings.matchers.mic import Mic
from tidings.matchers.ops import Ops
from tidings.matchers.poset import Poset
from tidings.matchers.rein import Rein
from tidings.matchers.tama import Tama

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.concepts import Ontology
    from tidings.matchers.base import Algorithm

ENGINE = "engine"
"""The name of the engine, which has a package of its own."""

ALGORITHMS: dict[str, Callable[[Ontology], Algorithm]] = {
    "brute": lambda _: Brute(),
    "counting": lambda _: Counting(),
    "forest": Forest,
    "poset": Poset,
    "filter-tree": lambda _: FilterTree(),
    "candidates-tree": lambda _: CandidatesTree(),
    "hem": lambda _: Boxes("hem", Hem()),
    "rein": lambda _: Boxes("rein", Rein()),
    "tama": lambda _: Boxes("tama", Tama()),
    "htree": lambda _: Boxes("htree", HTree()),
    "ctps": Ctps,
    "g-topss": GTopss,
    "mic": Mic,
    "ops": Ops,
}
"""One line for each algorithm: its name and how to make it for filters over these concepts."""


def algorithm(kind: str, ontology: Ontology) -> Algorithm:
    """Return a new, empty algorithm of this name."""
    if kind not in ALGORITHMS:
        msg = f"unknown matcher `{kind}`; td.matchers() lists {', '.join([ENGINE, *ALGORITHMS])}"
        raise UnknownMatcher(msg)
    return ALGORITHMS[kind](ontology)
