"""Matching algorithms behind one protocol, one file each; `registry` names them."""

from tidings.matchers.base import Algorithm, SubId
from tidings.matchers.registry import ALGORITHMS, algorithm

__all__ = ["ALGORITHMS", "Algorithm", "SubId", "algorithm"]
