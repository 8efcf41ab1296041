"""The papers' experiments, repeated: one package each, run by `tidings bench run papers/KEY` in a checkout."""
