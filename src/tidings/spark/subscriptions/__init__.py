"""Subscriptions on their way to the workers: any form in, a snapshot that workers open out."""
