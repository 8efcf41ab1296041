"""What filters mean: the law `evaluate`, and what follows from it (normal forms, covering, overlap)."""

from tidings.algebra.bind import bind, fold_names
from tidings.algebra.evaluate import Setting, evaluate, holds
from tidings.algebra.needs import Need, Needs, needs_of
from tidings.algebra.reading import Reader, Reading

__all__ = ["Need", "Needs", "Reader", "Reading", "Setting", "bind", "evaluate", "fold_names", "holds", "needs_of"]
