"""A published name of `tidings.bench.harness`, with the names that its functions had when it was published here."""

from tidings.bench import harness
from tidings.bench.harness import BATCH_SIZE, Figure, Result, Role, Settings, Verdict, bench  # noqa: F401
from tidings.bench.harness import FigureChange as Change  # noqa: F401

circumstances, machine = harness.describe_run, harness.describe_machine
read, write, compared = harness.read_results, harness.write_results, harness.compare_results
table, sizes, notes = harness.build_table, harness.group_by_size, harness.list_notes
headline, plain, plot = harness.format_headline, harness.format_plain, harness.plot_results
