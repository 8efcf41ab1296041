"""The OpenAPI 3.1 document, from what stands beside the operations.

What follows from an operation is not written there: the parameters of the path, `?owner=`, the key, and the problems
that any operation of its kind may answer with.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tidings.service.api.auth import EVERY_OWNER
from tidings.service.api.problems import KINDS, MEDIA_TYPE
from tidings.service.api.schemas import OWNER, SCHEMAS, JsonSchema, make_reference
from tidings.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidings.service.api.operations import DocumentedAnswer, Operation, Parameter, RequestBody

_DESCRIPTION = """Content-based publish/subscribe as a service: who must hear of which event.

Send a key with every request: `Authorization: Bearer KEY`. Refusals are RFC 9457 problems. Ids may have any printable
character; in a path they are percent-encoded (`/` is `%2F`, `:` is `%3A`). `Idempotency-Key` is for the operations
that list it among their headers; all others refuse it (400), and say what to do instead."""

_KEY_SCHEME = "key"


def build_document(operations: Iterable[Operation], schemas: Iterable[Mapping[str, JsonSchema]] = ()) -> dict[str, Any]:
    """Return the document of operations; `schemas` are those of each route module, by name."""
    paths: dict[str, dict[str, Any]] = {}
    others = {name: schema for module in schemas for name, schema in module.items()}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _describe(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tidings", "version": __version__, "description": _DESCRIPTION},
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": {**SCHEMAS, **others},
            "responses": {str(status): _describe_problem(status) for status in sorted(KINDS)},
            "securitySchemes": {_KEY_SCHEME: {"type": "http", "scheme": "bearer"}},
        },
    }


def _describe(operation: Operation) -> dict[str, Any]:
    answers = {str(status): _describe_answer(answer) for status, answer in operation.answers.items()}
    for status in list_problems(operation):
        answers.setdefault(str(status), {"$ref": f"#/components/responses/{status}"})
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.tag],
        "parameters": _list_parameters(operation),
        "responses": dict(sorted(answers.items())),
        "security": [{_KEY_SCHEME: list(operation.scopes)}] if operation.scopes else [],
    }
    if operation.description:
        described["description"] = operation.description
    if operation.body is not None:
        described["requestBody"] = _describe_body(operation.body)
    return described


def list_problems(operation: Operation) -> list[int]:
    """Return the statuses of all problems that an operation may answer with."""
    statuses = {*operation.problems, 400, 405, 500, 503}
    if operation.scopes:
        statuses |= {401, 403, 429}
    if operation.body is not None:
        statuses |= {408, 413, 415, 422}
    return sorted(statuses)


def _list_parameters(operation: Operation) -> list[dict[str, Any]]:
    names = re.findall(r"{(\w+)}", operation.path)
    path = [
        {"name": name, "in": "path", "required": True, "schema": operation.parameters.get(name, {"type": "string"})}
        for name in names
    ]
    query = [_describe_parameter(parameter, "query") for parameter in operation.query]
    if operation.owners:
        words = "Whose things are meant: for administrators; the key's own owner by default."
        every = f" `{EVERY_OWNER}`: all owners'." if operation.every_owner else ""
        query.append({"name": "owner", "in": "query", "description": words + every, "schema": OWNER})
    headers = [_describe_parameter(parameter, "header") for parameter in operation.headers]
    return path + query + headers


def _describe_parameter(parameter: Parameter, place: str) -> dict[str, Any]:
    described = {
        "name": parameter.name,
        "in": place,
        "required": False,
        "description": parameter.description,
        "schema": parameter.schema,
    }
    return described if parameter.example is None else {**described, "example": parameter.example}


def _describe_body(body: RequestBody) -> dict[str, Any]:
    examples = {name: {"value": value} for name, value in body.examples.items()}
    content = {kind: {"schema": body.schema, "examples": examples} for kind in body.types}
    return {"required": body.required, "content": content}


def _describe_answer(answer: DocumentedAnswer) -> dict[str, Any]:
    described: dict[str, Any] = {"description": answer.description}
    if answer.schema is not None:
        content: dict[str, Any] = {"schema": answer.schema}
        if answer.example is not None:
            content["examples"] = {"example": {"value": answer.example}}
        described["content"] = {answer.type: content}
    if answer.headers:
        described["headers"] = {
            name: {"description": words, "schema": {"type": "string"}} for name, words in answer.headers.items()
        }
    if answer.links:
        described["links"] = dict(answer.links)
    return described


def _describe_problem(status: int) -> dict[str, Any]:
    kind = KINDS[status]
    example = {
        "type": f"urn:tidings:problem:{kind.name}",
        "title": kind.title,
        "status": status,
        "detail": kind.title,
        "errors": [{"message": kind.title, "hint": None, "at": None, "length": None, "field": None}],
    }
    content = {"schema": make_reference("Problem"), "examples": {"example": {"value": example}}}
    described: dict[str, Any] = {"description": kind.title, "content": {MEDIA_TYPE: content}}
    header = {401: "WWW-Authenticate", 429: "Retry-After", 405: "Allow"}.get(status)
    if header:
        described["headers"] = {header: {"schema": {"type": "string"}}}
    return described
