"""A published name of `tidings.bench.workloads.composites`, the composite workloads."""

from tidings.bench.workloads.composites import *  # noqa: F403
from tidings.bench.workloads.composites import PublicationStream as Stream  # noqa: F401
