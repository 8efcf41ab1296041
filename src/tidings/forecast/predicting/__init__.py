"""From counts to probabilities: estimators, tables by cell, and following each key through its courses."""
