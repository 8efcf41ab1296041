"""Subscriptions that a frame's columns refuse: left out of a `td.Live` one by one, and listed.

A `td.Live` is written by many. One filter that asks a column for what none of its values can be (`sold < 3`, where
`sold` is a BOOLEAN) must not stop the query for all others, nor, when it comes while a stream runs, the stream. So
whoever opens a version for a frame, driver and workers alike, takes out those that the check refuses; each opens its
own copy, and the folder stays as it is.
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

    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.matcher import Matcher
    from tidings.matcher.algorithm import SubId
    from tidings.model import Filter, Schema

Refusals = list[tuple["SubId", TidingsError]]
"""Ids that were left out, and why."""

SHOWN = 3
"""So many are named in the log; `ts.refused` lists all."""

_log = logging.getLogger("tidings.spark")


def remove_refused(matcher: Matcher, frame: Schema, whole: Callable[[], Matcher] | None = None) -> Refusals:
    """Remove the subscriptions that a frame of these columns refuses, and return them with the reasons.

    With a closed schema of the frame, so is a filter that names what no column has. A shard answers for the demands of
    all shards, so it leaves out those of the `whole`; it returns its own. Who asks for what is refused is looked up in
    the index: one such filter among a million costs milliseconds, not a look at each.
    """
    keys = [*_conflicting(matcher, frame), *_unknown(matcher, frame)]
    if not keys:
        return []
    every = matcher if whole is None else whole()
    refused = [(id, _problem(every[id], every, frame)) for id in every.find_readers(keys)]
    mine = [(id, problem) for id, problem in refused if id in matcher]
    matcher.release_demands([every[id] for id, _ in refused if id not in matcher])
    matcher.remove_many([id for id, _ in mine])
    return mine


def _conflicting(matcher: Matcher, frame: Schema) -> list[TypedAttribute]:
    """Return the ways in which attributes are read that the frame's columns are not."""
    needs = matcher.needs().items()
    return [key for name, ways in needs for need in ways if has_conflict(frame.get(name), need) for key in need.keys(name)]


def _unknown(matcher: Matcher, frame: Schema) -> list[TypedAttribute]:
    """Return the ways in which attributes are read that neither the frame nor the matcher's own schema has."""
    if not frame.closed:
        return []
    names = frame if matcher.schema is None else frame.merged(matcher.schema)
    vocabulary, needs = Vocabulary(names, matcher.ontology), matcher.needs().items()
    unknown = [(name, ways) for name, ways in needs if not vocabulary.has_attribute(name)]
    return [key for name, ways in unknown for need in ways for key in need.keys(name)]


def _problem(tree: Filter, matcher: Matcher, frame: Schema) -> TidingsError:
    """Return why the frame refuses a filter."""
    names = frame if matcher.schema is None else frame.merged(matcher.schema)
    vocabulary = Vocabulary(names, matcher.ontology)
    used = vocabulary.concepts
    needs = RequirementTracker(matcher.schema, used)
    try:
        needs.add(fold_names(tree, used), "the subscription")
        refuse_conflicts(needs.to_requirements().attributes, frame)
    except TidingsError as problem:
        return problem
    asked = [name for name, *_ in needs.to_dict()["demands"] if not vocabulary.has_attribute(name)]
    return UnknownAttributes("\n".join(describe_unknown_attribute(name, names) for name in asked), names=tuple(asked))


def warn_refused(refused: Refusals, folder: str) -> None:
    """Say in the log that some are left out."""
    if refused:
        named = "; ".join(f"`{id}`: {problem}" for id, problem in refused[:SHOWN])
        more = f"; and {len(refused) - SHOWN:,} others" if len(refused) > SHOWN else ""
        _log.warning(
            "%s subscriptions of `%s` do not fit the events and are left out (ts.refused lists them): %s%s",
            f"{len(refused):,}", folder, named, more,
        )  # fmt: skip
