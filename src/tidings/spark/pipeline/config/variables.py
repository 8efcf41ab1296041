"""`${NAME}` in a pipeline's file: the value comes from the environment, and is never shown.

A text that a variable went into is an `Expanded`: it is the text itself to whoever uses it, and what stands in the
file to whoever prints a repr. So a pipeline can be shown whole, and only `written` may go into a message. What
others write of it (Spark, a file's own error) passes through `Variables.hide` first.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tidings.errors import TidingsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SPOT = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")
_SHORTEST = 3  # a shorter one is no secret, and its letters stand in every word
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Expanded(str):
    """A text with a variable's value in it, which shows itself as it stands in the file.

    >>> Expanded("broker:9092", "${BROKERS}")
    '${BROKERS}'
    """

    __slots__ = ("written",)
    written: str

    def __new__(cls, value: str, written: str) -> Expanded:
        """Hold the value, and what may be shown of it."""
        made = super().__new__(cls, value)
        made.written = written
        return made

    def __reduce__(self) -> tuple[type[Expanded], tuple[str, str]]:
        """Say how to make it again, after a pickle."""
        return Expanded, (str.__str__(self), self.written)

    def __repr__(self) -> str:
        """Show what stands in the file."""
        return repr(self.written)


def written(text: str) -> str:
    """Return what may be shown of a text: itself, or what stands in the file where a variable went into it."""
    return text.written if isinstance(text, Expanded) else text


def like(text: str, value: str) -> str:
    """Return a value that was made of the text, as secret as the text is."""
    return Expanded(value, text.written) if isinstance(text, Expanded) else value


class Variables:
    """The environment, the values that were taken from it, and what was wrong with the asking."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Take values from this environment."""
        self._environ = environ
        self._taken: dict[str, str] = {}  # value -> name

    def expand(self, text: str) -> tuple[str, list[str]]:
        """Return the text with its variables replaced, and what is wrong with them; `$${` stands for `${`."""
        mistakes: list[str] = []
        taken = False

        def value(found: re.Match[str]) -> str:
            nonlocal taken
            if found[0] == "$${":
                return "${"
            wrong = self._wrong(found[1])
            if wrong is not None:
                mistakes.append(f"{wrong}; `$${{` stands for a plain `${{`")
                return ""
            taken = True
            return self._value(found[1])

        made = _SPOT.sub(value, text)
        return (Expanded(made, text) if taken else made), mistakes

    def hide(self, text: str) -> str:
        """Return a text that others wrote, with every value that was taken shown as its variable."""
        for value in sorted(self._taken, key=len, reverse=True):
            if len(value) >= _SHORTEST:
                text = text.replace(value, f"${{{self._taken[value]}}}")
        return text

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Let no error of ours out of the block with a value in its text."""
        try:
            yield
        except TidingsError as problem:
            shown = self.hide(str(problem))
            if shown == str(problem):
                raise
            raise type(problem)(shown) from None  # the first one would show the value, as its cause

    def _wrong(self, name: str | None) -> str | None:
        if name is None:
            return "a `${` has no `}`"
        if not _NAME.fullmatch(name):
            return f"`${{{name}}}` names no variable"
        return None if name in self._environ else f"the variable `{name}` is not set"

    def _value(self, name: str) -> str:
        value = self._environ[name]
        if value:
            self._taken[value] = name
        return value
