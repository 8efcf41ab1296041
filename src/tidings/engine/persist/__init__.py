"""Segments on disk: arrays in memory-mapped files, with checksums."""
