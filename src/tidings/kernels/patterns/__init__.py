"""Kernels of pattern detection: partial matches advance event by event, complete, expire and are compacted."""
