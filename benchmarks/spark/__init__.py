"""Costs of the pipeline on Spark; each module is a program: `python -m benchmarks.spark.join`. See README.md."""
