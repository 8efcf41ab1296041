"""Loading a table of parameters: whole columns at once where they are plain, row by row where they are not.

A column is plain when its values are literals already: no concepts to fold, no synonyms, no text to read as a time. Odd
rows of plain columns (a NaN, a range upside down, a set with a null) go through admission row by row; so do all rows
when demands contradict each other, since then the order of rows decides which of them is refused. Row by row is the
definition (`Admission.enter_rows`); columns give the same answers, refusals and filters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidings.algebra.law.requirement_counts import Demand
from tidings.engine.compile import bulk_table
from tidings.engine.compile.bulk_table import AreaColumn, EndColumn, EqualityColumn, RangeColumn, SetColumn
from tidings.engine.compile.draft import MIN_UNREAD_TESTS, FilterDraft
from tidings.engine.compile.row_table import RowTable
from tidings.engine.compile.source_text import FilterSources
from tidings.engine.ids import Ids
from tidings.engine.merge import merge_tables
from tidings.errors import FilterWarning, KindConflict, TidingsError
from tidings.matcher.admission import COLLECTOR_PAUSE_MIN, RowStager, pause_collector
from tidings.matcher.loading.parameter_columns import PlainColumns
from tidings.matcher.loading.parameter_table import ParameterRows, check_types, find_kinds, parse_column_names
from tidings.model import Kind
from tidings.model.arrow_types import is_text_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from tidings.algebra.law.requirement_counts import DemandTable
    from tidings.engine.compile.bulk_table import PredicateColumn
    from tidings.engine.engine import Engine
    from tidings.kernels.array_types import BoolArray, IntArray
    from tidings.matcher.admission import Admission, RowRefusals
    from tidings.matcher.algorithm import SubId
    from tidings.matcher.backend import Backend
    from tidings.matcher.loading.subscription_input import Submission
    from tidings.model import Filter


class WrittenFilters(NamedTuple):
    """Filters in text, of which the table of parameters has those that columns can hold (`text_load`)."""

    texts: pa.Array
    unparsed: BoolArray  # rows that are not in the columns
    reordered: BoolArray  # rows whose tests stand in another order than the columns


class Load:
    """A table of parameters on its way into a backend; `written` are the texts that the table was made from."""

    def __init__(
        self,
        table: Any,
        admission: Admission,
        backend: Backend,
        *,
        bulk_rows: int,
        written: WrittenFilters | None = None,
    ) -> None:
        """Read the names of the columns; refuse anything that is not a table of parameters."""
        import pyarrow as pa

        self.table: pa.Table = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
        check_types(self.table)
        self._parameters = parse_column_names(self.table.column_names, admission.vocabulary.schema)
        self._kinds = find_kinds(self._parameters, admission.vocabulary)
        self._admission, self._backend, self._bulk_rows, self._written = admission, backend, bulk_rows, written

    def enter(self, *, keep_good: bool) -> RowRefusals:
        """Put the rows in force and return the refusals; if there are any, none goes in unless `keep_good`."""
        before = self._admission.needs.to_dict()
        engine = self._backend.bulk_engine
        if engine is not None and self.table.num_rows >= self._bulk_rows:
            try:
                return self._enter_columns(engine, before, keep_good)
            except _RowByRow:
                self._admission.needs.restore(before)
            except FilterWarning:  # where warnings are errors, nothing is added
                self._admission.needs.restore(before)
                raise
        rows = self._read_rows(np.arange(self.table.num_rows))
        return self._admission.enter_rows(rows, self._backend, keep_good=keep_good)

    def _read_rows(self, rows: IntArray) -> list[Submission]:
        """Return the ids and filters of rows; in place of a filter that cannot be made is its error."""
        filters = _ArrowTexts(self._written.texts.take(rows)) if self._written else self._parse_rows(rows).parse_rows()
        ids = self.table.take(rows).column("id").to_pylist()
        return [(id, source, "text") for id, source in zip(ids, filters, strict=True)]

    def _parse_rows(self, rows: IntArray) -> ParameterRows:
        return ParameterRows(self.table.take(rows).combine_chunks(), self._parameters, self._kinds)

    # Whole columns -----------------------------------------------------------------------------

    def _enter_columns(self, engine: Engine, before: DemandTable, keep_good: bool) -> RowRefusals:
        columns = PlainColumns(self.table, self._kinds, self._admission.concepts)
        tests = [test for parameter in self._parameters if (test := columns.read(parameter)) is not None]
        odd = columns.odd | self._find_odd_ids(engine)
        if self._written:
            odd |= self._written.unparsed
        plain = ~odd
        tests = [_mask_rows(test, plain, whole=not odd.any()) for test in tests]
        self._count_demands(tests)
        refusals, accepted, draft = self._compile_odd_rows(engine, odd)
        if refusals and not keep_good:
            self._admission.needs.restore(before)
            return refusals
        rows = np.flatnonzero(accepted)
        slots = np.cumsum(accepted) - 1
        id_array = self.table.column("id").combine_chunks()
        ids = Ids.build(id_array if len(rows) == len(accepted) else id_array.take(rows))
        self._uncount_repeated(tests, rows, ids, draft is not None)
        if replaced := engine.list_existing(ids):
            self._admission.release_removed(engine.remove(replaced, dry_run=True))
        table = bulk_table.build_bulk_table(tests, np.flatnonzero(plain), columns.texts, engine.tuning)
        if draft is not None:
            table = merge_tables([table, RowTable.from_draft(draft)], engine.tuning)
        sources = self._keep_sources(rows[self._is_lossy(tests, columns.lossy | odd)[rows]], slots)
        engine.add_table(replace(table, slot=slots[table.slot].astype(np.uint32)), ids, sources)
        return refusals

    def _find_odd_ids(self, engine: Engine) -> BoolArray:
        """Return where the id is null; ids of another kind than those in force are left to row-by-row admission."""
        import pyarrow.types as t

        column = self.table.column("id")
        first = next(iter(engine), None)
        kind = column.type.value_type if t.is_dictionary(column.type) else column.type
        textual, whole = is_text_type(kind), t.is_integer(kind)
        if not (textual or whole) or (first is not None and textual != isinstance(first, str)) or t.is_uint64(kind):
            raise _RowByRow
        return np.asarray(column.is_null().to_numpy(), bool)

    def _count_demands(self, tests: list[PredicateColumn]) -> None:
        """Count the demands of all plain rows; where they contradict others, the order of rows decides."""
        try:
            for test in tests:
                count = int(np.count_nonzero(test.mask))
                if count:
                    first = self.table["id"][int(np.argmax(test.mask != 0))].as_py()
                    self._admission.needs.count(*_get_demand(test), count, witness=f"subscription `{first}`")
        except TidingsError as problem:
            raise _RowByRow from problem

    def _uncount_repeated(self, tests: list[PredicateColumn], rows: IntArray, ids: Ids, mixed: bool) -> None:
        """Take back the demands of rows whose id comes again later."""
        repeated = rows[ids.find_duplicates()]
        if not len(repeated):
            return
        if mixed:
            raise _RowByRow
        for test in tests:
            self._admission.needs.count(*_get_demand(test), -int(np.count_nonzero(test.mask[repeated])))

    def _compile_odd_rows(self, engine: Engine, odd: BoolArray) -> tuple[RowRefusals, BoolArray, FilterDraft | None]:
        """Compile the odd rows one by one: return the refusals, a mask of all accepted rows, and the draft."""
        accepted = ~odd
        if not odd.any():
            return [], accepted, None
        rows = np.flatnonzero(odd)
        first = next(iter(engine), None)
        if first is None and accepted.any():
            first = self.table["id"][int(np.argmax(accepted))].as_py()
        submissions, draft = self._read_rows(rows), engine.draft()
        row_of = {id(source): row for (_, source, _), row in zip(submissions, rows.tolist(), strict=True)}
        stager = RowStager(self._admission, submissions, _DraftStage(draft, row_of), first=first)
        with pause_collector(len(rows) >= COLLECTOR_PAUSE_MIN):
            refusals = [(int(rows[index]), problem) for index, problem in stager.stage_rows()]
        stager.doubts.issue()
        if any(isinstance(problem, KindConflict) for _, problem in refusals):
            raise _RowByRow
        accepted[rows] = True
        accepted[[row for row, _ in refusals]] = False
        return refusals, accepted, draft if accepted[rows].any() else None

    def _is_lossy(self, tests: list[PredicateColumn], lossy: BoolArray) -> BoolArray:
        """Return where literals do not give back what was written: in the rows `lossy`, and in others."""
        if self._written:
            lossy = lossy | self._written.reordered
        if len(tests) >= MIN_UNREAD_TESTS:
            lossy = lossy | (sum(test.mask.astype(np.int64) for test in tests) >= MIN_UNREAD_TESTS)
        return lossy

    def _keep_sources(self, rows: IntArray, slots: IntArray) -> FilterSources:
        """Return the written filters of rows: each is read from the table or the texts when it is asked for."""
        filters = _ArrowTexts(self._written.texts.take(rows)) if self._written else self._parse_rows(rows)
        return FilterSources(slots[rows].astype(np.int64), filters)


class _ArrowTexts(Sequence[str]):
    """Texts in an Arrow array, each made into a Python string when it is read."""

    def __init__(self, texts: pa.Array) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts.to_pylist())

    def __getitem__(self, index: Any) -> Any:
        return self._texts[index].as_py()


class _RowByRow(Exception):
    """The table cannot be loaded by columns: every row goes through admission, in order."""


def _get_demand(test: PredicateColumn) -> tuple[str, Demand]:
    if isinstance(test, AreaColumn):
        return test.attribute, Demand(Kind.PLACE)
    return test.column.attribute, Demand(test.column.kind)


def _mask_rows(test: PredicateColumn, plain: BoolArray, *, whole: bool) -> PredicateColumn:
    """Return the test for plain rows alone."""
    if whole:
        return test
    rows = plain.view(np.uint8)
    match test:
        case EqualityColumn(column, ends):
            return EqualityColumn(column, EndColumn(ends.values, ends.mask * rows))
        case RangeColumn(column, low, high):
            return RangeColumn(column, EndColumn(low.values, low.mask * rows), EndColumn(high.values, high.mask * rows))
        case SetColumn(start=start, mask=mask):
            mask = mask * rows
            values = np.repeat(mask, np.diff(start)) * test.ends.mask
            return replace(test, mask=mask, ends=EndColumn(test.ends.values, values))
        case AreaColumn(mask=mask):
            return replace(test, mask=mask * rows)


class _DraftStage(NamedTuple):
    """Takes the place of a backend's stage for odd rows: filters go to a draft whose slots are the rows."""

    draft: FilterDraft
    row_of: dict[int, int]  # by the `id()` of the filter as it was submitted

    def add(self, _: SubId, bound: Filter, source: object, *, lossless: bool) -> None:
        del lossless
        self.draft.add(self.row_of[id(source)], bound)
