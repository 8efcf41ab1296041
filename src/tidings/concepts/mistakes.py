"""A user's mistakes, gathered and reported in one error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.errors import OntologyError

if TYPE_CHECKING:
    from collections.abc import Sequence

SHOWN = 20
"""A wrong file can hold thousands of mistakes; this many are enough to see what is wrong with it."""


def refuse(mistakes: Sequence[str]) -> None:
    """Raise one error that lists the mistakes, if there are any; all of them are in `.mistakes`."""
    if not mistakes:
        return
    shown = list(mistakes[:SHOWN])
    if len(mistakes) > SHOWN:
        shown.append(f"and {len(mistakes) - SHOWN:,} more")
    raise OntologyError("\n".join(shown), mistakes=tuple(mistakes))


def split_mistakes(error: OntologyError) -> tuple[str, ...]:
    """Return the mistakes an error carries; one that carries none is a single mistake."""
    mistakes: tuple[str, ...] = getattr(error, "mistakes", (str(error),))
    return mistakes
