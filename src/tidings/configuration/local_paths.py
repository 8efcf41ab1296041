"""Which of the paths in a settings file are on this machine."""

from __future__ import annotations

import re
from pathlib import Path


def to_local_path(path: str) -> Path | None:
    """Return the local path that a path or URI names, or None for a remote one.

    A bare path is a local one, whatever file system Spark takes by default.

    >>> to_local_path("file:///data/out"), to_local_path("/data/out"), to_local_path("s3a://bucket/out")
    (PosixPath('/data/out'), PosixPath('/data/out'), None)
    """
    scheme, colon, rest = path.partition(":")
    if colon and scheme == "file":
        return Path("/" + rest.lstrip("/"))
    return None if colon and re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme) else Path(path).absolute()
