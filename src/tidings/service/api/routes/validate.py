"""`POST /v1/subscriptions:validate`: what would be said of a subscription, without storing it.

The answer is 200 whatever is wrong with it: the mistakes are what was asked for.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from tidings.algebra import simplify
from tidings.errors import NotExpressible, TidingsError
from tidings.lang import render, render_pattern
from tidings.service.api import schemas
from tidings.service.api.operations import ApiCall, DocumentedAnswer, Operation, RequestBody, answer_json
from tidings.service.refusals import SubscriptionRefused, convert_warning
from tidings.service.subscription import MAX_ID

if TYPE_CHECKING:
    from starlette.responses import Response

    from tidings.concepts import Vocabulary
    from tidings.service.checking import CheckedText, SubscriptionChecker
    from tidings.service.subscription import SubscriptionDraft

MOST_SIMPLIFIED = 2_000
"""Characters of a filter that is simplified at most: simplifying compares parts with each other."""


async def validate_subscription(call: ApiCall) -> Response:
    """Answer with all mistakes, or with what was understood."""
    body = await call.read_json()
    rules = await call.get_rules()
    judge = partial(
        judge_body,
        call.state.checker,
        body,
        vocabulary=call.state.settings.vocabulary,
        now=call.now,
        owner=call.owner,
        filter_bytes=rules.filter_bytes,
    )
    return answer_json(judge() if call.state.checker.is_quick(body) else await call.state.access.work(judge))


def judge_body(checker: SubscriptionChecker, body: Any, *, vocabulary: Vocabulary, **keywords: Any) -> dict[str, Any]:
    """Return what `:validate` answers to a body."""
    if type(body) is dict and body.get("id") is None:
        body = {**body, "id": "x" * MAX_ID}
    try:
        draft = checker.check(body, **keywords)
    except SubscriptionRefused as refusal:
        errors = [mistake.to_dict() for mistake in refusal.errors]
        return {"valid": False, "kind": None, "rendered": None, "simplified": None, "errors": errors, "warnings": []}
    return describe_draft(checker, draft, vocabulary)


def describe_draft(checker: SubscriptionChecker, draft: SubscriptionDraft, vocabulary: Vocabulary) -> dict[str, Any]:
    """Return what was understood of a draft: its filter or pattern in every notation, and shorter where it can be."""
    name = "filter" if draft.kind == "filter" else "pattern"
    source = orjson.loads(draft.text) if draft.notation == "json" else draft.text
    text = checker.check_text(name, source, draft.notation, draft.mode, filter_bytes=len(draft.text.encode()) + 1)
    is_filter = text.kind == "filter"
    return {
        "valid": True,
        "kind": draft.kind,
        "rendered": render_filter(text, vocabulary) if is_filter else render_notations(text),
        "simplified": simplify_text(text, vocabulary) if is_filter and len(text.text) <= MOST_SIMPLIFIED else None,
        "errors": [],
        "warnings": [convert_warning(warning, name).to_dict() for warning in text.warnings],
    }


def render_filter(text: CheckedText, vocabulary: Vocabulary) -> dict[str, Any]:
    """Return a filter in every notation; null where a notation cannot say it."""
    tree: Any = text.tree
    try:
        url = render(tree, notation="url", schema=vocabulary.schema)
    except NotExpressible:
        url = None
    return {"text": render(tree), "json": orjson.loads(render(tree, notation="json")), "url": url}


def render_notations(text: CheckedText) -> dict[str, Any]:
    """Return a pattern in both of its notations."""
    tree: Any = text.tree
    return {"text": render_pattern(tree), "json": orjson.loads(render_pattern(tree, "json")), "url": None}


def simplify_text(text: CheckedText, vocabulary: Vocabulary) -> str | None:
    """Return a shorter filter that accepts the same events; None where that would be too much work."""
    tree: Any = text.tree
    try:
        return render(simplify(tree, **vocabulary.to_keywords()))
    except TidingsError:
        return None


_MISTAKES = {"type": "array", "items": schemas.make_reference("Mistake")}

SCHEMAS: dict[str, Any] = {
    "Validation": {
        "type": "object",
        "properties": {
            "valid": {"type": "boolean"},
            "kind": {"type": ["string", "null"], "enum": ["filter", "pattern", "forecast", None]},
            "rendered": {
                "type": ["object", "null"],
                "description": "The filter or pattern as it was understood, by notation.",
            },
            "simplified": {"type": ["string", "null"], "description": "A shorter filter that accepts the same."},
            "errors": _MISTAKES,
            "warnings": {**_MISTAKES, "description": "What may mean something else than its author thinks."},
        },
        "required": ["valid", "kind", "rendered", "simplified", "errors", "warnings"],
        "additionalProperties": False,
    }
}

OPERATIONS = (
    Operation(
        method="POST",
        path="/v1/subscriptions:validate",
        handler=validate_subscription,
        name="validateSubscription",
        summary="Check a subscription without storing it",
        description="All mistakes with their places, or the filter or pattern in every notation.",
        scopes=("read", "write"),
        body=RequestBody(
            schema=schemas.make_reference("Unchecked"),
            examples={"good": schemas.EXAMPLE_FILTER, "bad": {"filter": "price < and make = ford"}},
        ),
        answers={
            200: DocumentedAnswer(
                description="What would be said of it.",
                schema=schemas.make_reference("Validation"),
                example={
                    "valid": True,
                    "kind": "filter",
                    "rendered": {"text": "a = 1", "json": {"attr": "a", "op": "=", "value": 1}, "url": "a=1"},
                    "simplified": "a = 1",
                    "errors": [],
                    "warnings": [],
                },
            )
        },
    ),
)
SCHEMAS["Unchecked"] = {"description": "A subscription, however wrong."}
