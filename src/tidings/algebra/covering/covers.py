"""`covers` and `overlaps`: every event that one filter accepts is accepted by the other; some event suits both.

`covers` is never true wrongly and `overlaps` never false wrongly; both are exact on conjunctions of
predicates on one ordered attribute each. Events that are bad for the filters do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.algebra.covering.judge import Judge
from tidings.concepts import Ontology, Vocabulary, parse_now
from tidings.model import require_filter

if TYPE_CHECKING:
    from datetime import datetime

    from tidings.concepts import Regions
    from tidings.model import Filter, Schema

MAX_JUDGES = 16
"""Vocabularies whose prepared filters are cached."""

_judges: dict[tuple[object, ...], Judge] = {}


def covers(
    f: Filter,
    g: Filter,
    *,
    schema: Schema | None = None,
    ontology: Ontology | None = None,
    regions: Regions | None = None,
    now: datetime | None = None,
) -> bool:
    """Tell whether `f` accepts every event that `g` accepts; false also when that cannot be decided.

    >>> from tidings import parse
    >>> covers(parse("price < 9000"), parse("make = 'ford' and price < 5000"))
    True

    Attributes are multivalued unless `schema` declares one value. Without `schema`, `ontology` and `regions`,
    undefined concepts, units and regions are equal only to themselves. Without `now`, conditions on ages are
    compared for every time.
    """
    return _find_judge(schema, ontology, regions, now).covers(require_filter(f), require_filter(g))


def overlaps(
    f: Filter,
    g: Filter,
    *,
    schema: Schema | None = None,
    ontology: Ontology | None = None,
    regions: Regions | None = None,
    now: datetime | None = None,
) -> bool:
    """Tell whether some event satisfies both filters; true also when that cannot be decided.

    >>> from tidings import Schema, parse
    >>> overlaps(parse("a < 2"), parse("a > 3"))  # by the event {"a": [1, 4]}
    True
    >>> overlaps(parse("a < 2"), parse("a > 3"), schema=Schema({"a": "number"}))
    False
    """
    return _find_judge(schema, ontology, regions, now).overlaps(require_filter(f), require_filter(g))


def _find_judge(
    schema: Schema | None, ontology: Ontology | None, regions: Regions | None, now: datetime | None
) -> Judge:
    """Return the cached judge of a vocabulary; it keeps references, so that `id()` stays valid as a cache key."""
    vocabulary = Vocabulary.of(schema, ontology, regions)
    now = parse_now(now)
    key = (id(schema), id(ontology), id(regions), now)
    judge = _judges.get(key)
    if judge is None:
        if len(_judges) >= MAX_JUDGES:
            _judges.clear()
        judge = _judges[key] = Judge(
            vocabulary.concepts,
            schema=schema,
            regions=regions,
            now=now,
            tolerated=(LookupError,) if vocabulary.is_empty else (),
        )
    return judge
