"""Patterns that change while a stream runs: versions in a folder, and what workers make of them."""
