"""A store in memory: the law of what stores do, plain enough to be believed; for tests, and for `memory://`."""

from tidings.service.store.memory.store import MemoryStore

__all__ = ["MemoryStore"]
