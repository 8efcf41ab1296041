"""The subscription service: a store, a REST API over it, and what runs them (extra `[service]`)."""
