"""The folder of a service: made for its user alone, held by one supervisor at a time, with the first admin key in it.

The admin key is one line of `admin.key`, which nobody but its user can read. A store that does not know the key that
lies there (a new database, an older backup) is taught it; a key that was revoked stays so.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from tidings.errors import TidingsError
from tidings.service.keys import SCOPES, digest_key, is_valid, make_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from tidings.service.settings import ServiceSettings
    from tidings.service.store.base import Store

KEY_FILE, LOCK_FILE = "admin.key", "serve.lock"
"""The files of the admin key, and of the lock of whoever serves the folder."""

ADMIN = "admin"
"""The owner of the first key."""


class DataFolderError(TidingsError):
    """The folder of the service cannot be used."""


def prepare_folder(settings: ServiceSettings) -> bool:
    """Make the folder and those in it that all processes need; return whether it is new."""
    is_new = not settings.data.exists()
    _make_folder(settings.data, "choose another with --data", mode=0o700, parents=True)
    for folder in (settings.events_folder, settings.logs_folder):
        _make_folder(folder, "let the user of the service write there (chown, chmod u+rwx)")
    return is_new


def _make_folder(folder: Path, way_out: str, *, mode: int = 0o777, parents: bool = False) -> None:
    """Make a folder where there is none; `DataFolderError` if files cannot be put there."""
    try:
        folder.mkdir(mode=mode, parents=parents, exist_ok=True)
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(0, "it is not to be written to")
    except OSError as problem:
        reason = "it is a file" if isinstance(problem, FileExistsError) else problem.strerror
        msg = f"cannot use the folder `{folder}`: {reason}; {way_out}"
        raise DataFolderError(msg) from problem


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold the folder inside the block; `DataFolderError` while another process does."""
    try:
        file = (folder / LOCK_FILE).open("a+", encoding="ascii")
    except OSError as problem:
        msg = f"cannot use the folder `{folder}`: {problem.strerror}; choose another with --data"
        raise DataFolderError(msg) from problem
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            owner = file.read().strip() or "?"
            msg = f"process {owner} serves `{folder}` already; stop it, or choose another folder with --data"
            raise DataFolderError(msg) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


# The admin key ----------------------------------------------------------------------------------------


def ensure_admin_key(store: Store, folder: Path, *, now: datetime) -> bool:
    """See that the store knows the key in the folder's file; make both for a store without an admin's key.

    Return whether a key was made.
    """
    path = folder / KEY_FILE
    if (text := read_key(path)) is not None:
        if store.keys.find(digest_key(text)) is None:
            _, record = make_key(ADMIN, SCOPES, at=now, note=f"the one in {KEY_FILE}")
            store.keys.add(replace(record, digest=digest_key(text)), actor=ADMIN)
        return False
    if has_admin_key(store, now=now):
        return False
    text, record = make_key(ADMIN, SCOPES, at=now, note=f"the one in {KEY_FILE}")
    _write_secret(path, text)
    store.keys.add(record, actor=ADMIN)
    return True


def has_admin_key(store: Store, *, now: datetime) -> bool:
    """Tell whether anybody can administer the service: a store knows a key for it that is valid."""
    return any("admin" in key.scopes and is_valid(key, now) for key in store.keys.list())


def read_key(path: Path) -> str | None:
    """Return the key in a file, or nothing where there is no such file."""
    try:
        return path.read_text(encoding="ascii").strip() or None
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as problem:
        msg = f"cannot read the key in `{path}`: {getattr(problem, 'strerror', None) or 'it is no text'}"
        raise DataFolderError(msg) from None


def is_private(path: Path) -> bool:
    """Tell whether nobody but the user can read a file; one that is not there can be read by nobody."""
    return not path.exists() or not path.stat().st_mode & 0o077


def _write_secret(path: Path, text: str) -> None:
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(f"{text}\n")
    except OSError as problem:
        msg = f"cannot write the admin key to `{path}`: {problem.strerror}"
        raise DataFolderError(msg) from problem
