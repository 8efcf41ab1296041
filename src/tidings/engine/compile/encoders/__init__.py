"""Encoders: one file for each kind of predicate, which maps predicates to intervals and values to codes."""
