"""A service in words, a line for each part, as `tidings serve --check` prints them: without any secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.configuration.environment import hide_password, mask
from tidings.configuration.measure_kinds import format_size
from tidings.lang.filters.value_text import format_duration

if TYPE_CHECKING:
    from tidings.service.settings import EventSettings, ServiceSettings


def describe_service(settings: ServiceSettings) -> dict[str, str]:
    """Return what each part will do, in the order of the file."""
    return {
        "address": f"{settings.host}:{settings.port}, {settings.workers} process{'es' if settings.workers > 1 else ''}",
        "data": str(settings.data),
        "store": mask(hide_password(settings.store_url)),
        "events": _describe_events(settings),
        "schema": _describe_vocabulary(settings),
        "limits": _describe_limits(settings),
        "matches": f"the {settings.matches.keep:,} latest of each, for {format_duration(settings.matches.within)}",
        "patterns": _describe_patterns(settings),
        "owners": ", ".join(f"`{name}`" for name in settings.owners) or "none has rules of its own",
        "pipeline": f"looks for events every {settings.trigger}",
    }


def _describe_events(settings: ServiceSettings) -> str:
    events = settings.events
    where = f"Kafka topic {mask(events.topic or '')} at {mask(events.servers or '')} ({_describe_login(events)})"
    if events.to == "folder":
        where = f"files in {settings.events_folder}, kept for {format_duration(events.kept)}"
    doubles = f"doubles left out within {format_duration(events.within)}"
    return f"{where}; id `{mask(events.id)}`; time `{mask(events.time)}`; {doubles}"


def _describe_login(events: EventSettings) -> str:
    who = f" as {mask(events.username)} by {events.mechanism}" if events.username else ""
    return f"{events.protocol}{who}" + (f", authorities of {mask(events.ca)}" if events.ca else "")


def _describe_vocabulary(settings: ServiceSettings) -> str:
    vocabulary = settings.vocabulary
    parts = [f"{len(vocabulary.schema):,} attributes"] if vocabulary.schema is not None else []
    parts += ["an ontology"] if vocabulary.ontology is not None else []
    parts += [f"{len(vocabulary.regions):,} regions"] if vocabulary.regions is not None else []
    return ", ".join(parts) or "none: any name, read as each filter asks"


def _describe_limits(settings: ServiceSettings) -> str:
    limits = settings.limits
    return (
        f"{limits.subscriptions:,} subscriptions, {limits.requests_per_second:,g} requests and "
        f"{limits.events_per_second:,g} events a second for each owner; bodies of {format_size(limits.body)}"
    )


def _describe_patterns(settings: ServiceSettings) -> str:
    patterns = settings.patterns
    wait = f"events wait {format_duration(patterns.lateness)} to be put in order"
    idle = f"after {format_duration(patterns.idle)} without events by the clock" if patterns.idle else ""
    ahead = f"none is more than {format_duration(patterns.ahead)} ahead"
    model = f"model {mask(patterns.model)}" if patterns.model else ""
    return "; ".join(part for part in (wait, ahead, idle, model) if part)
