"""What filters mean: the law `evaluate`, and what follows from it (normal forms, covering, overlap)."""

from tidings.algebra.covering.covers import covers, overlaps
from tidings.algebra.law.bind import Binder, bind, fold_names
from tidings.algebra.law.evaluate import Setting, evaluate, holds
from tidings.algebra.law.event_reading import Reader, Reading
from tidings.algebra.law.requirements import Need, Needs, Requirements, needs_of
from tidings.algebra.normal_form import normal_form
from tidings.algebra.schema_inference import infer_schema
from tidings.algebra.simplify import simplify

__all__ = [
    "Binder",
    "Need",
    "Needs",
    "Reader",
    "Reading",
    "Requirements",
    "Setting",
    "bind",
    "covers",
    "evaluate",
    "fold_names",
    "holds",
    "infer_schema",
    "needs_of",
    "normal_form",
    "overlaps",
    "simplify",
]
