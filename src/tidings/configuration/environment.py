"""`${NAME}` in a settings file: replaced by the environment's variable NAME, whose value is never shown.

A text in which a variable was replaced is an `ExpandedText`: a str with the real value, whose repr is the text of the
file. So settings can be printed whole. Messages contain `mask(text)` only, and what others write about a value
(Spark, the loader of a file) passes through `Variables.hide` first.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tidings.errors import TidingsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")
_SHORTEST_SECRET = 3  # a shorter value is no secret, and its letters stand in every word
_PASSWORD = re.compile(r"(//[^/@:\s]*:)[^/\s]*@")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ExpandedText(str):
    """A text with a variable's value in it; its repr shows the text of the file instead.

    >>> ExpandedText("broker:9092", "${BROKERS}")
    '${BROKERS}'
    """

    __slots__ = ("template",)
    template: str

    def __new__(cls, value: str, template: str) -> ExpandedText:
        """Take the value, and the text of the file that may be shown for it."""
        text = super().__new__(cls, value)
        text.template = template
        return text

    def __reduce__(self) -> tuple[type[ExpandedText], tuple[str, str]]:
        return ExpandedText, (str.__str__(self), self.template)

    def __repr__(self) -> str:
        return repr(self.template)


def mask(text: str) -> str:
    """Return what may be shown of a text: itself, or the text of the file where a variable was replaced in it."""
    return text.template if isinstance(text, ExpandedText) else text


def derive_text(text: str, value: str) -> str:
    """Return a value computed from a text, shown as the text is."""
    return ExpandedText(value, text.template) if isinstance(text, ExpandedText) else value


def hide_password(url: str) -> str:
    """Return a URL that is printed without its password.

    >>> hide_password("postgresql://me:swordfish@host/db")
    'postgresql://me:...@host/db'
    """
    shown = _PASSWORD.sub(r"\1...@", url)
    return url if isinstance(url, ExpandedText) or shown == url else ExpandedText(url, shown)


class Variables:
    """The environment, and the values that texts took from it so far."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._names: dict[str, str] = {}  # value -> name of its variable

    def expand(self, text: str) -> tuple[str, list[str]]:
        """Return the text with its variables replaced, and what is wrong with them; `$${` stands for `${`."""
        mistakes: list[str] = []
        names: list[str] = []

        def replace(reference: re.Match[str]) -> str:
            if reference[0] == "$${":
                return "${"
            if (mistake := self._find_mistake(reference[1])) is not None:
                mistakes.append(f"{mistake}; `$${{` stands for a plain `${{`")
                return ""
            names.append(reference[1])
            return self._environ[reference[1]]

        value = _REFERENCE.sub(replace, text)
        self._names.update((self._environ[name], name) for name in names)
        return (ExpandedText(value, text) if names else value), mistakes

    def hide(self, text: str) -> str:
        """Return a text that others wrote, with every value of a variable shown as `${NAME}`."""
        for value in sorted(self._names, key=len, reverse=True):
            if len(value) >= _SHORTEST_SECRET:
                text = text.replace(value, f"${{{self._names[value]}}}")
        return text

    @contextmanager
    def mask_errors(self) -> Iterator[None]:
        """Let no error of ours leave the block with a variable's value in its text."""
        try:
            yield
        except TidingsError as problem:
            masked = self.hide(str(problem))
            if masked == str(problem):
                raise
            raise type(problem)(masked) from None  # the first one would show the value, as its cause

    def _find_mistake(self, name: str | None) -> str | None:
        if name is None:
            return "a `${` has no `}`"
        if not _NAME.fullmatch(name):
            return f"`${{{name}}}` names no variable"
        return None if name in self._environ else f"the variable `{name}` is not set"
