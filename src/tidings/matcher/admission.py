"""How subscriptions get in: parsed, folded, bound, their demands counted, and staged, all or nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tidings.algebra import Binder, Needs, fold_names
from tidings.errors import BadSubscriptions, TidingsError
from tidings.lang import parse, parse_stored
from tidings.lang.filters.ambiguities import WarningCollector
from tidings.model import And, Not, Or, Test
from tidings.model.values import INT_MAX, INT_MIN, check_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidings.concepts import Ontology, Regions
    from tidings.engine.engine import Engine
    from tidings.errors import FilterWarning
    from tidings.matcher.algorithm import SubId
    from tidings.matcher.algorithm_store import AlgorithmStore
    from tidings.model import Filter, Schema

Given = tuple[Any, Any, str]
"""An id, a filter in any form, and its notation."""

Refusals = list[tuple[Any, TidingsError]]
"""Ids that were refused, and why."""

RowRefusals = list[tuple[int, TidingsError]]
"""Rows that were refused, in order, and why: an id may come more than once."""

TREES = (Test, And, Or, Not)

MANY = 1000
"""From so many subscriptions on, the garbage collector waits until all are in: it would visit them again and again."""


class Admission:
    """Reads filters against a schema, an ontology and regions, and keeps the demands of those in force."""

    def __init__(
        self, schema: Schema | None, ontology: Ontology | None, used: Ontology, regions: Regions | None
    ) -> None:
        """Start without demands."""
        self._around = {"schema": schema, "ontology": ontology, "regions": regions}
        self._used = used
        self._binder = Binder(schema, used, regions)
        self.needs = Needs(schema, used)

    def parse(self, source: Any, notation: str = "text", warnings: list[FilterWarning] | None = None) -> Filter:
        """Return the filter of text, of a decoded tree, or as it is; a list given as `warnings` takes them."""
        if isinstance(source, TREES):
            return source
        if isinstance(source, dict | bool | list):
            notation = "json"
        return parse(source, notation=notation, warnings=warnings, **self._around)  # type: ignore[arg-type]

    def parse_stored(self, text: str) -> Filter:
        """Return the filter of a text that is in force: no warning comes twice, and no rule changes what it means."""
        return parse_stored(text, **self._around)

    def bind_filter(self, tree: Filter) -> Filter:
        """Return a filter with its names, units, concepts and regions resolved."""
        return self._binder.bound(fold_names(tree, self._used))

    def release(self, tree: Filter) -> None:
        """Take back the demands of a filter."""
        self.needs.discard(fold_names(tree, self._used))

    def enter(self, given: list[Given], kept: Engine | AlgorithmStore, *, keep_good: bool) -> Refusals:
        """Put subscriptions in force; return the refusals, with which, unless `keep_good`, nothing is."""
        return [(given[row][0], problem) for row, problem in self.enter_rows(given, kept, keep_good=keep_good)]

    def enter_rows(self, given: list[Given], kept: Engine | AlgorithmStore, *, keep_good: bool) -> RowRefusals:
        """Put subscriptions in force as `enter` does; refusals come by row, in the order of the rows."""
        before, errors, stage = self.needs.to_dict(), RowRefusals(), kept.stage()
        known = kept.find_existing([id for id, _, _ in given if is_id(id)]) if len(kept) else set()
        first = next(iter(kept), None)
        seen: dict[SubId, int] = {}
        collected = WarningCollector()
        with _pause_collector(len(given) >= MANY):
            for at, (id, source, notation) in enumerate(given):
                try:
                    _check_beside(id, id if first is None else first)
                    first = id if first is None else first
                    doubts: list[FilterWarning] = []
                    tree = self.parse(source, notation, doubts)
                    collected.add(doubts, id)
                    old = None
                    if id in seen:
                        old = self.parse(*given[seen[id]][1:], doubts)
                    elif id in known:
                        old = kept.get_filter(id)
                    bound = self._count_demands(id, tree, old)
                    written = source if type(source) is str and notation == "text" else tree
                    try:
                        stage.add(id, bound, written, faithful=bound is tree)
                    except TidingsError:  # what the matcher cannot express must not be asked of events either
                        self._uncount_demands(id, tree, old)
                        raise
                    seen[id] = at
                except TidingsError as problem:
                    errors.append((at, problem))
            if errors and not keep_good:
                self.needs.restore(before)
            else:
                try:
                    collected.issue()  # before: where warnings are errors, nothing is added
                    kept.commit(stage)  # type: ignore[arg-type]
                except BaseException:
                    self.needs.restore(before)
                    raise
        return errors

    def _count_demands(self, id: SubId, tree: Filter, old: Filter | None) -> Filter:
        """Count a filter's demands in place of the old one's, and return what it means; or nothing has changed."""
        folded = fold_names(tree, self._used)
        bound = self._binder.bound(folded)
        if old is not None:
            self.release(old)
        try:
            self.needs.add(folded, f"subscription `{id}`")
        except TidingsError:
            self._recount_demands(id, old)
            raise
        return bound

    def _uncount_demands(self, id: SubId, tree: Filter, old: Filter | None) -> None:
        """Take back what `_booked` did."""
        self.release(tree)
        self._recount_demands(id, old)

    def _recount_demands(self, id: SubId, old: Filter | None) -> None:
        if old is not None:
            self.needs.add(fold_names(old, self._used), f"subscription `{id}`")


@contextmanager
def _pause_collector(many: bool) -> Iterator[None]:
    """Keep the garbage collector away while many objects are made that all stay."""
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
    found = list(ids)
    for id in found:
        check_id(id)
    return list(dict.fromkeys(found))


def check_id(id: object) -> None:
    """Refuse what cannot be a subscription's id."""
    if not is_id(id):
        msg = f"an id is text or an integer, not {id!r}"
        raise TidingsError(msg)


def _check_beside(id: SubId, first: SubId) -> None:
    """Refuse an id that cannot be one, or not beside the first."""
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
    listed = "\n".join(f"  `{id}`: {problem}".replace("\n", "\n    ") for id, problem in errors)
    msg = f"{len(errors)} of {total} subscriptions were refused, so none was added:\n{listed}"
    return BadSubscriptions(msg, errors=tuple(errors))
