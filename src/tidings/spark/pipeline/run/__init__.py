"""A running pipeline: queries, micro-batches, checkpoint, stopping, and what can go wrong."""
