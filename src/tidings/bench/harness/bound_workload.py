"""A workload's filters, bound once, and its events, read once, for algorithms that are measured by themselves.

Parsing and binding cost tens of microseconds a filter, whichever matcher gets it, and reading an event some more.
Neither is an algorithm's own work, so all algorithms are measured on the same bound filters and readings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.algebra import AttributeReader, Reading, Setting
from tidings.bench.harness.measure import US
from tidings.bench.harness.subscription_forms import pause_gc
from tidings.bench.harness.timing import measure_seconds
from tidings.bench.workloads import NOW
from tidings.concepts import Vocabulary
from tidings.matcher.admission import Admission, build_refusal
from tidings.matcher.algorithm import SubId
from tidings.matcher.algorithm_store import AlgorithmStore
from tidings.matcher.loading.bulk_load import Load
from tidings.matcher.loading.parameter_table import is_parameter_table
from tidings.matcher.loading.subscription_input import iterate_subscriptions
from tidings.model import Filter, Schema
from tidings.model.arrow_types import to_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from tidings.bench.harness.subscription_forms import SubscriptionSource
    from tidings.bench.workloads import Workload


@dataclass(frozen=True, slots=True)
class BoundWorkload:
    """Ids with bound filters, readings of the events, and the setting of both.

    `read_us` is the time it took to read one event, in microseconds.
    """

    filters: list[tuple[SubId, Filter]]
    readings: list[Reading]
    setting: Setting
    read_us: float

    def __len__(self) -> int:
        """Return the number of filters."""
        return len(self.filters)


def bind_workload(workload: Workload, subscriptions: SubscriptionSource, events: pa.Table) -> BoundWorkload:
    """Bind subscriptions and read events, as `td.Matcher` would."""
    schema = Schema(dict(workload.schema)) if workload.schema else None
    vocabulary = Vocabulary(schema, workload.make_ontology() if workload.make_ontology else None)
    admission, collector, concepts = Admission(vocabulary), _FilterCollector(), vocabulary.concepts
    store = AlgorithmStore(collector, admission.bind_filter, admission.parse_stored)
    with pause_gc():
        if is_parameter_table(subscriptions):
            errors = Load(subscriptions, admission, store).enter(keep_good=False)
        else:
            errors = admission.enter(list(iterate_subscriptions(subscriptions)), store, keep_good=False)
        if errors:
            raise build_refusal(errors, len(subscriptions))
        setting = Setting(concepts, NOW)
        reader = AttributeReader(admission.needs.to_requirements(), concepts)
        readings: list[Reading] = []
        seconds = measure_seconds(lambda: readings.extend(reader.read(row, setting.now) for row in to_rows(events)))
    return BoundWorkload(collector.filters, readings, setting, seconds / len(readings) * US)


class _FilterCollector:
    """An algorithm that only keeps the filters it is handed."""

    def __init__(self) -> None:
        self.filters: list[tuple[SubId, Filter]] = []

    def compile_filter(self, tree: Filter) -> Filter:
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
