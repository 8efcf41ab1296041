"""The harness of `tidings.bench.harness` for tests and programs, under the names it had when it was published here."""

from tidings.bench.harness import BATCH_SIZE, Figure, Result, Role, Settings, Verdict, bench
from tidings.bench.harness import FigureChange as Change
from tidings.bench.harness import build_table as table
from tidings.bench.harness import compare_results as compared
from tidings.bench.harness import describe_machine as machine
from tidings.bench.harness import describe_run as circumstances
from tidings.bench.harness import format_headline as headline
from tidings.bench.harness import format_plain as plain
from tidings.bench.harness import group_by_size as sizes
from tidings.bench.harness import list_notes as notes
from tidings.bench.harness import plot_results as plot
from tidings.bench.harness import read_results as read
from tidings.bench.harness import write_results as write

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
