"""Kernels of the engine: planning, building, and matching a batch against a segment."""
