"""A user's mistakes, gathered and reported in one error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.errors import BadRegion, OntologyError, TidingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

SHOWN = 20
"""Mistakes in a message at most: a wrong file can have thousands, and a few show what is wrong with it."""


def refuse(mistakes: Sequence[str], error: type[OntologyError | BadRegion] = OntologyError) -> None:
    """Raise one error that lists the mistakes, if there are any; all of them are in `.mistakes`."""
    more = [f"and {len(mistakes) - SHOWN:,} more"] if len(mistakes) > SHOWN else []
    if mistakes:
        raise error("\n".join([*mistakes[:SHOWN], *more]), mistakes=tuple(mistakes))


def split_mistakes(error: TidingsError) -> tuple[str, ...]:
    """Return the mistakes an error carries; one that carries none is a single mistake."""
    mistakes: tuple[str, ...] = getattr(error, "mistakes", (str(error),))
    return mistakes
