"""A version of a live folder as a matcher: for readers one engine of all its segments, for a writer one for each shard.

`live.versions` knows files and no matchers, because `Matcher.open` uses it; here the two meet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.matcher.live.sharded_store import ShardedStore
from tidings.matcher.live.versions import load_engine, load_version, prepare_content
from tidings.matcher.matcher import Matcher

if TYPE_CHECKING:
    from pathlib import Path

    from tidings.matcher.live.versions import Version


def open_version(folder: str | Path, version: Version, shard: int | None = None, *, verify: bool = True) -> Matcher:
    """Return a matcher of one shard, or of all; files are mapped, and with `verify` compared with their checksums."""
    return Matcher(content=load_version(folder, version, shard, verify=verify))


def open_shards(folder: str | Path, version: Version, *, verify: bool = True) -> tuple[Matcher, ShardedStore]:
    """Open a version for a writer: every shard keeps an engine of its own, and the demands are those of all."""
    content = prepare_content(folder, version)
    store = ShardedStore([load_engine(folder, [shard], content.admission, verify=verify) for shard in version.shards])
    return Matcher(content=content._replace(backend=store)), store
