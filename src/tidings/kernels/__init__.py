"""Numba kernels: arrays in, arrays out, no objects; every one has a naive twin in the tests.

Kernels release the interpreter's lock and start no threads. They import nothing of ours but each other, and nothing
outside this package imports Numba. A folder serves one package (`match` the engine; `patterns`, `forecast`, `papers`);
beside them lies what several share, and `baselines`, the loops that `bench.harness` measures everything against.
"""
