"""From counts to probabilities: estimators, tables by cell, and following where each key stands."""
