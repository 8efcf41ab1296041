"""`tidings sub list`, `show`, `matches` and `watch`: the subscriptions of a service, and what matched them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tidings.cli import render
from tidings.cli.service.client import PATH, RequestRefused, ServiceUnreachable, make_path, open_client
from tidings.matcher.plan import Sheet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tidings.cli.service.client import ServiceClient
    from tidings.cli.service.options import ClientOptions

LATER = (429, 502, 503, 504)
"""Statuses of a service that is starting again, or of a proxy before it: a stream is asked for again."""

WIDTH = 60
"""Characters of a filter in a list."""


def list_all(*, label: str | None, status: str | None, text: str | None, limit: int, options: ClientOptions) -> None:
    """Print subscriptions, as a table or as JSON lines."""
    with open_client(options) as client:
        params = {"label": label, "status": status, "q": text}
        rows = client.iterate_pages(PATH, "subscriptions", limit=limit or None, **params)
        if options.as_json:
            for row in rows:
                render.write_json(row)
            return
        shown = list(rows)
    sheet = Sheet(
        f"{len(shown):,} subscription{'s' if len(shown) != 1 else ''}",
        ("id", "kind", "status", "labels", "text"),
        tuple(
            (row["id"], row.get("kind", ""), row["status"], " ".join(row.get("labels") or ()), shorten(row))
            for row in shown
        ),
    )
    render.print_sheet(sheet if shown else Sheet(sheet.title, (), ()))
    if limit and len(shown) == limit:
        render.note("there may be more; --limit 0 lists all")


def shorten(row: Mapping[str, Any]) -> str:
    """Return the filter or pattern of a subscription in one short line."""
    text = row.get("filter") or row.get("pattern") or ""
    line = " ".join((text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)).split())
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"


def show(id: str, options: ClientOptions) -> None:
    """Print a subscription."""
    with open_client(options) as client:
        answer = client.ask("GET", make_path(id))
    if options.as_json:
        render.write_json(answer)
        return
    width = max(map(len, answer))
    for name, value in answer.items():
        if value not in (None, [], ""):
            text = value if isinstance(value, str) else render.to_json(value)
            render.write(f"{name:<{width}}  {text.replace(chr(10), chr(10) + ' ' * (width + 2))}")


def show_matches(id: str, *, limit: int, options: ClientOptions) -> None:
    """Print the latest matches of a subscription, newest first."""
    with open_client(options) as client:
        for match in client.iterate_pages(make_path(id, "/matches"), "matches", limit=limit or None):
            render.write_json(match) if options.as_json else render.write(format_match(match))


def format_match(match: Mapping[str, Any]) -> str:
    """Return a match in one line: when, what, and the values of its event."""
    events = [match["event"]] if match.get("event") is not None else match.get("events") or []
    words = [str(match.get("at")), *([match["subscription"]] if "subscription" in match else [])]
    words += [str(match["kind"])] if match.get("kind") != "match" else []
    words += [f"p={match['probability']:.2f}"] if match.get("probability") is not None else []
    return "  ".join([*words, ", ".join(map(str, events)), render.to_json(match.get("values") or {})])


def watch(*, after: str | None, options: ClientOptions) -> None:
    """Print matches of one's subscriptions as they come, until Ctrl-C."""
    with open_client(options) as client:
        for match in follow_stream(client, after):
            render.write_json(match) if options.as_json else render.write(format_match(match))


def follow_stream(client: ServiceClient, after: str | None) -> Iterator[Any]:
    """Yield matches; a stream that breaks off, or cannot be had for a while, is taken up again after the last one."""
    from time import sleep

    wait = 0.0
    while True:
        try:
            headers = {"Accept": "text/event-stream", **({"Last-Event-ID": after} if after else {})}
            for number, match in parse_events(client.stream_lines("/v1/stream", timeout=None, headers=headers)):
                after, wait = number or after, 0.0
                if match is not None:
                    yield match
        except (ServiceUnreachable, RequestRefused) as problem:
            if after is None or (isinstance(problem, RequestRefused) and problem.status not in LATER):
                raise
            render.warn(f"{problem}; trying again")
        wait = min(wait * 2 or 0.5, 30.0)
        sleep(wait)


def parse_events(lines: Iterator[str]) -> Iterator[tuple[str | None, Any]]:
    """Yield the id and the data of server-sent events; one without data says how far the stream is.

    >>> list(parse_events(iter(["id: 7", 'data: {"a": 1}', "", ": still here", "id: 9", ""])))
    [('7', {'a': 1}), ('9', None)]
    """
    id, data = None, ""
    for line in lines:
        name, _, value = line.partition(":")
        match name:
            case "id":
                id = value.strip()
            case "data":
                data += value
            case "" if not line:
                if id is not None or data:
                    yield id, json.loads(data) if data else None
                id, data = None, ""
