"""How a command ends: done, refused in one message, or quietly when the reader or the user has had enough.

Only `TidingsError` is caught: anything else is a mistake of ours and deserves its traceback.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from tidings.cli import render
from tidings.errors import TidingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

REFUSED = 1
INTERRUPTED = 130


@contextmanager
def guarded() -> Iterator[None]:
    """Run a command's work inside; turn what may happen to it into an exit code."""
    try:
        try:
            yield
        except TidingsError as problem:
            render.error(str(problem))
            raise typer.Exit(REFUSED) from problem
    except BrokenPipeError:  # `| head` has seen enough; that is no failure
        render.hush()
        raise typer.Exit from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
