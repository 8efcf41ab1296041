"""`ts.match`, `ts.dead_letters` and their SQL form: events matched in the Python workers."""
