"""What the pipeline on Spark costs; each module is a program: `python -m benchmarks.spark.join`. See README.md."""
