"""Snapshots: a directory with a manifest and memory-mapped files."""
