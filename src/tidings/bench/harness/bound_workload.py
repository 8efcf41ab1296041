"""A workload's filters, bound once, and its events, read once, for matchers that are measured by themselves.

Parsing and binding cost tens of microseconds a filter, whatever matcher gets it, and reading an event some more.
Neither is an algorithm's own work; so many algorithms can be measured on what was made once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidings.algebra import AttributeReader, Reading, Setting
from tidings.bench.harness.measure import US
from tidings.bench.harness.subscription_forms import unwatched
from tidings.bench.harness.timing import seconds_of
from tidings.bench.workloads import NOW
from tidings.concepts import Vocabulary
from tidings.matcher.admission import Admission, build_refusal
from tidings.matcher.algorithm import SubId
from tidings.matcher.algorithm_store import AlgorithmStore
from tidings.matcher.loading.bulk_load import Load
from tidings.matcher.loading.parameter_table import is_parameter_table
from tidings.matcher.loading.subscription_input import pairs_of
from tidings.model import Filter, Schema
from tidings.model.arrow_types import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from tidings.bench.workloads import Workload


@dataclass(frozen=True, slots=True)
class Bound:
    """Ids with bound filters, readings of the events, and what both mean."""

    filters: list[tuple[SubId, Filter]]
    readings: list[Reading]
    setting: Setting
    read_us: float
    """What reading one of the events took."""

    def __len__(self) -> int:
        """Count the filters."""
        return len(self.filters)


def bound(workload: Workload, subscriptions: Any, events: pa.Table) -> Bound:
    """Bind subscriptions (a table of columns, or pairs) and read events, as `td.Matcher` would."""
    schema = Schema(dict(workload.schema)) if workload.schema else None
    vocabulary = Vocabulary(schema, workload.make_ontology() if workload.make_ontology else None)
    admission, gathered, used = Admission(vocabulary), _Gathered(), vocabulary.concepts
    kept = AlgorithmStore(gathered, admission.bind_filter, admission.parse_stored)
    with unwatched():
        if is_parameter_table(subscriptions):
            errors = Load(subscriptions, admission, kept).enter(keep_good=False)
        else:
            errors = admission.enter(list(pairs_of(subscriptions)), kept, keep_good=False)
        if errors:
            raise build_refusal(errors, len(subscriptions))
        setting = Setting(used, NOW)
        reader = AttributeReader(admission.needs.to_requirements(), used)
        readings: list[Reading] = []
        seconds = seconds_of(lambda: readings.extend(reader.read(row, setting.now) for row in rows_of(events)))
    return Bound(gathered.filters, readings, setting, seconds / len(readings) * US)


class _Gathered:
    """An algorithm that only keeps what it is given."""

    def __init__(self) -> None:
        self.filters: list[tuple[SubId, Filter]] = []

    def compiled(self, tree: Filter) -> Filter:
        return tree

    def add_many(self, filters: Iterable[tuple[SubId, Filter]]) -> None:
        self.filters.extend(filters)

    def remove(self, id: SubId) -> None:
        raise NotImplementedError

    def match(self, reading: Reading, setting: Setting) -> list[SubId]:
        raise NotImplementedError

    def match_many(self, readings: Sequence[Reading], setting: Setting) -> list[list[SubId]]:
        raise NotImplementedError

    def explain(self) -> dict[str, object]:
        return {}
