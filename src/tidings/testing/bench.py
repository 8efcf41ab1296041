"""The harness of `tidings.bench.harness`, under the name that tests and programs import."""

from tidings.bench.harness import *  # noqa: F403
