"""RE2 where the automaton cannot decide: single expressions by id, and sets of those that require no literal.

Everything is compiled when it is first needed, so that opening an automaton costs nothing.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Expression: TypeAlias = tuple[str, bool]
"""An expression, and whether it ignores case."""

ExpressionSet: TypeAlias = tuple[list[int], Any]
"""Ids, and RE2's set that searches for their expressions in one pass; None: there is none, and each is tried."""

CHUNK = 32
"""Expressions in a set. More would share a pass, but their common states multiply: for 900 expressions of six
shapes on random words, sets of 32, 128 and 1000 took 0.34, 0.50 and 1.28 ms a text."""

SET_MEMORY = 64 << 20
"""Bytes that RE2 may use for a set, for its program and its states; it takes them as they are needed."""

KEPT = 16384
"""Single expressions that stay compiled."""


def _make_options(*, ignoring_case: bool) -> Any:
    """Return the options of `model.text_tests`, which defines what an expression means, but without captures."""
    import re2

    options = re2.Options()
    options.dot_nl = True
    options.log_errors = False
    options.never_capture = True
    options.case_sensitive = not ignoring_case
    return options


class Re2Expressions:
    """Decides expressions by id; `find` returns an id's expression, `loose` are the ids without a literal."""

    def __init__(self, find: Callable[[int], Expression], loose: Sequence[int], set_memory: int = SET_MEMORY) -> None:
        self._find = find
        self._loose, self._set_memory = loose, set_memory
        self._sets: list[ExpressionSet] | None = None
        self._search = lru_cache(maxsize=KEPT)(self._compile_search)

    def accepts(self, id: int, text: bytes) -> bool:
        """Tell whether the text satisfies one expression."""
        return self._search(id)(text) is not None

    def find_loose(self, text: bytes) -> Iterator[int]:
        """Yield the ids without a literal whose expressions the text satisfies."""
        if self._sets is None:
            sets: list[ExpressionSet] = []
            for ignoring_case in (False, True):
                ids = [id for id in self._loose if self._find(id)[1] == ignoring_case]
                for at in range(0, len(ids), CHUNK):
                    sets += self._build_sets(ids[at : at + CHUNK], ignoring_case=ignoring_case)
            self._sets = sets
        for ids, search_set in self._sets:
            places = (search_set.Match(text) if search_set is not None else None) or ()
            # When its memory is spent, RE2 answers as if nothing matched. The last member of a set accepts every text,
            # so where that one is missing from the answer the expressions are tried one by one.
            if len(ids) in places:
                yield from (ids[place] for place in places if place < len(ids))
            else:
                yield from (id for id in ids if self.accepts(id, text))

    def _compile_search(self, id: int) -> Callable[[bytes], object]:
        import re2

        expression, ignoring_case = self._find(id)
        compiled = re2.compile(expression, options=_make_options(ignoring_case=ignoring_case))
        search: Callable[[bytes], object] = compiled.search
        return search

    def _build_sets(self, ids: list[int], *, ignoring_case: bool) -> Iterator[ExpressionSet]:
        """Yield one set or, where RE2 finds it too large, two of half the size, down to single expressions."""
        import re2

        options = _make_options(ignoring_case=ignoring_case)
        options.max_mem = self._set_memory
        search_set = re2.Set.SearchSet(options)
        try:
            for id in ids:
                search_set.Add(self._find(id)[0])
            search_set.Add(r"\z")
            search_set.Compile()
        except re2.error:
            if len(ids) == 1:
                yield ids, None
                return
            for half in (ids[: len(ids) // 2], ids[len(ids) // 2 :]):
                yield from self._build_sets(half, ignoring_case=ignoring_case)
            return
        yield ids, search_set
