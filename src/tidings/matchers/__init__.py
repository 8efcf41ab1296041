"""Matching algorithms behind one protocol, one file each; `registry` names them.

The package answers a call, too: `td.matchers()` lists the names, and Python gives a subpackage and a
function of one name only one place to be (docs/decisions).
"""

import sys
from types import ModuleType

from tidings.matchers.base import Algorithm, SubId
from tidings.matchers.registry import ALGORITHMS, ENGINE, algorithm

__all__ = ["ALGORITHMS", "ENGINE", "Algorithm", "SubId", "algorithm"]


class _Listing(ModuleType):
    """A module that can be called for the names of the algorithms."""

    def __call__(self) -> list[str]:
        """List the names that `td.Matcher(kind=...)` takes."""
        return [ENGINE, *ALGORITHMS]


sys.modules[__name__].__class__ = _Listing
