"""Notation: one filter tree, three ways to write it (text, JSON, URL query)."""

from tidings.lang.notations import parse, render

__all__ = ["parse", "render"]
