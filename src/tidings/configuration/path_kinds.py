"""The kinds of values that name files and folders.

A relative path starts from the folder of the file. Some kinds require that the path exists when the file is read,
and some stand for the content of their file: a schema, an ontology, regions.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tidings.concepts import Ontology, Regions
from tidings.configuration.environment import derive_text, hide_password, mask
from tidings.configuration.local_paths import to_local_path
from tidings.configuration.value_kinds import ValueKind, WrongValue, flatten, make_text_kind
from tidings.errors import TidingsError
from tidings.model import Schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.configuration.value_kinds import FileContext

Loaded = TypeVar("Loaded")


def resolve_path(text: str, context: FileContext) -> str:
    """Return a path as an absolute one, relative to the file's folder; a URI is left as it is."""
    if ":" in text and (to_local_path(text) is None or text.startswith("file:")):
        return text
    return derive_text(text, os.path.abspath(context.folder / text))


def require_path(text: str, context: FileContext, *, folder: bool, remote: bool = False) -> str:
    """Resolve a path, which must be there; with `remote`, one that only Spark can reach is taken unseen."""
    path = resolve_path(text, context)
    local, noun = to_local_path(path), "folder" if folder else "file"
    if local is None:
        if remote:
            return path
        msg = f"must be a {noun} of this machine, not `{mask(path)}`"
        raise WrongValue(msg)
    if not (local.is_dir() if folder else local.is_file()):
        hint = f"; it is a {'file' if folder else 'folder'}" if local.exists() else ""
        msg = f"names `{mask(path)}`: there is no such {noun}{hint}"
        raise WrongValue(msg)
    return path


def _convert_jars(text: str, context: FileContext) -> str:
    path = require_path(text, context, folder=True)
    if not any(Path(path).glob("*.jar")):
        msg = f"names `{mask(path)}`, which holds no jars"
        raise WrongValue(msg)
    return path


def load_or_reject(load: Callable[[], Loaded], context: FileContext) -> Loaded:
    """Return the result of loading a file; an error of ours becomes a `WrongValue` in its own words."""
    try:
        return load()
    except TidingsError as problem:
        lines = context.variables.hide(str(problem)).replace("\n", "\n  ")
        msg = f"does not load:\n  {lines}"
        raise WrongValue(msg) from None


def _make_loaded_kind(load: Callable[[str], Any], words: str = "a path") -> ValueKind:
    """Return the kind of paths that stand for what their file holds."""

    def convert(text: str, context: FileContext) -> Any:
        path = require_path(text, context, folder=False)
        return load_or_reject(lambda: load(path), context)

    return make_text_kind(words, convert)


def _convert_schema(value: object, context: FileContext) -> Schema:
    if not isinstance(value, dict):
        schema: Schema = _SCHEMA_FILE.convert(value, context)
        return schema
    attributes = value.get("attributes", value)
    flat = dict(flatten(attributes)) if isinstance(attributes, dict) else attributes
    return load_or_reject(lambda: Schema(flat), context)


def _resolve_store(text: str, context: FileContext) -> str:
    """Return the URL of a store; the file of an SQLite database is relative to the folder of the settings file."""
    scheme, parts, rest = text.partition("://")
    is_file = scheme.startswith("sqlite") and rest.startswith("/") and rest.strip("/") not in ("", ":memory:")
    if not parts or not (is_file or scheme.partition("+")[0] == "postgresql"):  # processes cannot share a memory
        msg = f"must be {STORE_URL.words}"  # it is not quoted: it may hold a password
        raise WrongValue(msg)
    if is_file:
        return derive_text(text, f"{scheme}:///{os.path.abspath(context.folder / rest[1:])}")
    return hide_password(text)


PATH = make_text_kind("a path", resolve_path)
STORE_URL = make_text_kind('a URL such as "sqlite:///store.db" or "postgresql+psycopg://..."', _resolve_store)
FEED_FILE = make_text_kind(PATH.words, partial(require_path, folder=False, remote=True))
FEED_FOLDER = make_text_kind(PATH.words, partial(require_path, folder=True, remote=True))
LOCAL_FILE = make_text_kind(PATH.words, partial(require_path, folder=False))
JARS = make_text_kind(PATH.words, _convert_jars)
OUTPUT_FILE = make_text_kind(PATH.words, lambda text, context: text if text == "-" else resolve_path(text, context))
ONTOLOGY = _make_loaded_kind(Ontology.load)
REGIONS = _make_loaded_kind(Regions.load)
_SCHEMA_FILE = _make_loaded_kind(Schema.load, "a path, or a table of attributes")
SCHEMA = ValueKind(_SCHEMA_FILE.words, _convert_schema, {"type": ["string", "object"]})
