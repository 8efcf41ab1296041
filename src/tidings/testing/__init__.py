"""For tests of users and of this project: strategies, contract checks and workloads.

`strategies` and `checks` need hypothesis (`pip install hypothesis`); `workloads` needs nothing, so the
demo runs where no test tool is installed. Modules load on first use.

>>> from tidings.testing import workloads
>>> len(workloads.car_ads(3, seed=1))
3
"""

from importlib import import_module
from types import ModuleType

__all__ = ["checks", "strategies", "workloads"]


def __getattr__(name: str) -> ModuleType:
    """Load one of the modules on first use."""
    if name not in __all__:
        msg = f"module 'tidings.testing' has no attribute {name!r}"
        raise AttributeError(msg)
    return import_module(f"tidings.testing.{name}")


def __dir__() -> list[str]:
    """List the modules, loaded or not."""
    return sorted([*globals(), *__all__])
