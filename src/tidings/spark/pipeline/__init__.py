"""`tidings run pipeline.toml`: a stream of events, subscriptions that change while it runs, and where matches go."""
