"""Which operation a request means, by its path as it was sent, and what is done around every operation.

Paths are compared segment by segment before percent-decoding, so an id may have any character: a slash is `%2F`, and a
colon that begins no verb is `%3A`. Around the handler stand, in this order: the key (401), its scope (403), the owner,
its rate (429), the query and headers that promise too much (400), the form of the body (413, 415), and behind it the
translation of whatever was raised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote_to_bytes

from starlette.requests import ClientDisconnect, Request
from starlette.responses import StreamingResponse
from starlette.routing import BaseRoute, Match

from tidings.concepts import did_you_mean
from tidings.service.api.auth import check_scopes_of, choose_owner
from tidings.service.api.connections import limit_sending
from tidings.service.api.limits import BODY_TIMEOUT, BodyLimits, BodyStopped, limit_body
from tidings.service.api.operations import ANY_TYPE, IDEMPOTENCY_KEY, ApiCall, Parameter
from tidings.service.api.problems import Problem, build_response, to_problem
from tidings.service.events.bodies import FORM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from tidings.service.api.operations import Operation
    from tidings.service.api.state import ApiState
    from tidings.service.store.base import KeyRecord

OWNER_PARAMETER = Parameter(
    "owner",
    {"type": "string", "minLength": 1, "maxLength": 64},
    "Whose things are meant; only for administrators, the key's own owner by default.",
    example="shop",
)

DRAIN_BYTES, DRAIN_SECONDS = 64_000_000, 5.0
"""How much of a refused body is read and thrown away, and for how long, so that its sender comes to read the answer."""

_PARTS = "tidings.parts"
_ALLOWED = "tidings.allowed"


class OperationRoute(BaseRoute):
    """An operation as a route of the app."""

    def __init__(self, operation: Operation, state: ApiState) -> None:
        self.operation, self.state = operation, state
        self.path, self.name = operation.path, operation.name
        self.methods = {operation.method} | ({"HEAD"} if operation.method == "GET" else set())
        self._segments, self._verb = _split_template(operation.path)
        self._names = [part[1:-1] if part[:1] == "{" else None for part in self._segments]
        self._takes_repetitions = any(parameter.name == IDEMPOTENCY_KEY for parameter in operation.headers)
        self._query = {parameter.name: parameter for parameter in operation.query}
        if operation.owners:
            self._query["owner"] = OWNER_PARAMETER
        body, limits = operation.body, state.settings.limits
        seconds = None if body is not None and body.streams else BODY_TIMEOUT
        self.body_limits = BodyLimits(getattr(limits, body.size) if body is not None else limits.body, seconds)

    # Routing -------------------------------------------------------------------------------------------

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Tell whether the path is this operation's, and whether the method is."""
        if scope["type"] != "http":
            return Match.NONE, {}
        parts = scope.get(_PARTS)
        if parts is None:
            parts = scope[_PARTS] = _split_path(scope)
        values = self._match_parts(parts)
        if values is None:
            return Match.NONE, {}
        if scope["method"] not in self.methods:
            scope.setdefault(_ALLOWED, set()).update(self.methods)
            return Match.PARTIAL, {}
        return Match.FULL, {"path_params": values}

    def _match_parts(self, parts: list[str]) -> dict[str, str] | None:
        if len(parts) != len(self._segments):
            return None
        values = {}
        for part, segment, name in zip(parts, self._segments, self._names, strict=True):
            if name is None:
                if part != segment:
                    return None
            else:
                values[name] = part
        if self._verb:
            name, last = self._names[-1], parts[-1]
            if name is None or not last.endswith(self._verb):
                return None
            values[name] = last.removesuffix(self._verb)
        return values if all(values.values()) else None

    # Answering -----------------------------------------------------------------------------------------

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; whatever goes wrong before the answer begins becomes a problem."""
        begin = self.state.clock()
        try:
            response = await self._answer(scope, receive)
        except ClientDisconnect:
            return
        except BodyStopped as stop:
            if stop.status == 413:
                await _drain(scope, receive)
            response = build_response(stop)
        except Exception as error:  # noqa: BLE001 - to_problem logs what nobody expected
            response = build_response(to_problem(error))
        self.state.metrics.count(self.operation.name, response.status_code, self.state.clock() - begin)
        if isinstance(response, StreamingResponse):
            send = limit_sending(send)
        try:
            await response(scope, receive, send)
        except ConnectionAbortedError:
            return  # half an answer: the server closes the connection

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        operation, state = self.operation, self.state
        if scope["method"] not in self.methods:
            raise _make_method_problem(scope)
        request = Request(scope, receive)
        key = await self._authenticate(request)
        self._check_promises(request)
        query = self._read_query(scope["query_string"]) if scope["query_string"] else {}
        asked = query.pop("owner", None)
        owner = None if key is None else choose_owner(key, operation, asked)
        if operation.body is not None:
            self._check_form(request)
            length = request.headers.get("content-length")
            request = Request(scope, limit_body(receive, length, self.body_limits))
        path = {name: _decode(value) for name, value in scope["path_params"].items()}
        return await operation.handler(ApiCall(state, request, key, owner, path, query))

    async def _authenticate(self, request: Request) -> KeyRecord | None:
        operation, state = self.operation, self.state
        if not operation.scopes:
            return None
        key = await state.keys.authenticate(request.headers.get("authorization"))
        rules = await state.keys.get_rules(key.owner)
        rate = rules.requests_per_second
        state.requests.take(key.owner, state.settings.limits.requests_per_second if rate is None else rate)
        check_scopes_of(key, operation)
        return key

    def _check_promises(self, request: Request) -> None:
        """Refuse with 400 an `Idempotency-Key` that would not be looked at: its sender relies on it."""
        if not self._takes_repetitions and IDEMPOTENCY_KEY in request.headers:
            msg = f"`{IDEMPOTENCY_KEY}` does nothing here, so send none; {self.operation.again}"
            raise Problem(msg, status=400)

    def _read_query(self, query_string: bytes) -> dict[str, Any]:
        values: dict[str, Any] = {}
        try:
            pairs = parse_qsl(query_string.decode(), keep_blank_values=True, errors="strict", max_num_fields=100)
        except (UnicodeDecodeError, ValueError):
            msg = "the query is not UTF-8 after percent-decoding, or has too many parts"
            raise Problem(msg, status=400) from None
        for name, text in pairs:
            parameter = self._query.get(name)
            if parameter is None:
                hint = did_you_mean(name, self._query) or _list_names(self._query)
                msg = f"unknown parameter `{name:.80}` in the query{hint}"
                raise Problem(msg, status=400)
            if name in values:
                msg = f"`{name}` comes twice in the query"
                raise Problem(msg, status=400)
            values[name] = parameter.convert(text)
        return values

    def _check_form(self, request: Request) -> None:
        """Refuse with 415 a body of another media type, or one that is compressed."""
        body, headers = self.operation.body, request.headers
        assert body is not None
        kind, _, options = headers.get("content-type", body.types[0]).partition(";")
        charset = options.lower().partition("charset=")[2].strip(' "')
        is_fine = ANY_TYPE in body.types or kind.strip().lower() in (*body.types, FORM)
        if not is_fine or charset not in ("", "utf-8", "utf8", "us-ascii"):
            expected = " or ".join(f"`{name}`" for name in body.types)
            msg = f"the body is {expected} in UTF-8, not `{headers.get('content-type', '')[:80]}`"
            raise Problem(msg, status=415, headers={"Accept": ", ".join(body.types)})
        if headers.get("content-encoding", "identity").lower() != "identity":
            msg = "the body comes as it is, without `Content-Encoding`"
            raise Problem(msg, status=415)


def _split_template(path: str) -> tuple[list[str], str]:
    """Return the segments of an operation's path, and the verb behind its last parameter.

    >>> _split_template("/v1/things/{id}:pause"), _split_template("/v1/things:check")
    ((['v1', 'things', '{id}'], ':pause'), (['v1', 'things:check'], ''))
    """
    segments, verb = path.removeprefix("/").split("/"), ""
    if segments[-1][:1] == "{":
        name, brace, verb = segments[-1].partition("}")
        segments[-1] = name + brace
    return segments, verb


def _split_path(scope: Scope) -> list[str]:
    """Return the segments of a request's path as they were sent."""
    raw = scope.get("raw_path")
    path = raw.decode("latin-1") if raw else quote(scope["path"])
    root = scope.get("root_path", "")
    if root and path.startswith(root):
        path = path[len(root) :]
    return path.partition("?")[0].removeprefix("/").split("/")


def _decode(segment: str) -> str:
    if "%" not in segment and segment.isascii():
        return segment
    try:
        return unquote_to_bytes(segment.encode("latin-1")).decode()
    except UnicodeDecodeError:
        msg = "the path is not UTF-8 after percent-decoding"
        raise Problem(msg, status=400) from None


def _make_method_problem(scope: Scope) -> Problem:
    allowed = ", ".join(sorted(scope[_ALLOWED]))
    msg = f"`{scope['method'][:20]}` cannot be done here; {allowed} can"
    return Problem(msg, status=405, headers={"Allow": allowed})


def _list_names(names: Mapping[str, Any]) -> str:
    return f"; there are {', '.join(f'`{name}`' for name in names)}" if names else "; there are none here"


async def _drain(scope: Scope, receive: Receive) -> None:
    """Read what is left of a refused body and throw it away, for a while: then its sender reads the answer."""
    import asyncio

    if any(name == b"expect" for name, _ in scope["headers"]):
        return  # the sender waits for a word before it sends
    left = DRAIN_BYTES
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if message["type"] != "http.request" or not message.get("more_body"):
                    return
    except TimeoutError:
        return
