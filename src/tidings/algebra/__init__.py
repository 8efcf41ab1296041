"""What filters mean: the law `evaluate`, and what follows from it (normal forms, covering, overlap)."""

from tidings.algebra.covering.covers import covers, overlaps
from tidings.algebra.law.bind import Binder, bind, fold_names
from tidings.algebra.law.evaluate import Setting, evaluate, holds
from tidings.algebra.law.event_reading import AttributeReader, Reading
from tidings.algebra.law.read_specs import ReadSpec, Requirements
from tidings.algebra.law.requirements import RequirementTracker, collect_requirements
from tidings.algebra.normal_form import normal_form
from tidings.algebra.schema_inference import infer_schema
from tidings.algebra.simplify import simplify

__all__ = [
    "AttributeReader",
    "Binder",
    "ReadSpec",
    "Reading",
    "RequirementTracker",
    "Requirements",
    "Setting",
    "bind",
    "collect_requirements",
    "covers",
    "evaluate",
    "fold_names",
    "holds",
    "infer_schema",
    "normal_form",
    "overlaps",
    "simplify",
]
