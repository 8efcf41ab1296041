"""What the API says when it refuses: RFC 9457 problems, `application/problem+json`.

Everything that leaves with a status of 400 or more is a problem with `type`, `title`, `status`, `detail` and `errors`:
those that operations raise (`Problem`), refusals of the layers below (`to_problem`), and paths and methods that do not
exist. Whatever else goes wrong is a 500 that says nothing of what happened; the log does, without any value of the
request.
"""

from __future__ import annotations

import logging
import traceback
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tidings.errors import TidingsError
from tidings.service.refusals import MAX_MISTAKES, RequestMistake, SubscriptionRefused
from tidings.service.store.base import (
    DigestConflict,
    IdTaken,
    QuotaExceeded,
    RevisionConflict,
    StoreBusy,
    StoreError,
    UnknownId,
    UnstorableText,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

LOGGER = logging.getLogger("tidings.service")

MEDIA_TYPE = "application/problem+json"
"""The media type of every refusal."""


class ProblemKind(NamedTuple):
    """What all problems of a status share."""

    name: str
    title: str


KINDS: dict[int, ProblemKind] = {
    400: ProblemKind("bad-request", "The request cannot be read"),
    401: ProblemKind("unauthorized", "A valid key is needed"),
    403: ProblemKind("forbidden", "The key does not allow this"),
    404: ProblemKind("not-found", "There is no such thing"),
    405: ProblemKind("method-not-allowed", "This cannot be done here"),
    406: ProblemKind("not-acceptable", "The answer has another form"),
    408: ProblemKind("timeout", "The request came too slowly"),
    409: ProblemKind("conflict", "Something else is there already"),
    412: ProblemKind("precondition-failed", "Somebody else was first"),
    413: ProblemKind("too-large", "The body is too large"),
    415: ProblemKind("unsupported-media-type", "The body has another form"),
    422: ProblemKind("invalid", "The request cannot be followed"),
    428: ProblemKind("precondition-required", "A condition is needed"),
    429: ProblemKind("too-many", "Too many requests"),
    500: ProblemKind("internal", "Something went wrong here"),
    503: ProblemKind("unavailable", "The service cannot answer now"),
}
"""The kinds of problems by their status."""


class Problem(TidingsError):
    """The request was refused."""

    status: int = 400
    title: str | None = None
    errors: tuple[RequestMistake, ...] = ()
    headers: Mapping[str, str] = {}
    members: Mapping[str, Any] = {}
    """What this problem says beside the members that all have."""


_STATUSES: tuple[tuple[type[TidingsError], int], ...] = (
    (UnknownId, 404),
    (IdTaken, 409),
    (RevisionConflict, 412),
    (QuotaExceeded, 403),
    (DigestConflict, 422),
    (UnstorableText, 422),
    (StoreBusy, 503),
    (StoreError, 503),
    (SubscriptionRefused, 422),
    (TidingsError, 422),
)


def to_problem(error: Exception) -> Problem:
    """Return the problem of whatever was raised; what nobody expected is logged and says nothing."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, HTTPException):
        return _convert_http_error(error)
    if not isinstance(error, TidingsError):
        log_failure(error)
        return Problem("the service failed; its log says more", status=500)
    status = next(status for kind, status in _STATUSES if isinstance(error, kind))
    if status == 503:  # why, concerns whoever runs the service
        LOGGER.warning("the store does not answer: %s", error)
        msg = "the store does not answer now; try again"
        return Problem(msg, status=status, headers={"Retry-After": "1"})
    return Problem(str(error), status=status, errors=getattr(error, "errors", ()))


def _convert_http_error(error: HTTPException) -> Problem:
    """Return the problem of what Starlette refuses: a path that no operation has."""
    msg = (
        str(error.detail) if error.status_code != 404 else "there is nothing at this path; /openapi.json lists them all"
    )
    return Problem(msg, status=error.status_code, headers=error.headers or {})


def log_failure(error: BaseException) -> None:
    """Log what nobody expected: its kind and place; its message may hold what a request brought."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    LOGGER.error("unexpected %s\n%s", type(error).__name__, frames)


def build_response(problem: Problem) -> Response:
    """Return the answer that a problem is."""
    status = problem.status
    kind = KINDS.get(status) or ProblemKind(f"status-{status}", "The request was refused")
    errors = problem.errors or (RequestMistake(str(problem)),)
    body = {
        "type": f"urn:tidings:problem:{kind.name}",
        "title": problem.title or kind.title,
        "status": status,
        "detail": str(problem),
        "errors": [mistake.to_dict() for mistake in errors[:MAX_MISTAKES]],
        **problem.members,
    }
    return Response(orjson.dumps(body), status, headers=dict(problem.headers), media_type=MEDIA_TYPE)
