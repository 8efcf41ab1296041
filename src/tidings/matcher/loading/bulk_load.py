"""Loading a table of parameters: whole columns at once where they are plain, row by row where they are not.

A column is plain when its values mean what they say: no concepts to fold, no synonyms, no text to read as a time.
Of plain columns, rows that only the long way can judge (a NaN, a range upside down, a set with a null) are odd
and take it; so does everything when demands contradict each other, since then the order of rows decides who
is refused. The long way is the law, and both give the same answers, refusals and filters.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.algebra.law.requirement_counts import Demand
from tidings.engine.compile.bulk_table import Areas, Ends, Points, Sets, Spans, Tested, table_of
from tidings.engine.compile.draft import Draft
from tidings.engine.compile.row_table import Table
from tidings.engine.compile.source_text import Sources
from tidings.engine.engine import Engine
from tidings.engine.ids import Ids
from tidings.engine.merge import joined
from tidings.errors import FilterWarning, KindConflict, TidingsError
from tidings.matcher.loading.parameter_columns import Plain
from tidings.matcher.loading.parameter_table import ParameterRows, asked_of, check_types, declared_kinds
from tidings.model import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from tidings.concepts import Ontology
    from tidings.matcher.admission import Admission, Refusals
    from tidings.matcher.algorithm import SubId
    from tidings.matcher.algorithm_store import AlgorithmStore
    from tidings.model import Filter, Schema

LEAST = 200
"""Fewer rows than this go one by one: they may wait beside the index until there are more."""

LONG = 200
"""A row of so many tests is not read back from its literals (`engine.draft`)."""


class Load:
    """A table on its way in, and what its names mean."""

    def __init__(
        self, table: Any, admission: Admission, kept: Engine | AlgorithmStore, *, schema: Schema | None, ontology: Ontology
    ) -> None:
        """Read the names of the columns; refuse what is no table of parameters."""
        import pyarrow as pa

        self.table: pa.Table = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
        check_types(self.table)
        self.asked = asked_of(self.table.column_names, schema)
        self.kinds = declared_kinds(self.asked, schema, ontology)
        self.admission, self.kept, self.ontology = admission, kept, ontology
        self.refused: list[int] = []  # the rows that were, once they are in

    def enter(self, *, keep_good: bool) -> Refusals:
        """Put the rows in force; return the refusals, with which, unless `keep_good`, nothing is."""
        before = self.admission.needs.to_dict()
        if isinstance(self.kept, Engine) and self.table.num_rows >= LEAST:
            try:
                return self._at_once(self.kept, before, keep_good)
            except _LongWay:
                self.admission.needs.restore(before)
            except FilterWarning:  # where warnings are errors, nothing is added
                self.admission.needs.restore(before)
                raise
        return self._one_by_one(before, keep_good)

    # The long way ------------------------------------------------------------------------------

    def _one_by_one(self, before: Any, keep_good: bool) -> Refusals:
        stand_in = _Staging(self.kept, self.kept.stage())
        errors = self._judged(np.arange(self.table.num_rows), stand_in)
        if errors and not keep_good:
            self.admission.needs.restore(before)
        else:
            self.kept.commit(stand_in.staged)
        return self._refusals(errors)

    def _refusals(self, errors: list[tuple[int, Any, TidingsError]]) -> Refusals:
        self.refused = [row for row, _, _ in errors]
        return [(id, problem) for _, id, problem in errors]

    def _judged(self, rows: NDArray[np.int64], stand_in: _Staging) -> list[tuple[int, Any, TidingsError]]:
        """Stage the filters of rows in the ordinary way; return what was refused, by row."""
        table = self.table.take(rows)
        ids = table.column("id").to_pylist()
        errors, given, numbers = [], [], []
        for row, name, made in zip(rows.tolist(), ids, self._filters(rows), strict=True):
            if isinstance(made, TidingsError):
                errors.append((row, name, made))
            else:
                given.append((name, made, "text"))
                numbers.append(row)
        stand_in.rows = {_key(tree): row for (_, tree, _), row in zip(given, numbers, strict=True)}
        for at, problem in self.admission.enter_rows(given, stand_in, keep_good=True):  # type: ignore[arg-type]
            errors.append((numbers[at], given[at][0], problem))
        return sorted(errors, key=lambda error: error[0])

    def _filters(self, rows: NDArray[np.int64]) -> Iterable[Any]:
        """Return the filter of each row, or what is wrong with it."""
        return ParameterRows(self.table.take(rows), self.asked, self.kinds).made()

    def _left(self) -> NDArray[np.bool_]:
        """Return the rows that the columns do not hold."""
        return np.zeros(self.table.num_rows, bool)

    # Whole columns -----------------------------------------------------------------------------

    def _at_once(self, kept: Engine, before: Any, keep_good: bool) -> Refusals:
        read = Plain(self.table, self.kinds, self.ontology)
        asked = [test for one in self.asked if (test := read.test(one)) is not None]
        odd = read.odd | self._odd_ids(kept) | self._left()
        plain = ~odd
        tests = [_only(test, plain, whole=not odd.any()) for test in asked]
        self._count(tests)
        errors, accepted, draft = self._odd_rows(kept, odd)
        if errors and not keep_good:
            self.admission.needs.restore(before)
            return self._refusals(errors)
        rows = np.flatnonzero(accepted)
        slots = np.cumsum(accepted) - 1
        ids = Ids.of(self._ids() if len(rows) == len(accepted) else self._ids().take(rows))
        self._uncount(tests, rows, ids, draft is not None)
        self._leave(kept, ids)
        table = table_of(tests, np.flatnonzero(plain), read.texts)
        if draft is not None:
            table = joined([table, Table.of(draft)])
        kept.add_table(
            replace(table, slot=slots[table.slot].astype(np.uint32)), ids, self._sources(tests, read, odd, slots)
        )
        return self._refusals(errors)

    def _ids(self) -> pa.Array:
        return self.table.column("id").combine_chunks()

    def _odd_ids(self, kept: Engine) -> NDArray[np.bool_]:
        """Return where the id is none, or not of the kind that the others are."""
        import pyarrow.types as t

        column = self.table.column("id")
        first = next(iter(kept), None)
        kind = column.type.value_type if t.is_dictionary(column.type) else column.type
        textual, whole = t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind), t.is_integer(kind)
        if not (textual or whole) or (first is not None and textual != isinstance(first, str)) or t.is_uint64(kind):
            raise _LongWay
        return np.asarray(column.is_null().to_numpy(), bool)

    def _count(self, tests: list[Tested]) -> None:
        """Count the demands of all plain rows; where they contradict others, the order of rows decides."""
        try:
            for test in tests:
                count = int(np.count_nonzero(test.given))
                if count:
                    first = self.table["id"][int(np.argmax(test.given != 0))].as_py()
                    self.admission.needs.count(*_demand(test), count, witness=f"subscription `{first}`")
        except TidingsError as problem:
            raise _LongWay from problem

    def _uncount(self, tests: list[Tested], rows: NDArray[np.int64], ids: Ids, mixed: bool) -> None:
        """Take back the demands of rows whose id comes again later."""
        again = rows[ids.duplicates()]
        if not len(again):
            return
        if mixed:
            raise _LongWay
        for test in tests:
            self.admission.needs.count(*_demand(test), -int(np.count_nonzero(test.given[again])))

    def _leave(self, kept: Engine, ids: Ids) -> None:
        """Take back the demands of the subscriptions that are replaced."""
        replaced = kept.list_existing(ids)
        if replaced:
            found = kept.remove(replaced, keep=True)
            for (name, demand), count in found.demands.items():
                self.admission.needs.count(name, demand, -count)
            for tree in found.trees:
                self.admission.release(tree)

    def _odd_rows(
        self, kept: Engine, odd: NDArray[np.bool_]
    ) -> tuple[list[tuple[int, Any, TidingsError]], NDArray[np.bool_], Draft | None]:
        """Compile the odd rows one by one: return the refusals, which rows are accepted, and the draft."""
        accepted = ~odd
        if not odd.any():
            return [], accepted, None
        rows = np.flatnonzero(odd)
        first = next(iter(kept), None)
        if first is None and accepted.any():
            first = self.table["id"][int(np.argmax(accepted))].as_py()
        staged = _Compiled(Draft(self.ontology))
        stand_in = _Staging([] if first is None else [first], staged)
        staged.stand_in = stand_in
        errors = self._judged(rows, stand_in)
        if any(isinstance(problem, KindConflict) for _, _, problem in errors):
            raise _LongWay
        refused = {row for row, _, _ in errors}
        accepted[[row for row in rows.tolist() if row not in refused]] = True
        return errors, accepted, staged.draft if accepted[rows].any() else None

    def _sources(self, tests: list[Tested], read: Plain, odd: NDArray[np.bool_], slots: NDArray[np.int64]) -> Sources:
        """Return what was written by the rows that do not say it: it is read from the table when asked for."""
        rows = self._unsaid(tests, read, odd, slots)
        written = ParameterRows(self.table.take(rows).combine_chunks(), self.asked, self.kinds) if len(rows) else []
        return Sources(slots[rows].astype(np.int64), written)

    def _unsaid(
        self, tests: list[Tested], read: Plain, odd: NDArray[np.bool_], slots: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the rows whose literals do not say what was written."""
        kept = np.diff(slots, prepend=-1) > 0
        unsaid = (read.unsaid | odd) & kept
        if len(tests) >= LONG:
            unsaid |= (sum(test.given.astype(np.int64) for test in tests) >= LONG) & kept
        return np.flatnonzero(unsaid)


