"""How subscriptions get in: parsed, folded, bound, their demands on attributes counted, and staged, all or nothing.

`Admission` holds what is common to all subscriptions of a matcher: the vocabulary that filters are read by, and the
demands of those in force (which attributes they read, as which kinds). The backend holds the subscriptions themselves.
Invariant: the demands are exactly those of the filters in force, also after a refusal halfway through a call.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tidings.algebra import Binder, RequirementTracker, fold_names
from tidings.errors import BadSubscriptions, FilterWarning, TidingsError
from tidings.lang.filters.ambiguities import WarningCollector
from tidings.lang.filters.notations import parse_filter, parse_stored
from tidings.model import And, Filter, Not, Or, Test
from tidings.model.values import INT_MAX, INT_MIN, check_text

if TYPE_CHECKING:
    from tidings.concepts import Vocabulary
    from tidings.engine.engine import Removal
    from tidings.matcher.algorithm import SubId
    from tidings.matcher.backend import Backend
    from tidings.matcher.loading.subscription_input import Submission

Refusals = list[tuple[Any, TidingsError]]
"""Ids that were refused, and why."""

RowRefusals = list[tuple[int, TidingsError]]
"""Rows that were refused, in order, and why: an id may come more than once."""

COLLECTOR_PAUSE_MIN = 1000
"""From so many subscriptions on, the garbage collector waits until all are in: it would visit them again and again."""


class Admission:
    """Reads filters by a vocabulary, and counts the demands of those in force."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary, self.concepts = vocabulary, vocabulary.concepts
        self.binder, self.needs = Binder(vocabulary), RequirementTracker(vocabulary)

    def parse(self, source: Any, notation: str = "text", warnings: list[FilterWarning] | None = None) -> Filter:
        """Return the filter of a text or a decoded JSON tree; a filter is returned as it is.

        Warnings are appended to the list `warnings`, or issued where there is none.
        """
        if not isinstance(source, str):
            if isinstance(source, Test | And | Or | Not):
                return source
            if isinstance(source, TidingsError):  # of a row of a table, from which no filter could be made
                raise source
            if isinstance(source, dict | bool | list):
                notation = "json"
        return parse_filter(source, self.vocabulary, notation=notation, warnings=warnings)

    def parse_stored(self, source: str | Filter) -> Filter:
        """Return a filter in force, or that of its text: no warning comes twice, and no rule changes its meaning."""
        return parse_stored(source, self.vocabulary) if isinstance(source, str) else source

    def fold(self, tree: Filter) -> Filter:
        """Return a filter with the canonical names of attributes in place of their synonyms."""
        return fold_names(tree, self.concepts)

    def bind_filter(self, tree: Filter) -> Filter:
        """Return a filter with its names, units, concepts and regions resolved."""
        return self.binder.bind_filter(self.fold(tree))

    def release(self, tree: Filter) -> None:
        """Take back the demands of a filter."""
        self.needs.discard(self.fold(tree))

    def release_removed(self, removal: Removal) -> None:
        """Take back the demands of subscriptions that a backend removed."""
        for (name, demand), count in removal.demands.items():
            self.needs.count(name, demand, -count)
        for tree in removal.filters:
            self.release(tree)

    def list_demands(self) -> dict[str, str]:
        """Return the attributes that filters in force ask for, each with the name of the first filter that does."""
        return {row[0]: row[4] for row in self.needs.to_dict()["demands"]}

    def enter_rows(self, submissions: list[Submission], backend: Backend, *, keep_good: bool) -> RowRefusals:
        """Put subscriptions in force and return the refused rows; if there are any, none goes in unless `keep_good`."""
        before = self.needs.to_dict()
        stager = RowStager(self, submissions, backend.stage(), backend, first=next(iter(backend), None))
        with pause_collector(len(submissions) >= COLLECTOR_PAUSE_MIN):
            refusals = stager.stage_rows()
            if refusals and not keep_good:
                self.needs.restore(before)
            else:
                try:
                    stager.doubts.issue()  # before the commit: where warnings are errors, nothing is added
                    backend.commit(stager.stage)
                except BaseException:
                    self.needs.restore(before)
                    raise
        return refusals


