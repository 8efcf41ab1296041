"""Counting moves and waits of courses over a history or a live stream."""
