"""`ts.detect`: patterns over a DataFrame, in buckets of keys."""
