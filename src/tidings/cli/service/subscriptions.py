"""`tidings sub add`, `edit`, `pause`, `resume` and `remove`: subscriptions changed over the API of a service."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any

from tidings.cli import render
from tidings.cli.input_files import read_text
from tidings.cli.service.client import PATH, RequestRefused, make_path, open_client
from tidings.cli.service.editor import edit_text
from tidings.errors import TidingsError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidings.cli.service.options import ClientOptions, SubscriptionOptions

FIELDS = (
    "filter",
    "pattern",
    "notation",
    "name",
    "mode",
    "horizon",
    "threshold",
    "delivery",
    "labels",
    "expires_at",
)
"""What a person changes in an editor."""

_KINDS = ("filter", "pattern")


def add(filter: str | None, options: SubscriptionOptions, client_options: ClientOptions) -> None:
    """Create a subscription."""
    body = build_body(filter, options)
    text = next((body[kind] for kind in _KINDS if isinstance(body.get(kind), str)), None)
    headers = {"Idempotency-Key": secrets.token_hex(16)}
    with open_client(client_options) as client:
        answer = client.ask("POST", PATH, json=body, headers=headers, text=text)
    if client_options.as_json:
        render.write_json(answer)
    else:
        render.write(answer["id"])
        render.note(f"`{answer['id']}` is {answer['status']}")


def edit(id: str, filter: str | None, options: SubscriptionOptions, client_options: ClientOptions) -> None:
    """Change what is given of a subscription; without anything, open it in an editor."""
    with open_client(client_options) as client:
        current, tag = client.send("GET", make_path(id))
        changes = build_body(filter, options) or _ask_editor(current)
        if not changes:
            render.note(f"`{id}` is as it was")
            return
        text = next((changes[kind] for kind in _KINDS if isinstance(changes.get(kind), str)), None)
        headers = {"If-Match": tag} if tag else {}
        try:
            answer = client.ask("PATCH", make_path(id), json=changes, headers=headers, text=text)
        except RequestRefused as refused:
            if refused.status == 412:
                msg = f"somebody else changed `{id}` meanwhile; look at it (tidings sub show {id}) and edit it again"
                raise RequestRefused(msg, problem=refused.problem, status=412) from None
            raise
    if client_options.as_json:
        render.write_json(answer)
    else:
        render.note(f"`{id}` is changed: {', '.join(changes)}")


def build_body(filter: str | None, options: SubscriptionOptions) -> dict[str, Any]:
    """Return what the options say of a subscription, as the API reads it."""
    text = read_text("-", "standard input").strip() if filter == "-" else filter
    body: dict[str, Any] = {"id": options.id, "filter": text, "name": options.name, "mode": options.mode}
    if text is not None and options.notation is not None:
        body["notation"] = options.notation
        body["filter"] = _decode(text, "the filter") if options.notation == "json" else text
    if options.pattern is not None:
        name, body["pattern"] = _read_pattern(options.pattern)
        body["id"] = options.id or name
    body |= {"horizon": options.horizon, "threshold": options.threshold, "labels": options.labels or None}
    if options.delivery is not None:
        body["delivery"] = _decode(options.delivery, "--delivery")
    if options.expires is not None:
        body["expires_at"] = options.expires.isoformat()
    return {name: value for name, value in body.items() if value is not None}


def _decode(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as problem:
        msg = f"{name} is not JSON: {problem}"
        raise TidingsError(msg) from None


def _read_pattern(path: str) -> tuple[str | None, str]:
    """Return the name and the text of the one pattern of a file; its line `pattern NAME` may be left out."""
    text = read_text(path, "standard input" if path == "-" else f"`{path}`")
    lines = [line for line in text.splitlines() if line.strip()]
    heads = [line for line in lines if line.startswith("pattern ")]
    if len(heads) > 1:
        msg = f"`{path}` has {len(heads)} patterns; a subscription is one of them"
        raise TidingsError(msg)
    name = heads[0].split(None, 1)[1].strip() if heads else None
    return name, "\n".join(line for line in text.splitlines() if line not in heads).strip("\n")


def _ask_editor(current: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a person changed of a subscription in an editor."""
    before = {name: current[name] for name in FIELDS if name in current}
    text = edit_text(json.dumps(before, ensure_ascii=False, indent=2))
    after = _decode(text, "what the editor left")
    if not isinstance(after, dict):
        msg = "what the editor left is no JSON object"
        raise TidingsError(msg)
    changes = {name: value for name, value in after.items() if before.get(name) != value}
    return changes | dict.fromkeys(name for name in before if name not in after)


def set_status(verb: str, ids: Sequence[str], options: ClientOptions) -> None:
    """Pause or resume subscriptions."""
    with open_client(options) as client:
        for id in ids:
            answer = client.ask("POST", make_path(id, f":{verb}"))
            if options.as_json:
                render.write_json(answer)
            else:
                render.note(f"`{id}` is {answer['status']}")


def remove(ids: Sequence[str], options: ClientOptions) -> None:
    """Remove subscriptions."""
    with open_client(options) as client:
        for id in ids:
            client.ask("DELETE", make_path(id))
            if options.as_json:
                render.write_json({"id": id, "removed": True})
            else:
                render.note(f"`{id}` is removed")
