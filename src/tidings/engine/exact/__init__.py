"""What no interval of codes decides: areas, Boolean trees, text patterns, and tests that `algebra.holds` decides."""
