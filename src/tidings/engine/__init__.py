"""The engine: a million subscriptions on one core, in microseconds an event (docs/architecture.md)."""
