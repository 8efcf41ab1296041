"""HEM's experiments: Figures 5-10 of its section 5."""
