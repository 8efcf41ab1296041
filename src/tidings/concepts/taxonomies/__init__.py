"""Concept trees: building, numbering, spelling and the file formats they are read from."""
