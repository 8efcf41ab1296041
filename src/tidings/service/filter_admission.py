"""Whether a filter or a pattern would be taken: the same judgement as that of an empty matcher, without keeping it.

A conjunction is taken if its parts are, and parsed filters share their parts (`lang.filters.fast_text`). So each
distinct test is folded, bound, held against declarations and compiled once, and a million saved searches cost little
more than their parsing. Whatever is not a conjunction of tests is compiled whole. Nothing stays of it but the tests
that passed, so no subscription plays a part in what becomes of another.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tidings.engine.compile.draft import FilterDraft
from tidings.errors import FilterError, Mistake
from tidings.lang import parse_pattern, render_pattern
from tidings.matcher.admission import Admission
from tidings.model import And, Has, Not, Or, Test
from tidings.patterns.pattern_set import PatternCatalog, StreamSettings, check_pattern
from tidings.service.pattern_bounds import check_pattern_size

if TYPE_CHECKING:
    from tidings.concepts import Vocabulary
    from tidings.errors import FilterWarning
    from tidings.model import Filter
    from tidings.model.patterns import Pattern
    from tidings.patterns.compile.graph import CompiledPattern

MAX_ACCEPTED = 50_000
"""Tests that are remembered at most; then they are forgotten, with what compiling them left."""

MOST_NESTED = 5
"""Levels of `has` in each other at most: records in records are read once for each way to name them, 2**levels."""

PATTERN_NAME = "the pattern"
"""What a pattern is called while it is judged; errors about it name it so."""


class FilterAdmission:
    """Judges filters and patterns by one vocabulary; for one thread at a time."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._renew()

    def _renew(self) -> None:
        self._admission = Admission(self._vocabulary)
        self._draft = FilterDraft(self._admission.concepts)
        self._accepted: dict[int, Filter] = {}  # by `id`, which a reference keeps from being used again
        self._compiled = 0

    def admit(self, source: Any, notation: str, warnings: list[FilterWarning]) -> Filter:
        """Return the filter of a text or a JSON tree; a `TidingsError` says why it would not be taken."""
        tree = self._admission.parse(source, notation, warnings)
        parts = tree.parts if type(tree) is And else (tree,)
        accepted = self._accepted
        for part in parts:
            if id(part) not in accepted:
                self._judge(part)
        return tree

    def _judge(self, part: Filter) -> None:
        check_nesting(part)
        admission = self._admission
        folded = admission.fold(part)
        bound = admission.binder.bind_filter(folded)
        admission.needs.add(folded, "the filter")
        if self._compiled >= MAX_ACCEPTED:
            self._renew()
        self._draft.add(0, bound)
        self._compiled += 1
        if type(part) is Test or (type(part) is Not and type(part.part) is Test):
            self._accepted[id(part)] = part

    def admit_pattern(self, pattern: Pattern, mode: str) -> CompiledPattern:
        """Return a pattern as a detector compiles it; a `TidingsError` says why it would not be taken."""
        written = check_pattern(PATTERN_NAME, pattern, mode, None)
        check_stored_form(pattern)
        check_pattern_size(written)
        catalog = PatternCatalog(self._vocabulary, StreamSettings())
        catalog.add_many([written])
        compiled = catalog.compile()
        _ = compiled.machines  # merged and laid out, as a run would
        return compiled.patterns[0]


def check_nesting(tree: Filter) -> None:
    """Raise `FilterError` for `has` within `has` beyond `MOST_NESTED` levels."""
    if _count_nested(tree) > MOST_NESTED:
        message = f"`has` stands in `has` more than {MOST_NESTED} levels deep, which is the limit here"
        raise FilterError(message, mistakes=(Mistake(message),), text=None)


def _count_nested(tree: Filter) -> int:
    match tree:
        case Test(_, Has(inner)):
            return 1 + _count_nested(inner)
        case And(parts) | Or(parts):
            return max(map(_count_nested, parts), default=0)
        case Not(part):
            return _count_nested(part)
    return 0


def check_stored_form(pattern: Pattern) -> None:
    """Raise an error for a pattern that cannot be read back from its JSON, which workers, states and models read.

    A text of a hundred parentheses may be a tree of two hundred levels, and in JSON every level counts.
    """
    for named in pattern.filters:
        check_nesting(named.filter)
    parse_pattern(json.loads(render_pattern(pattern, "json")), notation="json", warnings=[])
