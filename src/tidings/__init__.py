"""Tidings: content-based publish/subscribe. Filters over what an event says; who must hear of it, exactly.

Names load on first use, so `import tidings` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tidings.version import __version__ as __version__

if TYPE_CHECKING:
    from tidings.algebra import covers, evaluate, infer_schema, overlaps
    from tidings.algebra.normal_form import normal_form
    from tidings.algebra.simplify import simplify
    from tidings.concepts import Ontology, Regions
    from tidings.errors import (
        BadEvent,
        FilterError,
        FilterWarning,
        NotExpressible,
        PatternError,
        TidingsError,
        UnknownPattern,
        UnknownSubscription,
    )
    from tidings.forecast import Detector, Forecast, Model, score, train
    from tidings.lang import parse, render
    from tidings.matcher import Live, Matcher, matchers
    from tidings.model import Event, EventBatch, Matches, Range, Schema
    from tidings.patterns import Detection, Detections

_HOMES = {
    "algebra": "covers evaluate infer_schema normal_form overlaps simplify",
    "concepts": "Ontology Regions",
    "errors": "BadEvent FilterError FilterWarning NotExpressible PatternError TidingsError UnknownPattern"
    " UnknownSubscription",
    "lang": "parse render",
    "matcher": "Live Matcher matchers",
    "model": "Event EventBatch Matches Range Schema",
    "forecast": "Detector Forecast Model score train",
    "patterns": "Detection Detections",
}
_HOME = {name: f"tidings.{home}" for home, names in _HOMES.items() for name in names.split()}
__all__ = sorted(_HOME)  # noqa: PLE0605 - one list of names, above


def __getattr__(name: str) -> Any:
    """Load a public name from its home on first use."""
    if name not in _HOME:
        msg = f"module 'tidings' has no attribute {name!r}"
        raise AttributeError(msg)
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted([*globals(), *__all__])
