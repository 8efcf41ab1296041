"""Reads files as text or as tables: UTF-8, plain or gzipped, TOML or JSON; whatever fails is a `FileError`."""

from __future__ import annotations

import gzip
import json
import tomllib
import zlib
from pathlib import Path
from typing import Any

from tidings.errors import FileError


def read_text(path: Path) -> str:
    """Return the file's text, unpacked where the name ends in `.gz`; a byte order mark is dropped."""
    try:
        packed = path.read_bytes()
        unpacked = gzip.decompress(packed) if path.suffix == ".gz" else packed
        return unpacked.decode("utf-8-sig")  # spreadsheets write a byte order mark, which would become part of a name
    except (OSError, EOFError, zlib.error) as problem:
        msg = f"cannot read `{path}`: {getattr(problem, 'strerror', None) or problem}"
        raise FileError(msg) from problem
    except UnicodeDecodeError as problem:
        msg = f"cannot read `{path}`: it is not UTF-8 text (byte {problem.start})"
        raise FileError(msg) from problem


def read_table(path: Path) -> dict[str, Any]:
    """Return the table of a TOML or JSON file."""
    text = read_text(path)
    try:
        table = json.loads(text) if get_suffix(path) in (".json", ".geojson") else tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        msg = f"cannot read `{path}`: {problem}"
        raise FileError(msg) from problem
    if not isinstance(table, dict):
        msg = f"cannot read `{path}`: it holds a {type(table).__name__}, not a table"
        raise FileError(msg)
    return table


def get_suffix(path: Path) -> str:
    """Return the suffix in lower case; that of `x.csv.gz` is `.csv`."""
    return Path(path.stem if path.suffix == ".gz" else path.name).suffix.lower()


def get_stem(path: Path) -> str:
    """Return the name up to its first dot.

    >>> get_stem(Path("data/shop.txt.gz"))
    'shop'
    """
    return path.name.split(".", 1)[0]
