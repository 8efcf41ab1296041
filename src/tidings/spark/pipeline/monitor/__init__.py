"""Monitors of a running pipeline: live view, text, JSON lines, metrics."""
