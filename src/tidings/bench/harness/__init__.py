"""Measurements of matchers on workloads: figures with their spread, baselines and peers in the same run, comparisons.

`bench(key, sizes)` measures and checks; `write_results` and `read_results` keep results as JSON lines, `build_table`
and `plot_results` show them, `compare_results` tells a change from noise. DuckDB, mokaccino and matplotlib
(`pip install 'tidings[bench]'`) are loaded when they are used.

>>> results = bench("equalities", [300], settings=Settings(events=4, repeat=1, memory=False, peers=False))
>>> [result.subject for result in results if result.role is Role.BASELINE]
['scan']
"""

from tidings.bench.harness.charts import plot_results
from tidings.bench.harness.compare import FigureChange, Verdict, compare_results
from tidings.bench.harness.measure import BATCH_SIZE, Settings
from tidings.bench.harness.result_tables import (
    build_table,
    format_headline,
    format_number,
    format_plain,
    group_by_size,
    list_notes,
)
from tidings.bench.harness.results import Result, Role, describe_machine, describe_run, read_results, write_results
from tidings.bench.harness.timing import Figure
from tidings.bench.harness.workload_run import bench

__all__ = [
    "BATCH_SIZE",
    "Figure",
    "FigureChange",
    "Result",
    "Role",
    "Settings",
    "Verdict",
    "bench",
    "build_table",
    "compare_results",
    "describe_machine",
    "describe_run",
    "format_headline",
    "format_number",
    "format_plain",
    "group_by_size",
    "list_notes",
    "plot_results",
    "read_results",
    "write_results",
]
