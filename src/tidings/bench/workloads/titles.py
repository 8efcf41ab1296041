"""Titles, and filters on their text: prefixes, substrings, wildcards and expressions.

Titles are words of a made-up vocabulary by Zipf's law; the first word is one of a few hundred that begin titles,
as makes begin those of car ads. Filters quote words of the same vocabulary, so nearly all expressions differ.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from tidings.bench.workloads.seeded_workload import Baseline, Workload, split_in_chunks
from tidings.bench.workloads.workload_columns import decode_words, draw_zipf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.random import Generator

    from tidings.bench.workloads.workload_columns import WorkloadColumn

_SYLLABLES = [a + b for a, b in product("bdfgklmnprstvz", "aeiou")]
VOCABULARY = tuple(
    _SYLLABLES[(rank * 37 + 11) % 70] + _SYLLABLES[(rank // 70 * 53 + rank) % 70] + ("", "n", "s", "r")[rank % 4]
    for rank in range(4900)
)
"""Words, the most frequent first."""

OPENERS = 300
"""So many words begin titles."""

LENGTH = (5, 10)
"""Least and greatest number of words of a title."""

SHARES = {"prefix": 0.4, "contains": 0.3, "like": 0.25}
"""Shares of the kinds of filters; the rest are regular expressions."""


def build_text() -> Workload:
    """Filters on the text of a title."""
    return Workload(
        key="text",
        description="one test of a title's text: 40 % prefix, 30 % contains, 25 % like, 5 % regular expression",
        expected=lambda n: 2.5e-4 * n,
        tolerance=0.35,
        make_events=_draw_titles,
        make_filters=_draw_filters,
        schema={"title": "text"},
        baseline=Baseline.EXPRESSIONS,
    )


def _draw_titles(count: int, rng: Generator) -> dict[str, WorkloadColumn]:
    most = LENGTH[1]
    codes = draw_zipf(rng, (count, most), len(VOCABULARY), 0.8)
    codes[:, 0] = draw_zipf(rng, count, OPENERS, 0.8)
    length = rng.integers(*LENGTH, count, endpoint=True)
    codes[np.arange(most) >= length[:, None]] = -1
    columns = [decode_words(codes[:, place], VOCABULARY) for place in range(most)]
    return {"title": pc.binary_join_element_wise(*columns, " ", null_handling="skip")}


def _draw_filters(n: int, rng: Generator) -> Iterator[str]:
    bounds = np.cumsum(list(SHARES.values()))
    for count in split_in_chunks(n):
        kinds = np.searchsorted(bounds, rng.random(count)).tolist()
        openers = draw_zipf(rng, count, OPENERS, 0.8).tolist()
        # Rarer words than in titles: people look for particular things.
        quoted = draw_zipf(rng, (count, 3), len(VOCABULARY), 0.4).tolist()
        cuts = rng.integers(1, 4, count).tolist()
        for kind, opener, three, cut in zip(kinds, openers, quoted, cuts, strict=True):
            yield _render_filter(kind, VOCABULARY[opener], [VOCABULARY[word] for word in three], cut=cut)


def _render_filter(kind: int, opener: str, three: list[str], *, cut: int) -> str:
    first, second, third = three
    if kind == 0:
        return f"title starts with '{opener} {first[:cut]}'"
    if kind == 1:
        return f"title contains '{first} {second[:cut]}'"
    if kind == 2:
        return f"title like '*{first}*{second}*'" if cut < 3 else f"title like '{opener}*{first}*'"
    return (
        f"title matches /\\b{first} ({second}|{third})/" if cut < 3 else f"title matches /^{opener}.* {first}[a-z]?$/"
    )
