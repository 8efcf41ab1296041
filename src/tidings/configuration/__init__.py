"""Settings in TOML files (`pipeline.toml`, `service.toml`): kinds of values, variables, and all mistakes with lines."""
