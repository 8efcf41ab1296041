"""Studies of papers: what a `run.py` of `benchmarks/papers` is made of, how its claims are judged, and how it is run.

`tidings bench run papers/KEY` finds the checkout it is called in, and imports this package from there.
"""

from benchmarks.studies.charts import Chart, Line
from benchmarks.studies.study import Scale, Study

__all__ = ["Chart", "Line", "Scale", "Study"]
