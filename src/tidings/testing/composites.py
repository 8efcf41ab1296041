"""The composite workloads of `tidings.bench.workloads.composites`, under the name that tests and programs import."""

from tidings.bench.workloads.composites import *  # noqa: F403
