"""Kernels of the matchers in `tidings.papers`."""
