"""How a running pipeline is watched: live view, text, JSON lines, metrics."""
