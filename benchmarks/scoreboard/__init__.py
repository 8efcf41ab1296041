"""The scoreboard: every matcher and peer on every workload, each in a process of its own; `make scoreboard`."""
