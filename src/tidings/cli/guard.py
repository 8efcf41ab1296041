"""How a command ends: done, refused in one message, or quietly when the reader or the user stops it.

Only `TidingsError` is caught: any other exception is a bug of ours and shows its traceback.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from tidings.cli import render
from tidings.errors import FilterWarning, TidingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

REFUSED = 1
INTERRUPTED = 130


@contextmanager
def show_warnings() -> Iterator[None]:
    """Print each warning about a filter on standard error, once; Python handles all others."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", FilterWarning)
        show_others, seen = warnings.showwarning, set()

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if not isinstance(message, FilterWarning):
                show_others(message, category, *place, **more)
            elif str(message) not in seen:
                seen.add(str(message))
                render.warn(str(message))

        warnings.showwarning = show
        yield


@contextmanager
def guard() -> Iterator[None]:
    """Run a command's work inside the block; refusals and interruptions become exit codes."""
    try:
        try:
            with show_warnings():
                yield
        except TidingsError as problem:
            render.print_labelled("error", str(problem), file=sys.stderr)
            raise typer.Exit(REFUSED) from problem
    except BrokenPipeError:  # `| head` has read enough; that is no failure
        render.silence_output()
        raise typer.Exit from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


class GuardedGroup(TyperGroup):
    """The group that all commands are in: each runs inside `guard`."""

    def invoke(self, ctx: Any) -> Any:  # its type is of a library that typer hides
        """Run the command that the arguments name."""
        with guard():
            return super().invoke(ctx)
