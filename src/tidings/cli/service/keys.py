"""`tidings service key` and `tidings service erase`: keys and owners, in the store itself or over the API.

The store itself is for whoever may open it anyway, and for the first key of all; `--url` is for administrators
elsewhere. A new key is printed once, alone on standard output.
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from tidings.cli import render
from tidings.errors import TidingsError
from tidings.matcher.plan import Sheet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tidings.cli.service.client import ServiceClient
    from tidings.cli.service.options import AdminOptions
    from tidings.service.store.base import KeyRecord, Store

ACTOR = "command line"
"""Who changes the store itself, for the audit log."""


class KeyAdministration(Protocol):
    """What can be done about keys and owners, wherever they are."""

    def add(self, owner: str, scopes: Sequence[str], *, expires_at: datetime | None, note: str) -> Mapping[str, Any]:
        """Make a key; the answer has it under `key`."""

    def list(self, owner: str | None) -> Sequence[Mapping[str, Any]]:
        """Return the keys of an owner, or all."""

    def revoke(self, id: str) -> None:
        """Revoke a key."""

    def erase(self, owner: str) -> Mapping[str, int]:
        """Remove all that is an owner's; return counts."""


def add_key(
    owner: str, scopes: Sequence[str], options: AdminOptions, *, expires_at: datetime | None, note: str
) -> None:
    """Make a key and print it."""
    with open_administration(options) as administration:
        answer = administration.add(owner, scopes, expires_at=expires_at, note=note)
    if options.as_json:
        render.write_json(answer)
        return
    render.write(answer["key"])
    until = f" until {answer['expires_at']}" if answer.get("expires_at") else ""
    words = f"key `{answer['id']}` of `{owner}` for {', '.join(answer['scopes'])}{until}"
    render.note(f"{words}; it is shown this once")


def list_keys(owner: str | None, options: AdminOptions) -> None:
    """Print the keys, without their secrets."""
    with open_administration(options) as administration:
        keys = administration.list(owner)
    if options.as_json:
        for key in keys:
            render.write_json(key)
        return
    rows = [
        (
            key["id"],
            key["owner"],
            " ".join(key["scopes"]),
            describe_state(key),
            str(key["created_at"]),
            key["note"] or "",
        )
        for key in keys
    ]
    head = ("id", "owner", "scopes", "state", "created", "note") if rows else ()
    render.print_sheet(Sheet(f"{len(rows):,} key{'s' if len(rows) != 1 else ''}", head, tuple(rows)))


def revoke_key(id: str, options: AdminOptions) -> None:
    """Revoke a key."""
    with open_administration(options) as administration:
        administration.revoke(id)
    if options.as_json:
        render.write_json({"id": id, "revoked": True})
    else:
        render.note(f"key `{id}` is revoked")


def erase_owner(owner: str, options: AdminOptions) -> None:
    """Remove all that is an owner's."""
    with open_administration(options) as administration:
        counts = administration.erase(owner)
    if options.as_json:
        render.write_json({"owner": owner, "erased": dict(counts)})
        return
    listing = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items() if count)
    render.note(f"`{owner}` is erased: {listing or 'nothing was there'}")


def describe_state(key: Mapping[str, Any]) -> str:
    """Return in a word or two whether a key may be used."""
    if key.get("revoked_at"):
        return "revoked"
    if not key.get("expires_at"):
        return "valid"
    expiry = datetime.fromisoformat(str(key["expires_at"]))
    return f"until {key['expires_at']}" if expiry > datetime.now(UTC) else "expired"


@contextmanager
def open_administration(options: AdminOptions) -> Iterator[KeyAdministration]:
    """Open the store that the options name or that lies here, or with a URL the API."""
    if options.url is not None:
        from tidings.cli.service.client import open_client
        from tidings.cli.service.options import ClientOptions

        with open_client(ClientOptions(url=options.url, key_file=options.key_file)) as client:
            yield RemoteKeys(client)
        return
    from tidings.cli.service.serve import require_extras
    from tidings.service.reading import read_service
    from tidings.service.store.opening import open_store

    require_extras("service")
    settings = read_service(options.file, data=options.data, store=options.store or None)
    if not settings.store and not settings.data.is_dir():
        advice = "name its folder with --data, its store with --store, or its --url"
        msg = f"there is no service in `{settings.data}`; {advice}"
        raise TidingsError(msg)
    store = open_store(settings.store_url)
    try:
        yield LocalKeys(store)
    finally:
        store.close()


class LocalKeys:
    """Keys in a store that is open here."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, owner: str, scopes: Sequence[str], *, expires_at: datetime | None, note: str) -> Mapping[str, Any]:
        """Make a key."""
        from tidings.service.keys import make_key

        text, record = make_key(owner, scopes, at=datetime.now(UTC), expires_at=expires_at, note=note)
        self._store.keys.add(record, actor=ACTOR)
        return {"key": text, **to_dict(record)}

    def list(self, owner: str | None) -> Sequence[Mapping[str, Any]]:
        """Return keys."""
        return [to_dict(record) for record in self._store.keys.list(owner)]

    def revoke(self, id: str) -> None:
        """Revoke a key."""
        if not self._store.keys.revoke(id, actor=ACTOR, at=datetime.now(UTC)):
            msg = f"there is no key `{id}` that is not revoked; `tidings service key list` lists them"
            raise TidingsError(msg)

    def erase(self, owner: str) -> Mapping[str, int]:
        """Remove all that is an owner's."""
        return self._store.owners.erase(owner, actor=ACTOR, at=datetime.now(UTC))


def to_dict(record: KeyRecord) -> dict[str, Any]:
    """Return a key for JSON, without the digest of its secret."""
    times = {name: getattr(record, name) for name in ("created_at", "expires_at", "revoked_at")}
    shown = {name: None if moment is None else moment.isoformat() for name, moment in times.items()}
    return {"id": record.id, "owner": record.owner, "scopes": sorted(record.scopes), **shown, "note": record.note}


class RemoteKeys:
    """Keys of a service elsewhere."""

    def __init__(self, client: ServiceClient) -> None:
        self._client = client

    def add(self, owner: str, scopes: Sequence[str], *, expires_at: datetime | None, note: str) -> Mapping[str, Any]:
        """Make a key."""
        body = {"owner": owner, "scopes": list(scopes), "note": note}
        body |= {} if expires_at is None else {"expires_at": expires_at.isoformat()}
        answer: Mapping[str, Any] = self._client.ask("POST", "/v1/keys", json=body)
        return answer

    def list(self, owner: str | None) -> Sequence[Mapping[str, Any]]:
        """Return keys."""
        answer = self._client.ask("GET", "/v1/keys", params={"owner": owner or "*"})
        keys: Sequence[Mapping[str, Any]] = answer["keys"]
        return keys

    def revoke(self, id: str) -> None:
        """Revoke a key."""
        self._client.ask("DELETE", f"/v1/keys/{quote(id, safe='')}")

    def erase(self, owner: str) -> Mapping[str, int]:
        """Remove all that is an owner's."""
        answer = self._client.ask("DELETE", f"/v1/owners/{quote(owner, safe='')}")
        counts: Mapping[str, int] = answer["erased"]
        return counts
