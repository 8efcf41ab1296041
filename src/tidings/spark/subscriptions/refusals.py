"""Subscriptions that a frame's columns refuse: left out of a `td.Live` one by one, and listed.

Many people write to a `td.Live`. A filter that reads a column as a kind that none of its values has (`sold < 3`, where
`sold` is a BOOLEAN) must not stop the query for all others, nor a stream that is already running. So whoever opens a
version for a frame, driver and workers alike, removes the refused subscriptions from its own copy; the folder stays
unchanged.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tidings.algebra import RequirementTracker, fold_names
from tidings.algebra.law.requirements import describe_unknown_attribute
from tidings.concepts import Vocabulary
from tidings.errors import TidingsError, UnknownAttributes
from tidings.spark.schema import has_conflict, refuse_conflicts

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.matcher import Matcher
    from tidings.matcher.admission import Refusals
    from tidings.model import Filter, Schema

SHOWN = 3
"""The number of refusals that are named in the log; `ts.refused` lists all."""

_log = logging.getLogger("tidings.spark")


def remove_refused(matcher: Matcher, frame: Schema, open_all: Callable[[], Matcher] | None = None) -> Refusals:
    """Remove the subscriptions that a frame of these columns refuses, and return them with the reasons.

    A filter is refused when it reads a column as a kind that the column is not and, if the frame's schema is closed,
    when it names what no column has. The matcher of one shard knows the demands of all shards: `open_all` opens the
    whole set, and only the shard's own refusals are returned. Readers of a refused attribute are looked up in the
    index, so one bad filter among a million costs milliseconds.
    """
    vocabulary = _merge_vocabulary(matcher, frame)
    keys = [
        key
        for name, specs in matcher.needs().items()
        for spec in specs
        if has_conflict(frame.get(name), spec) or (frame.closed and not vocabulary.has_attribute(name))
        for key in spec.list_keys(name)
    ]
    if not keys:
        return []
    everything = matcher if open_all is None else open_all()
    readers = {id: everything[id] for id in everything.backend.find_readers(keys)}
    matcher.release_demands([tree for id, tree in readers.items() if id not in matcher])
    refusals = [(id, _explain_refusal(tree, everything, frame)) for id, tree in readers.items() if id in matcher]
    matcher.remove_many([id for id, _ in refusals])
    return refusals


def _merge_vocabulary(matcher: Matcher, frame: Schema) -> Vocabulary:
    """Return the vocabulary of a matcher with the columns of a frame."""
    return Vocabulary(frame if matcher.schema is None else frame.merged(matcher.schema), matcher.ontology)


def _explain_refusal(tree: Filter, matcher: Matcher, frame: Schema) -> TidingsError:
    vocabulary = _merge_vocabulary(matcher, frame)
    tracker = RequirementTracker(Vocabulary(matcher.schema, matcher.ontology))
    try:
        tracker.add(fold_names(tree, vocabulary.concepts), "the subscription")
        refuse_conflicts(tracker.to_requirements().attributes, frame)
    except TidingsError as problem:
        return problem
    unknown = [name for name, *_ in tracker.to_dict()["demands"] if not vocabulary.has_attribute(name)]
    lines = [describe_unknown_attribute(name, vocabulary.schema or frame) for name in unknown]
    return UnknownAttributes("\n".join(lines), names=tuple(unknown))


def warn_refused(refusals: Refusals, folder: str) -> None:
    """Log that some subscriptions are left out, and name the first of them."""
    if refusals:
        named = "; ".join(f"`{id}`: {problem}" for id, problem in refusals[:SHOWN])
        more = f"; and {len(refusals) - SHOWN:,} others" if len(refusals) > SHOWN else ""
        _log.warning(
            "%s subscriptions of `%s` do not fit the events and are left out (ts.refused lists them): %s%s",
            f"{len(refusals):,}", folder, named, more,
        )  # fmt: skip
