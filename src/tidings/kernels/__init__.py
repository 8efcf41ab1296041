"""Numba kernels: arrays in, arrays out, no objects; every one has a naive twin in the tests.

Kernels release the interpreter's lock and start no threads. They import nothing of ours but each other,
and nothing outside this package imports Numba.
"""
