"""`pipeline.toml`: its keys, how they are read and checked, and the settings that come out."""
