"""What filters mean: the law `evaluate`, and what follows from it (normal forms, covering, overlap)."""

from tidings.algebra.bind import Binder, bind, fold_names
from tidings.algebra.covers import covers, overlaps
from tidings.algebra.evaluate import Setting, evaluate, holds
from tidings.algebra.infer import infer_schema
from tidings.algebra.needs import Need, Needs, Requirements, needs_of
from tidings.algebra.normal import normal_form
from tidings.algebra.reading import Reader, Reading
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
