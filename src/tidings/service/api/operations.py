"""An operation of the API: a method and a path, who may call it, what it does, and what the document says of it.

Handlers are coroutines that take a `ApiCall` and return a Starlette response, or raise (`problems.to_problem` says what
becomes of that). They are run without FastAPI's dependencies and models, which cost more than reading a subscription
does; the document is written down beside them instead, and Schemathesis holds one to the other (tests/service/api).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import orjson
from starlette.requests import Request
from starlette.responses import Response

from tidings.concepts import did_you_mean
from tidings.service.api.limits import decode_json
from tidings.service.api.problems import Problem
from tidings.service.api.state import ApiState
from tidings.service.store.base import KeyRecord, Scope

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime

    from tidings.service.store.base import OwnerRules

JSON: TypeAlias = Mapping[str, Any]
"""A piece of the OpenAPI document."""

JSON_TYPES = ("application/json", "application/merge-patch+json")
IDEMPOTENCY_KEY = "Idempotency-Key"
"""The header by which a request that is sent again is known."""

ANY_TYPE = "*/*"
"""Stands among the media types of a body whose handler decides about them."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the query or a header: its JSON schema is what values are checked by, and what is documented."""

    name: str
    schema: JSON
    description: str
    example: Any = None

    def convert(self, text: str) -> Any:
        """Return the value of a text, or refuse it with 400."""
        kind = self.schema.get("type")
        if kind == "boolean":
            if text in ("true", "false"):
                return text == "true"
            raise self._refuse(text, "`true` or `false`")
        if kind == "integer":
            low, high = self.schema.get("minimum", 0), self.schema.get("maximum", 2**53)
            if text.isascii() and text.isdecimal() and len(text) < 20 and low <= int(text) <= high:
                return int(text)
            raise self._refuse(text, f"a whole number from {low:,} to {high:,}")
        if choices := self.schema.get("enum"):
            if text in choices:
                return text
            raise self._refuse(text, f"one of {', '.join(f'`{choice}`' for choice in choices)}")
        shortest, longest = self.schema.get("minLength", 0), self.schema.get("maxLength", 10_000)
        if not shortest <= len(text) <= longest or "\0" in text:
            raise self._refuse(text, f"text of {shortest} to {longest:,} characters")
        return text

    def _refuse(self, text: str, words: str) -> Problem:
        return Problem(f"`{self.name}` in the query is {words}, not `{text:.80}`", status=400)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestBody:
    """What a request brings: media types, JSON schema, examples by name."""

    schema: JSON
    examples: Mapping[str, Any]
    types: tuple[str, ...] = JSON_TYPES[:1]
    size: Literal["body", "import_body"] = "body"
    required: bool = True
    streams: bool = False
    """Whether the handler reads it piece by piece, for as long as pieces come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentedAnswer:
    """What an operation answers with one status."""

    description: str
    schema: JSON | None = None
    example: Any = None
    type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)  # name: description
    links: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What the API does at a method and a path.

    `path` has parameters in braces, each a whole segment but for a `:verb` behind it. `scopes` are those of which a key
    needs one (`admin` has all); none: nobody needs a key. With `owners`, `?owner=` selects whose things are meant, for
    admins; `every_owner` allows `*` there. `problems` are statuses beyond those that follow from the rest. An
    operation whose `headers` do not have `IDEMPOTENCY_KEY` refuses it; `again` is what to do instead.
    """

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    handler: Callable[[ApiCall], Awaitable[Response]]
    name: str
    summary: str
    scopes: tuple[Scope, ...]
    answers: Mapping[int, DocumentedAnswer]
    description: str = ""
    tag: str = "subscriptions"
    owners: bool = True
    every_owner: bool = False
    query: tuple[Parameter, ...] = ()
    headers: tuple[Parameter, ...] = ()
    parameters: Mapping[str, JSON] = field(default_factory=dict)  # of the path: JSON schemas
    body: RequestBody | None = None
    problems: tuple[int, ...] = ()
    again: str = "the same request again changes nothing more"


@dataclass(slots=True)
class ApiCall:
    """One request to an operation: who asks, for whom, and what with."""

    state: ApiState
    request: Request
    key: KeyRecord | None
    """Whose key came; None only where the operation needs none."""
    chosen_owner: str | None
    """Whose things are meant; None for all owners' (`?owner=*`)."""
    path: Mapping[str, str]
    """The path's parameters, decoded."""
    query: Mapping[str, Any]
    """The query's parameters, converted; those that were not sent are not in it."""

    @property
    def actor(self) -> str:
        """Who asks, for the audit log: the owner and the id of the key."""
        assert self.key is not None
        return f"{self.key.owner}/{self.key.id}"

    @property
    def owner(self) -> str:
        """Whose things are meant, where it must be one owner's."""
        assert self.chosen_owner is not None
        return self.chosen_owner

    @property
    def is_admin(self) -> bool:
        """Whether the key is an administrator's."""
        return self.key is not None and "admin" in self.key.scopes

    @property
    def now(self) -> datetime:
        """The time."""
        return self.state.now()

    async def get_rules(self) -> OwnerRules:
        """Return what bounds the owner."""
        return await self.state.keys.get_rules(self.owner)

    def get_header(self, name: str) -> str | None:
        """Return a header, by its name in lower case."""
        return self.request.headers.get(name)

    async def read_json(self) -> Any:
        """Return the body; what is no JSON, and what is nested too deeply, is refused."""
        return decode_json(await self.request.body(), self.state.settings.limits.depth)

    def stream(self) -> AsyncIterator[bytes]:
        """Return the body in pieces."""
        return self.request.stream()


def answer_json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response of JSON; times are RFC 3339 with a `Z`."""
    data = orjson.dumps(value, option=orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS)
    return Response(data, status, headers, "application/json")


def check_keys(body: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Return a body that is an object of these keys at most; 422 otherwise."""
    if type(body) is not dict:
        msg = f"the body is a JSON object, not {type(body).__name__}"
        raise Problem(msg, status=422)
    for name in body:
        if name not in names:
            hint = did_you_mean(name, names) or f"; the keys are {', '.join(f'`{key}`' for key in names)}"
            msg = f"unknown key `{name:.80}`{hint}"
            raise Problem(msg, status=422)
    return body
