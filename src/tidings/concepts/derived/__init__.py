"""Derived attributes: their notation, the functions they may call, and their values for an event."""
