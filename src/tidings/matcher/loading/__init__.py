"""Subscriptions and events from lists, files and Arrow tables."""
