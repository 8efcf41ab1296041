"""How a command ends: done, refused in one message, or quietly when the reader or the user has had enough.

Only `TidingsError` is caught: anything else is a mistake of ours and deserves its traceback.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from tidings.cli import render
from tidings.errors import FilterWarning, TidingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

REFUSED = 1
INTERRUPTED = 130


@contextmanager
def shown_warnings() -> Iterator[None]:
    """Show each warning about a filter on standard error, once; others go Python's way."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", FilterWarning)
        pythons, seen = warnings.showwarning, set()

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if not isinstance(message, FilterWarning):
                pythons(message, category, *place, **more)
            elif str(message) not in seen:
                seen.add(str(message))
                render.warning(str(message))

        warnings.showwarning = show
        yield


@contextmanager
def guarded() -> Iterator[None]:
    """Run a command's work inside; turn what may happen to it into an exit code."""
    try:
        try:
            with shown_warnings():
                yield
        except TidingsError as problem:
            render.error(str(problem))
            raise typer.Exit(REFUSED) from problem
    except BrokenPipeError:  # `| head` has seen enough; that is no failure
        render.hush()
        raise typer.Exit from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
