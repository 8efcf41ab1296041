"""Subscriptions that a frame's columns refuse: left out of a `td.Live` one by one, and listed.

A `td.Live` is written by many. One filter that asks a column for what none of its values can be (`sold < 3`, where
`sold` is a BOOLEAN) must not stop the query for all others, nor, when it comes while a stream runs, the stream. So
whoever opens a version for a frame, driver and workers alike, takes out those that the check refuses; each opens its
own copy, and the folder stays as it is. The check of all at once costs nothing; only where it fails is each one asked.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tidings.algebra import Needs, fold_names
from tidings.concepts import Ontology
from tidings.errors import TidingsError
from tidings.spark.schema import refuse_conflicts

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.matcher import Matcher
    from tidings.matchers import SubId
    from tidings.model import Filter, Schema

Refusals = list[tuple["SubId", TidingsError]]
"""Ids that were left out, and why."""

SHOWN = 3
"""So many are named in the log; `ts.refused` lists all."""

_log = logging.getLogger("tidings.spark")


def leave_out(matcher: Matcher, frame: Schema, whole: Callable[[], Matcher] | None = None) -> Refusals:
    """Remove the subscriptions that a frame of these columns refuses, and return them with the reasons.

    A shard answers for the demands of all shards, so it leaves out those of the `whole`; it returns its own.
    """
    try:
        refuse_conflicts(matcher.needs(), frame)
    except TidingsError:
        every = matcher if whole is None else whole()
        refused = [(id, problem) for id in every if (problem := _problem(every[id], every, frame)) is not None]
        mine = [(id, problem) for id, problem in refused if id in matcher]
        matcher._forget_demands([every[id] for id, _ in refused if id not in matcher])
        matcher.remove_many([id for id, _ in mine])
        return mine
    return []


def _problem(tree: Filter, matcher: Matcher, frame: Schema) -> TidingsError | None:
    """Return why the frame refuses a filter, if it does."""
    used = matcher.ontology or Ontology()
    needs = Needs(matcher.schema, used)
    try:
        needs.add(fold_names(tree, used), "the subscription")
        refuse_conflicts(needs.resolved(), frame)
    except TidingsError as problem:
        return problem
    return None


def warn(refused: Refusals, folder: str) -> None:
    """Say in the log that some are left out."""
    if refused:
        named = "; ".join(f"`{id}`: {problem}" for id, problem in refused[:SHOWN])
        more = f"; and {len(refused) - SHOWN:,} others" if len(refused) > SHOWN else ""
        _log.warning(
            "%s subscriptions of `%s` do not fit the events and are left out (ts.refused lists them): %s%s",
            f"{len(refused):,}", folder, named, more,
        )  # fmt: skip
