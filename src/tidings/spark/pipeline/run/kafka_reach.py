"""A check before the start that Kafka's brokers can be reached.

Spark's connector waits for a broker silently, for minutes and repeatedly. So each list of brokers is tried once: one
that accepts a connection is enough. Whether it is Kafka, and accepts the login, is left to the connector.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from tidings.errors import PipelineFailed
from tidings.spark.pipeline.config.variables import mask

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidings.spark.pipeline.config.settings import Pipeline

CONNECT_SECONDS = 5.0
"""Seconds that a broker has to accept a connection."""

DEFAULT_PORT = 9092
"""Kafka's port, where none is given."""


def require_brokers(pipeline: Pipeline) -> None:
    """Raise `PipelineFailed` if no broker of some list accepts a connection."""
    for where, servers in dict(_list_servers(pipeline)).items():
        if not any(map(_is_reachable, servers.split(","))):
            msg = f"{where}: none of the servers `{mask(servers)}` takes a connection; is Kafka running there?"
            raise PipelineFailed(msg)


def _list_servers(pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    about = pipeline.subscriptions
    parts = [("[source]", pipeline.source.servers), ("[subscriptions]", about.servers if about else None)]
    parts += [("[[sink]]", sink.servers) for sink in pipeline.sinks]
    parts += [("[[detections]]", sink.servers) for sink in pipeline.detections]
    for where, servers in (*parts, ("[dead_letters]", pipeline.dead_letters.servers)):
        if servers:
            yield where, servers


def _is_reachable(server: str) -> bool:
    host, _, port = server.strip().rpartition(":")
    try:
        with socket.create_connection(
            (host.strip("[]") or server.strip(), int(port) if host else DEFAULT_PORT), CONNECT_SECONDS
        ):
            return True
    except (OSError, ValueError):
        return False
