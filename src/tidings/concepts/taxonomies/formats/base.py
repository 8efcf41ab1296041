"""What a format's reader is given: the text, what to call it in messages, and the few options there are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Source:
    """A tree file's text, and how to read it."""

    text: str
    label: str = "tree"
    path: Path | None = None
    columns: tuple[str, ...] = ()
    language: str = "en"


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield numbered lines; empty ones and `#` comments are left out."""
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if bare and not bare.startswith("#"):
            yield number, line.rstrip()
