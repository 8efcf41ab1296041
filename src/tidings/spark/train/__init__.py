"""`ts.train`: models counted in buckets of keys and summed."""
