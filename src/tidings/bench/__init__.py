"""What stands behind `tidings bench`: the harness, and the workloads it measures."""
