"""Connections: what is no HTTP is refused as everything is, and the log has no line of it."""

import asyncio
import json
import logging
from unittest.mock import Mock

import pytest
import uvicorn
from tests.service.api.asking import Asker
from uvicorn.server import ServerState

from tidings.service.api.connections import PatientProtocol


@pytest.fixture
def api(tmp_path):
    api = Asker(tmp_path)
    yield api
    api.close()


def send(api, *pieces):
    """Return what a connection writes to these bytes, and whether it was closed."""

    async def talk():
        config = uvicorn.Config(api.app, ws="none", lifespan="off", log_config=None)
        config.load()
        state, transport = ServerState(), Mock()
        transport.get_extra_info.return_value = None
        transport.is_closing.return_value = False
        protocol = PatientProtocol(config, state, {})
        protocol.connection_made(transport)
        for piece in pieces:
            protocol.data_received(piece)
        await asyncio.gather(*state.tasks)
        protocol.connection_lost(None)
        return b"".join(call.args[0] for call in transport.write.call_args_list), transport.close.called

    return api.runner.run(talk())


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00",
        b"FOO /v1/subscriptions HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET /v1/subscriptions/é HTTP/1.1\r\nhost: x\r\n\r\n".encode(),
        b"POST /v1/events HTTP/1.1\r\ncontent-length: -5\r\n\r\n",
        b"POST /v1/events HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n",
        b"GET /v1/status HTTP/1.1\r\nbad header\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused_with_a_problem_and_no_line_in_the_log(api, caplog, request_bytes):
    caplog.set_level(logging.WARNING)
    logging.getLogger("uvicorn.error.connections").setLevel(logging.NOTSET)  # as uvicorn's configuration does
    answer, is_closed = send(api, request_bytes)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"content-type: application/problem+json" in head.lower()
    assert f"content-length: {len(body)}".encode() in head.lower()
    problem = json.loads(body)
    assert (problem["status"], problem["type"]) == (400, "urn:tidings:problem:bad-request")
    assert problem["errors"]
    assert is_closed
    assert caplog.records == []


def test_an_upgrade_that_is_asked_for_is_no_matter(api, caplog):
    caplog.set_level(logging.WARNING)
    upgrade = b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n"
    answer, _ = send(api, upgrade)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert caplog.records == []
