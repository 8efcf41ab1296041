"""`tidings sub try`: which events a subscription matches and why, or how many matches a day it would have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.cli import render
from tidings.cli.service.client import PATH, open_client
from tidings.cli.service.subscriptions import build_body
from tidings.matcher.loading.row_files import RowFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tidings.cli.options import FileForm
    from tidings.cli.service.client import ServiceClient
    from tidings.cli.service.options import ClientOptions, SubscriptionOptions

MOST, MOST_OF_FILTER = 1_000, 100
"""Events that are sent at once: of a pattern, which asks for several, and of a filter, so that each has its reasons."""

MOST_LETTERS = 200_000
"""Letters of a filter times events that are sent at once: the service bounds tests, each of which has two at least."""


def run(
    filter: str | None,
    wanted: SubscriptionOptions,
    options: ClientOptions,
    *,
    events: str | None,
    form: FileForm | None,
) -> None:
    """Try a subscription on events; without any, estimate it."""
    body = build_body(filter, wanted)
    if wanted.id is None:
        body.pop("id", None)  # a pattern's name in its file, which here means nothing
    text = body.get("filter") or body.get("pattern")
    text = text if isinstance(text, str) else None
    with open_client(options) as client:
        if events is None:
            answer = client.ask("POST", f"{PATH}:estimate", json=body, text=text)
            render.write_json(answer) if options.as_json else render.write(describe_estimate(answer))
            return
        tried = matches = 0
        for result in try_events(client, body, events, form=form, text=text):
            tried += 1
            matches += bool(result.get("matches"))
            render.write_json(result) if options.as_json else render.write(describe_result(result))
    render.note(f"{tried:,} events, {matches:,} match")


def try_events(
    client: ServiceClient, body: Mapping[str, Any], events: str, *, form: FileForm | None, text: str | None
) -> Iterator[dict[str, Any]]:
    """Yield what becomes of each event of a file; `index` is its number in the file."""
    for numbers, values in _read_events(events, form, most=count_at_once(body)):
        answer = client.ask("POST", f"{PATH}:try", json={**body, "events": values}, text=text)
        for result in answer["results"]:
            yield {**result, "index": numbers[result["index"]]}
        detections = answer.get("detections") or ()
        for detection in detections:
            yield {"index": numbers[-1], "matches": True, "detection": detection}
        if detections and answer["matches"] > len(detections):
            render.note(f"{answer['matches'] - len(detections):,} more detections are not shown")


def count_at_once(body: Mapping[str, Any]) -> int:
    """Return how many events are sent at once.

    >>> count_at_once({"filter": "a = 1"}), count_at_once({"filter": "a" * 50_000}), count_at_once({"pattern": "a"})
    (100, 4, 1000)
    """
    if body.get("filter") is None:  # a pattern, or a stored one that may be a pattern
        return MOST
    return max(1, min(MOST_OF_FILTER, MOST_LETTERS // max(1, len(str(body["filter"])))))


def _read_events(path: str, form: FileForm | None, *, most: int) -> Iterator[tuple[list[int], list[Any]]]:
    import json

    with RowFile(path, form=form) as file:
        for batch in file:
            for start in range(0, len(batch), most):
                rows = batch[start : start + most]
                # What JSON does not have (times in Parquet) becomes text; a line that is no JSON is sent as one.
                values = [json.loads(render.to_json(row.raw if row.values is None else row.values)) for row in rows]
                yield [row.number for row in rows], values


def describe_result(result: Mapping[str, Any]) -> str:
    """Return in lines what became of an event."""
    if (detection := result.get("detection")) is not None:
        return f"detected at {detection['at']}: {', '.join(map(str, detection['events']))}"
    name = f"event {result.get('event', result['index'])}"
    if (mistake := result.get("error")) is not None:
        hint = f"; {mistake['hint']}" if mistake.get("hint") else ""
        return f"{name} cannot be taken: {mistake['message']}{hint}"
    return f"{name}: {result['text']}"


def describe_estimate(answer: Mapping[str, Any]) -> str:
    """Return in lines how many matches there would be."""
    seen = f"{answer['matches']:,} of {answer['events']:,} events since {answer['since']}"
    if answer.get("per_day") is None:
        lines = [f"no estimate: {answer.get('note') or 'there are no recent events'}"]
    else:
        low, high = answer.get("interval") or (answer["per_day"], answer["per_day"])
        lines = [f"about {answer['per_day']:,.0f} matches a day ({low:,.0f} to {high:,.0f}): {seen}"]
        lines += [answer["note"]] if answer.get("note") else []
    return "\n".join([*lines, *(f"  {render.to_json(event)}" for event in answer.get("latest") or ())])
