"""A published name of `tidings.bench.workloads.composites`, the composite workloads."""

from tidings.bench.workloads.composites import *  # noqa: F403
