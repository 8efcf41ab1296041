"""`make demo`: a pipeline with a small world around it."""