class RowStager:
    """Judges rows one after the other and puts the good ones on a stage; warnings about them wait in `doubts`.

    `first` is an id in force, which tells the type of all ids. Rows replace subscriptions of `backend` and earlier rows
    with the same id; without a backend, earlier rows alone.
    """

    def __init__(
        self,
        admission: Admission,
        submissions: list[Submission],
        stage: Any,
        backend: Backend | None = None,
        *,
        first: SubId | None,
    ) -> None:
        self._admission, self._submissions, self.stage, self._backend = admission, submissions, stage, backend
        self.doubts = WarningCollector()
        ids = [id for id, _, _ in submissions if is_id(id)] if backend else []
        self._existing = backend.find_existing(ids) if backend and ids else set()
        self._first = first
        self._staged: dict[SubId, int] = {}

    def stage_rows(self) -> RowRefusals:
        """Stage all rows, and return those that are refused."""
        refusals: RowRefusals = []
        for row, submission in enumerate(self._submissions):
            try:
                self._stage_row(row, submission)
            except TidingsError as problem:
                refusals.append((row, problem))
        return refusals

    def _stage_row(self, row: int, submission: Submission) -> None:
        """Judge one subscription after all before it; a refusal leaves stage and demands as they were."""
        id, source, notation = submission
        _check_beside(id, id if self._first is None else self._first)
        self._first = id if self._first is None else self._first
        warnings: list[FilterWarning] = []
        admission, witness = self._admission, f"subscription `{id}`"
        tree = admission.parse(source, notation, warnings)
        self.doubts.add(warnings, id)
        old, folded = self._find_replaced(id), admission.fold(tree)
        bound = admission.binder.bind_filter(folded)
        if old is not None:
            admission.release(old)
        try:
            admission.needs.add(folded, witness)
            written = source if type(source) is str and notation == "text" else tree
            try:
                self.stage.add(id, bound, written, lossless=bound is tree)
            except TidingsError:  # what the matcher cannot express must not be asked of events either
                admission.needs.discard(folded)
                raise
        except TidingsError:
            if old is not None:
                admission.needs.add(admission.fold(old), witness)
            raise
        self._staged[id] = row

    def _find_replaced(self, id: SubId) -> Filter | None:
        """Return the filter that this id has so far: an earlier row's, or the one in force."""
        if id in self._staged:
            return self._admission.parse(*self._submissions[self._staged[id]][1:], [])
        return self._backend.get_filter(id) if self._backend is not None and id in self._existing else None


@contextmanager
def pause_collector(many: bool = True) -> Iterator[None]:
    """Disable the garbage collector while many objects are made that all stay: each collection would traverse them."""
    pause = many and gc.isenabled()
    if pause:
        gc.disable()
    try:
        yield
    finally:
        if pause:
            gc.enable()


def is_id(id: object) -> bool:
    """Tell whether this can be a subscription's id."""
    return isinstance(id, str | int) and not isinstance(id, bool)


def check_ids(ids: Any) -> list[SubId]:
    """Return ids, each once: from any iterable of text or integers, an Arrow array or a NumPy array."""
    for method in ("to_pylist", "tolist"):
        if hasattr(ids, method):
            ids = getattr(ids, method)()
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        msg = f"remove_many takes a list of ids, not {ids!r}; remove takes one"
        raise TidingsError(msg)
    distinct = list(ids)
    for id in distinct:
        check_id(id)
    return list(dict.fromkeys(distinct))


def check_id(id: object) -> None:
    """Refuse what cannot be a subscription's id."""
    if not is_id(id):
        msg = f"an id is text or an integer, not {id!r}"
        raise TidingsError(msg)


def check_on_error(on_error: str) -> None:
    """Refuse anything but the two ways to treat bad subscriptions and events."""
    if on_error not in ("raise", "collect"):
        msg = f"on_error is `raise` or `collect`, not `{on_error}`"
        raise TidingsError(msg)


def _check_beside(id: SubId, first: SubId) -> None:
    """Refuse an id that cannot be one, or is of another type than the first id of the matcher."""
    check_id(id)
    if type(first) is not type(id):
        msg = f"ids are all text or all integers: {id!r} comes after {first!r}"
        raise TidingsError(msg)
    if isinstance(id, int):
        if not INT_MIN <= id <= INT_MAX:
            msg = f"the id `{id}` does not fit 64 bits; write it as text"
            raise TidingsError(msg)
    elif not id.isascii():
        try:
            check_text(id)
        except ValueError as problem:
            msg = f"the id {id!r} cannot be kept: {problem}"
            raise TidingsError(msg) from problem


def build_refusal(errors: Refusals, total: int) -> BadSubscriptions:
    """Return the error that lists every refusal."""
    lines = "\n".join(f"  `{id}`: {problem}".replace("\n", "\n    ") for id, problem in errors)
    msg = f"{len(errors)} of {total} subscriptions were refused, so none was added:\n{lines}"
    return BadSubscriptions(msg, errors=tuple(errors))
