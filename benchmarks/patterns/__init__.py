"""What patterns over time cost: `python -m benchmarks.patterns.run`."""
