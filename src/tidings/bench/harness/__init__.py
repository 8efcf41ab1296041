"""Measurements of matchers on workloads: figures with their spread, baselines and peers in the same run, comparisons.

`bench(key, sizes)` measures and checks; `write` and `read` keep results as JSON lines, `table` and `plot` show them,
`compared` tells a change from noise. DuckDB, mokaccino and matplotlib (`pip install 'tidings[bench]'`) are loaded
when they are used.

>>> results = bench("equalities", [300], settings=Settings(events=4, repeat=1, memory=False, peers=False))
>>> [result.subject for result in results if result.role is Role.BASELINE]
['scan']
"""

from tidings.bench.harness.compare import Change, Verdict, compared
from tidings.bench.harness.measure import BATCH_SIZE, Settings
from tidings.bench.harness.plots import plot
from tidings.bench.harness.result_tables import headline, notes, plain, sizes, table
from tidings.bench.harness.results import Result, Role, circumstances, machine, read, write
from tidings.bench.harness.timing import Figure
from tidings.bench.harness.workload_run import bench

__all__ = [
    "BATCH_SIZE",
    "Change",
    "Figure",
    "Result",
    "Role",
    "Settings",
    "Verdict",
    "bench",
    "circumstances",
    "compared",
    "headline",
    "machine",
    "notes",
    "plain",
    "plot",
    "read",
    "sizes",
    "table",
    "write",
]
