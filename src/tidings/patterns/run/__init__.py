"""Running compiled patterns over events: reading events into arrays, partial matches, reports."""
