"""Attribute names: plain, dotted, spelled like keywords, and such as only backticks can hold."""

from __future__ import annotations

from functools import cache

from tidings.testing.hypothesis_import import st

KEYWORDS = (
    "and", "or", "not", "in", "is", "a", "an", "null", "exists", "has", "any", "all", "none", "age", "between",
    "like", "matches", "contains", "starts", "ends", "with", "ignoring", "case", "within", "near", "true",
    "false", "polygon", "multipolygon", "now", "from", "to", "km", "days",
)  # fmt: skip
"""Words with a meaning of their own in text notation; as attributes they go in backticks."""

PLAIN = ("a", "b", "price", "year", "make", "_x", "größe", "n2", "Price")
"""Names that need no quotes."""

ODD = (
    "two words",
    "per cent %",
    "quote'd",
    "back`tick",
    "back\\slash",
    "new\nline",
    "1st",
    "-",
    "#",
    "[0]",
    "price_from",
    "&=",
    "汉",
    "𝒳",
)
"""Names that need quotes or percent-encoding somewhere."""


@cache
def attributes() -> st.SearchStrategy[str]:
    """Return names of attributes; every part between dots holds at least one character."""
    part = st.one_of(
        st.sampled_from(PLAIN),
        st.sampled_from(KEYWORDS).flatmap(lambda word: st.sampled_from((word, word.upper(), word.title()))),
        st.sampled_from(ODD),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="."), min_size=1, max_size=6),
    )
    return st.lists(part, min_size=1, max_size=3).map(".".join)
