"""Why a request was refused, in the form that every face of the service shows: the API, imports, the command line.

`RequestMistake` is one thing wrong and where: in the text of a filter or pattern, by offset; anywhere else, by path.
`SubscriptionRefused` carries all of them, so that a person corrects a subscription once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidings.errors import FilterError, FilterWarning, Mistake, PatternError, TidingsError

if TYPE_CHECKING:
    from collections.abc import Iterable

_PARTS = re.compile(r"(`[^`]*`|'[^']*')|; ")
MAX_MISTAKES = 50
"""Mistakes in one answer at most."""


@dataclass(frozen=True, slots=True)
class RequestMistake:
    """One thing wrong with a request.

    `at` is an offset in the text of a filter or pattern, or a path such as `$.delivery.url` in what was sent; `length`
    goes with an offset. `field` is the member of the body that it is about; `line` and `id` say which line of an
    import, and which subscription there; `index` says which event of a batch.
    """

    message: str
    hint: str | None = None
    at: int | str | None = None
    length: int | None = None
    field: str | None = None
    line: int | None = None
    id: str | None = None
    index: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON; only an import's mistakes have a line and an id, only those of events an index."""
        members: dict[str, Any] = {name: getattr(self, name) for name in ("message", "hint", "at", "length", "field")}
        if self.line is not None:
            members |= {"line": self.line, "id": self.id}
        return members if self.index is None else members | {"index": self.index}


class SubscriptionRefused(TidingsError, ValueError):
    """The subscription cannot be stored; `errors` has every mistake."""

    errors: tuple[RequestMistake, ...] = ()


def build_refusal(mistakes: Iterable[RequestMistake]) -> SubscriptionRefused:
    """Return the error that carries all mistakes; its message is for people at a terminal."""
    errors = tuple(mistakes)[:MAX_MISTAKES]
    lines = (f"{mistake.message}{f'; {mistake.hint}' if mistake.hint else ''}" for mistake in errors)
    return SubscriptionRefused("\n".join(lines), errors=errors)


def make_mistake(
    message: str, *, at: int | str | None = None, length: int | None = None, field: str | None = None
) -> RequestMistake:
    """Return a mistake whose message says the way out after a semicolon: that part becomes the hint.

    >>> make_mistake("unknown key `lable`; did you mean `label`?").hint
    'did you mean `label`?'
    """
    line = message.partition("\n")[0]
    for match in _PARTS.finditer(line):  # a semicolon within a quotation parts nothing
        if match[1] is None:
            return RequestMistake(line[: match.start()], line[match.end() :], at, length, field)
    return RequestMistake(line, None, at, length, field)


def convert_error(problem: TidingsError, field: str) -> list[RequestMistake]:
    """Return what is wrong with the filter or pattern in a field, mistake by mistake."""
    mistakes: tuple[Mistake, ...] = problem.mistakes if isinstance(problem, FilterError | PatternError) else ()
    if not mistakes:
        return [make_mistake(str(problem), field=field)]
    return [_convert_mistake(mistake, field) for mistake in mistakes]


def convert_warning(warning: FilterWarning, field: str) -> RequestMistake:
    """Return a warning as a mistake that refuses nothing."""
    length = None if warning.end is None or warning.start is None else warning.end - warning.start
    return make_mistake(str(warning), at=warning.start, length=length, field=field)


def _convert_mistake(mistake: Mistake, field: str) -> RequestMistake:
    if mistake.start is None:
        return make_mistake(mistake.message, at=mistake.path, field=field)
    length = None if mistake.end is None else mistake.end - mistake.start
    return make_mistake(mistake.message, at=mistake.start, length=length, field=field)
