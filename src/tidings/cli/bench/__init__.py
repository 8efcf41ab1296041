"""`tidings bench`: workloads measured, runs compared, studies of papers repeated."""
