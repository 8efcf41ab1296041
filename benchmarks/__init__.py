"""Measurements: each module is run by itself, warms up, repeats, and prints median and spread."""
