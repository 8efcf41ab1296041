"""Who asks: the key of a request, what it may do, and whose things it means.

Keys are looked up by their digest, and what was found is used for `TRUSTED_SECONDS`: so a key that is revoked, here, in
another process or on another machine, is refused within one second, and at once by the process that revoked it. Whether
a key has expired is asked of the clock at each request. Keys that do not exist are not remembered, so a new one works
at once. Rules of owners are looked up and kept likewise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.errors import TidingsError
from tidings.service.api.problems import Problem
from tidings.service.keys import digest_key, is_valid
from tidings.service.store.base import OwnerRules
from tidings.service.subscription import check_owner

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from tidings.service.api.operations import Operation
    from tidings.service.api.store_access import StoreAccess
    from tidings.service.store.base import KeyRecord

TRUSTED_SECONDS = 1.0
"""How long a key, and the rules of an owner, count as what they were when they were looked up."""

MAX_CACHED = 10_000
"""Keys and owners that are remembered at most."""

MAX_KEY = 200
"""Characters of a key at most; ours are shorter."""

EVERY_OWNER = "*"
"""What `?owner=` says for all owners, where an operation allows it; an owner's name has no star."""

CHALLENGE = 'Bearer realm="tidings"'


class KeyRing:
    """The keys that came lately, and the rules of their owners."""

    def __init__(self, access: StoreAccess, *, clock: Callable[[], float], now: Callable[[], datetime]) -> None:
        """`clock` tells seconds, `now` the time."""
        self._access, self._clock, self._now = access, clock, now
        self._keys: dict[str, tuple[KeyRecord, float]] = {}
        self._rules: dict[str, tuple[OwnerRules, float]] = {}

    async def authenticate(self, header: str | None) -> KeyRecord:
        """Return the key of an `Authorization` header; 401 where there is none that is valid."""
        if header is None:
            msg = "no key came"
            raise _make_refusal(msg)
        scheme, _, text = header.partition(" ")
        text = text.strip()
        if scheme.lower() != "bearer" or not 1 <= len(text) <= MAX_KEY or not text.isascii():
            msg = "this is no key"
            raise _make_refusal(msg)
        digest = digest_key(text)
        entry = self._keys.get(digest)
        if entry is None or self._clock() - entry[1] >= TRUSTED_SECONDS:
            entry = await self._look_up(digest)
        if entry is None or not is_valid(entry[0], self._now()):
            msg = "the key is unknown, expired or revoked"
            raise _make_refusal(msg)
        return entry[0]

    async def _look_up(self, digest: str) -> tuple[KeyRecord, float] | None:
        begin = self._clock()
        key = await self._access.ask(self._access.store.keys.find, digest)
        if key is None:
            self._keys.pop(digest, None)
            return None
        if len(self._keys) >= MAX_CACHED:
            self._keys.clear()
        self._keys[digest] = entry = key, begin
        return entry

    async def get_rules(self, owner: str) -> OwnerRules:
        """Return what bounds an owner."""
        entry = self._rules.get(owner)
        if entry is None or self._clock() - entry[1] >= TRUSTED_SECONDS:
            begin = self._clock()
            rules = await self._access.ask(self._access.store.owners.get, owner) or OwnerRules(owner=owner)
            if len(self._rules) >= MAX_CACHED:
                self._rules.clear()
            self._rules[owner] = entry = rules, begin
        return entry[0]

    def forget(self) -> None:
        """Look everything up anew: a key was revoked here, or an owner erased."""
        self._keys.clear()
        self._rules.clear()


def check_scopes_of(key: KeyRecord, operation: Operation) -> None:
    """Refuse with 403 what a key is not for."""
    if "admin" in key.scopes or not key.scopes.isdisjoint(operation.scopes):
        return
    needed = " or ".join(f"`{scope}`" for scope in operation.scopes)
    msg = f"this needs a key for {needed}; key `{key.id}` is not for that"
    raise Problem(msg, status=403)


def choose_owner(key: KeyRecord, operation: Operation, asked: str | None) -> str | None:
    """Return whose things are meant: the key's owner, or the one that an administrator asks for; None: everybody's."""
    if asked is None or asked == key.owner:
        return key.owner
    if "admin" not in key.scopes:
        msg = "only an administrator's key may ask for another owner"
        raise Problem(msg, status=403)
    if asked == EVERY_OWNER:
        if operation.every_owner:
            return None
        msg = f"`owner={EVERY_OWNER}` is for lists; name one owner here"
        raise Problem(msg, status=400)
    try:
        return check_owner(asked)
    except TidingsError as problem:
        raise Problem(str(problem), status=400) from None


def _make_refusal(reason: str) -> Problem:
    msg = f"{reason}; send `Authorization: Bearer KEY`, with one that an administrator made"
    return Problem(msg, status=401, headers={"WWW-Authenticate": CHALLENGE})
