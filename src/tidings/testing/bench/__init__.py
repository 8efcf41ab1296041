"""Measurements of matchers on workloads: figures with their spread, baselines and peers in the same run, comparisons.

`bench(key, sizes)` measures and checks; `write` and `read` keep results as JSON lines, `table` and `plot` show them,
`compared` tells a change from noise. DuckDB, mokaccino and matplotlib (`pip install 'tidings[bench]'`) are loaded
when they are used.

>>> results = bench("equalities", [300], settings=Settings(events=4, repeat=1, memory=False, peers=False))
>>> [result.subject for result in results if result.role is Role.BASELINE]
['scan']
"""

from tidings.testing.bench.compare import Change, Verdict, compared
from tidings.testing.bench.measure import BATCH_SIZE, Settings
from tidings.testing.bench.plots import plot
from tidings.testing.bench.report import headline, notes, plain, sizes, table
from tidings.testing.bench.results import Result, Role, circumstances, machine, read, write
from tidings.testing.bench.run import bench
from tidings.testing.bench.timing import Figure

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
