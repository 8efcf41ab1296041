"""Sinks of micro-batches: files, Kafka, the console, a function."""
