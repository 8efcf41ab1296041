"""Notations of filters: text, JSON and URL query, parsed, checked and rendered."""
