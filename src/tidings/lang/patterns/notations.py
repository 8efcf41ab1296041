"""`parse_pattern` and `render_pattern`: one pattern tree, two notations (text, JSON), the same checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.concepts import Vocabulary
from tidings.errors import PatternError
from tidings.lang.diagnostics import build_error, check_notation
from tidings.lang.filters.ambiguities import issue_warnings
from tidings.lang.patterns.check import find_mistakes
from tidings.lang.patterns.parse_json import read_json_draft
from tidings.lang.patterns.parse_text import read_text_draft
from tidings.lang.patterns.render_json import render_pattern_json
from tidings.lang.patterns.render_text import render_pattern_text
from tidings.model.patterns import Pattern

if TYPE_CHECKING:
    from tidings.concepts import Ontology, Regions
    from tidings.errors import FilterWarning
    from tidings.lang.patterns.check import PatternDraft
    from tidings.model import Schema

NOTATIONS = ("text", "json")
"""The values of `notation=`."""


def parse_pattern(
    source: Any,
    *,
    notation: str = "text",
    schema: Schema | None = None,
    ontology: Ontology | None = None,
    regions: Regions | None = None,
    warnings: list[FilterWarning] | None = None,
) -> Pattern:
    """Read a pattern; `PatternError` reports every mistake with its place.

    >>> pattern = parse_pattern('''
    ...     fail  = status = 'denied' and ip = $x
    ...     enter = status = 'success' and ip = $x
    ...     fail{3,} @ t(fail) - t(first fail) < 5 min ; enter
    ... ''')
    >>> pattern.key_variables()
    ('x',)

    `json` takes text or the decoded object. With a schema, ontology or regions, the filters' names are checked
    and their literals take the attributes' kinds. A file of patterns is for `read_patterns`. A list given as
    `warnings` takes each `FilterWarning` about the filters, which are issued otherwise.
    """
    return read_pattern(source, Vocabulary.of(schema, ontology, regions), notation=notation, warnings=warnings)


def read_pattern(
    source: Any, vocabulary: Vocabulary, *, notation: str = "text", warnings: list[FilterWarning] | None = None
) -> Pattern:
    """Read a pattern as `parse_pattern` does, with schema, ontology and regions as one value."""
    check_notation(notation, NOTATIONS, " of patterns")
    if notation == "text" and not isinstance(source, str):
        msg = f"a pattern in text notation is text, not {type(source).__name__}"
        raise PatternError(msg)
    draft = (read_json_draft if notation == "json" else read_text_draft)(source, vocabulary)
    pattern = build_pattern(draft, source)
    issue_warnings(draft.source_map.filter_warnings, warnings)
    return pattern


def build_pattern(draft: PatternDraft, source: Any) -> Pattern:
    """Return the pattern of a draft; `PatternError` reports the mistakes of reading and of checking together."""
    mistakes = draft.source_map.mistakes
    others = [mistake for mistake in find_mistakes(draft) if not any(map(mistake.meets, mistakes))]
    if mistakes or others:
        raise build_error(PatternError, [*mistakes, *others], source if isinstance(source, str) else None)
    assert draft.root is not None
    return Pattern(draft.filters, draft.root, draft.absence)


def render_pattern(pattern: Pattern, notation: str = "text") -> str:
    r"""Write a pattern so that `parse_pattern` reads the same tree.

    >>> print(render_pattern(parse_pattern("a = kind = 'a'\nb = kind = 'b'\na ; not b ; x:a within 90 s")))
    a = kind = 'a'
    b = kind = 'b'
    (a ; not b ; x:a) within 90 s
    """
    check_notation(notation, NOTATIONS, " of patterns")
    if not isinstance(pattern, Pattern):
        msg = f"{type(pattern).__name__} is not a pattern; `parse_pattern` makes one of text or JSON"
        raise PatternError(msg)
    return render_pattern_json(pattern) if notation == "json" else render_pattern_text(pattern)
