"""The workloads of `tidings.bench.workloads`, under the name that tests and programs import."""

from tidings.bench.workloads import *  # noqa: F403
from tidings.bench.workloads import __all__  # noqa: F401