class _LongWay(Exception):
    """Columns cannot decide this."""


def _demand(test: Tested) -> tuple[str, Demand]:
    if isinstance(test, Areas):
        return test.attribute, Demand(Kind.PLACE)
    return test.column.attribute, Demand(test.column.kind)


def _only(test: Tested, plain: NDArray[np.bool_], *, whole: bool) -> Tested:
    """Return the test for plain rows alone."""
    if whole:
        return test
    mask = plain.view(np.uint8)
    match test:
        case Points(column, ends):
            return Points(column, Ends(ends.values, ends.given * mask))
        case Spans(column, low, high):
            return Spans(column, Ends(low.values, low.given * mask), Ends(high.values, high.given * mask))
        case Sets(start=start, given=given):
            given = given * mask
            values = np.repeat(given, np.diff(start)) * test.ends.given
            return replace(test, given=given, ends=Ends(test.ends.values, values))
        case Areas(given=given):
            return replace(test, given=given * mask)


class _Compiled:
    """A stage that compiles into a draft, whose slots are rows of the table."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.stand_in: _Staging | None = None

    def add(self, id: SubId, bound: Filter, written: Any, *, faithful: bool) -> None:
        del id, faithful
        assert self.stand_in is not None
        self.draft.add(self.stand_in.rows[_key(written)], bound)


def _key(tree: Any) -> int:
    return id(tree)


class _Staging:
    """Stands for what is in force while filters are judged: nothing is committed, the stage stays in hand."""

    def __init__(self, kept: Engine | AlgorithmStore | Sequence[SubId], staged: Any) -> None:
        self._kept, self.staged = kept, staged
        self.rows: dict[int, int] = {}

    def stage(self) -> Any:
        return self.staged

    def commit(self, stage: Any) -> None:
        pass

    def known(self, ids: Sequence[SubId]) -> set[SubId]:
        return set() if isinstance(self._kept, list) else self._kept.find_existing(ids)  # type: ignore[union-attr]

    def written(self, id: SubId) -> Filter | None:
        return self._kept.get_filter(id)  # type: ignore[union-attr]

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[SubId]:
        return iter(self._kept)
