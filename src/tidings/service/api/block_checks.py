"""Blocks of an import's lines, checked: drafts of the good ones, and what is wrong with the others.

A checked block has its drafts as the bytes of a pickle, which only the thread that stores them opens: so what another
process checked is passed on without being read on the way. An export has no secrets of deliveries: a line that says
nothing of one keeps what is stored under its id, if the rest of the address is the same.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from tidings.errors import TidingsError
from tidings.service.api.limits import decode_json
from tidings.service.delivery import SECRETS, keep_secret
from tidings.service.refusals import MAX_MISTAKES, RequestMistake, SubscriptionRefused, make_mistake
from tidings.service.subscription import SubscriptionDraft

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from tidings.service.checking import SubscriptionChecker

FIELDS = tuple(SubscriptionDraft.__dataclass_fields__)
"""The fields of a draft, in the order in which a checked block has their values."""


class ImportRules(NamedTuple):
    """What lines are checked by, beside the checker."""

    owner: str
    now: datetime
    depth: int
    filter_bytes: int | None
    deliveries: Mapping[str, Mapping[str, Any]] = {}
    """What is stored already, by id, where a line of the block may lack the secret of its delivery."""
    only: str | None = None
    """What the owner may see at all."""


class CheckedBlock(NamedTuple):
    """What became of a block: values of good drafts with None for other lines, mistakes by line, lines refused."""

    drafts: bytes
    mistakes: list[RequestMistake]
    refused: int


def check_block(checker: SubscriptionChecker, data: bytes, first: int, rules: ImportRules) -> CheckedBlock:
    """Check the lines of a block; blank lines are passed over."""
    rows: list[tuple[Any, ...] | None] = []
    mistakes: list[RequestMistake] = []
    refused = 0
    for number, line in enumerate(data.removesuffix(b"\n").split(b"\n"), first):
        rows.append(None)
        if not line or line.isspace():
            continue
        try:
            draft = _check_line(checker, line, rules)
        except TidingsError as problem:
            refused += 1
            if len(mistakes) < MAX_MISTAKES:
                mistakes += _locate(problem, line, number)
            continue
        rows[-1] = (
            draft.id,
            draft.kind,
            draft.text,
            draft.notation,
            draft.name,
            draft.mode,
            draft.horizon,
            draft.threshold,
            draft.delivery,
            draft.labels,
            draft.expires_at,
            draft.status,
        )
    return CheckedBlock(pickle.dumps(rows, 5), mistakes[:MAX_MISTAKES], refused)


def _check_line(checker: SubscriptionChecker, line: bytes, rules: ImportRules) -> SubscriptionDraft:
    body = decode_json(line, rules.depth, name="this line")
    if rules.deliveries and type(body) is dict and type(body.get("id")) is str and "delivery" in body:
        body["delivery"] = keep_secret(body["delivery"], rules.deliveries.get(body["id"]))
    owner, only, most = rules.owner, rules.only, rules.filter_bytes
    return checker.check(body, now=rules.now, owner=owner, only=only, filter_bytes=most, takes_expired=True)


def list_secretless(data: bytes) -> list[str]:
    """Return the ids of lines whose delivery could have a secret and says nothing of one.

    >>> list_secretless(b'{"id": "a", "delivery": {"transport": "webhook", "url": "https://example.org/"}}')
    ['a']
    """
    if b'"delivery"' not in data:
        return []
    return [id for line in data.split(b"\n") if b'"delivery"' in line and (id := _find_secretless(line)) is not None]


def _find_secretless(line: bytes) -> str | None:
    try:
        body = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    delivery = body.get("delivery") if type(body) is dict else None
    if type(delivery) is not dict or type(body.get("id")) is not str:
        return None
    transport = delivery.get("transport")
    secret = SECRETS.get(transport) if type(transport) is str else None
    return body["id"] if secret is not None and secret not in delivery else None


def _locate(problem: TidingsError, line: bytes, number: int) -> Iterator[RequestMistake]:
    """Yield what is wrong with a line, with its number and the subscription's id if it has one."""
    id = None
    try:
        body = orjson.loads(line)
        if type(body) is dict and type(body.get("id")) is str:
            id = f"{body['id']:.200}"
    except orjson.JSONDecodeError:
        pass
    errors = problem.errors if isinstance(problem, SubscriptionRefused) else ()
    for mistake in errors or (make_mistake(str(problem)),):
        yield RequestMistake(mistake.message, mistake.hint, mistake.at, mistake.length, mistake.field, number, id)


def open_drafts(block: CheckedBlock) -> Iterator[SubscriptionDraft | None]:
    """Yield the good drafts of a block, and None for each other line."""
    for values in pickle.loads(block.drafts):  # noqa: S301 - our own bytes
        yield None if values is None else SubscriptionDraft(**dict(zip(FIELDS, values, strict=True)))
