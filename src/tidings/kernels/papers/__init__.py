"""Kernels of the matchers in `tidings.papers`, and of the baselines they are measured against."""
