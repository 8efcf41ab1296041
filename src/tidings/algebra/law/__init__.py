"""The law: what a filter means for an event, and everything that is read to decide it."""
