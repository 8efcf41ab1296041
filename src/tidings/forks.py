"""Forks while other threads are at work: the child finds everything whole, and no lock that nobody holds.

A fork copies one thread only. What another thread was changing at that moment would stay half changed in the child,
and its lock would be locked for ever. So a fork first waits until those who hold one of our locks have let go of it
(microseconds for a change, as long as it takes for a load of a million), and in the child all locks are made anew.
Threads of ours do not exist in the child; who had one forgets it in `after_fork`, and starts another when needed.

Invariant: locks are taken in the order of their levels, by threads and forks alike, so that nobody waits in a circle.
"""

from __future__ import annotations

import os
import threading
from enum import IntEnum
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable

Method = TypeVar("Method", bound="Callable[..., Any]")
"""A method of somebody who holds a lock."""


class Level(IntEnum):
    """Which locks are taken first; who holds one takes only locks of later levels."""

    DETECTOR = 0
    MATCHER = 1
    ALGORITHM = 2
    COMPILER = 3


class LockHolder(Protocol):
    """Whoever guards its changes by a lock; it may also have `after_fork`, which a child calls."""

    lock: Any


_holders: WeakKeyDictionary[Any, Level] = WeakKeyDictionary()
_listeners: WeakKeyDictionary[Any, None] = WeakKeyDictionary()
_compiler: list[Any] = []
_forking = threading.RLock()
_acquired: list[Any] = []


def guard(holder: LockHolder, level: Level) -> None:
    """Let forks wait until the holder's lock, an `RLock`, is free, and give the child a new one."""
    _holders[holder] = level


def listen(holder: Any) -> None:
    """Call the holder's `after_fork` in every child; forks do not wait for it."""
    _listeners[holder] = None


def guard_compiler(lock: Any) -> None:
    """Let forks wait until nothing is being compiled; the lock is somebody else's, so it is kept."""
    _compiler.append(lock)


def with_lock(method: Method) -> Method:
    """Let a method hold its object's lock."""

    @wraps(method)
    def with_lock(self: LockHolder, *args: Any, **keywords: Any) -> Any:
        with self.lock:
            return method(self, *args, **keywords)

    return cast("Method", with_lock)


def _list_living(registry: WeakKeyDictionary[Any, Any]) -> list[Any]:
    """Return the keys that are still there; in one step, as other threads may add some."""
    return [holder for reference in registry.keyrefs() if (holder := reference()) is not None]


def _lock_before_fork() -> None:
    _forking.acquire()
    holders = sorted(_list_living(_holders), key=lambda holder: _holders[holder])
    for lock in [*(holder.lock for holder in holders), *_compiler]:
        lock.acquire()
        _acquired.append(lock)


def _release_in_parent() -> None:
    while _acquired:
        _acquired.pop().release()
    _forking.release()


def _renew_in_child() -> None:
    global _forking  # noqa: PLW0603 - the child's own
    for lock in _compiler:
        lock.release()
    _acquired.clear()
    for holder in _list_living(_holders):
        holder.lock = threading.RLock()
    for holder in [*_list_living(_holders), *_list_living(_listeners)]:
        if hasattr(holder, "after_fork"):
            holder.after_fork()
    _forking = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_lock_before_fork, after_in_parent=_release_in_parent, after_in_child=_renew_in_child)
