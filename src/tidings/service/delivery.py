"""Where matches go: the settings of a subscription's delivery, checked when they are stored.

Each transport has its options; keys that it does not have are refused. Options in `SECRETS` are written and never
read: no answer, no export and no error of the API has them. Whether a webhook's host may be called (private addresses
may not) is decided when it is called, since names move. A `file` is for its owner alone: the notifier will write it
below `deliveries/OWNER/` in the folder of the service, and nowhere else.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from tidings.concepts import did_you_mean
from tidings.errors import TidingsError
from tidings.service.schedules import IMMEDIATE, check_schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SECRETS: Mapping[str, str] = {"webhook": "secret", "apprise": "url"}
"""The option of a transport that is written and never read."""

GROUPS = ("subscription", "owner")
"""What is delivered together: the matches of one subscription, or of all subscriptions of the owner."""

MAX_OPTION = 2_000
"""Characters of an option at most."""

MAX_FILE_NAME = 255
"""Bytes of a name in a file's path: what file systems take."""

_ADDRESS = re.compile(r"[^@\s\"<>]{1,64}@[^@\s\"<>]{1,255}")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")

Complaint: TypeAlias = "tuple[str, str]"
"""The path of an option below `delivery`, and what is wrong with it."""


class DeliveryOption(NamedTuple):
    """An option of a transport: its check raises `TidingsError`, and the message never quotes a secret."""

    check: Callable[[str], None]
    required: bool = True


def check_delivery(value: Any, *, events_topic: str | None = None) -> tuple[dict[str, Any], list[Complaint]]:
    """Return the settings of a delivery with their defaults, and all that is wrong with them.

    `events_topic` is where the service's own events are: matches that went there would be events, and match again.

    >>> check_delivery({"transport": "stream"})[0]
    {'transport': 'stream', 'schedule': 'immediate', 'group': 'subscription'}
    """
    if type(value) is not dict:
        return {}, [("", "`delivery` is an object with a `transport`")]
    transport = value.get("transport")
    options = TRANSPORTS.get(transport) if isinstance(transport, str) else None
    if options is None:
        hint = did_you_mean(transport, TRANSPORTS) if isinstance(transport, str) else ""
        return {}, [("transport", f"`transport` is one of {_quote(TRANSPORTS)}{hint}")]
    checked: dict[str, Any] = {"transport": transport}
    complaints: list[Complaint] = []
    names = ("transport", *options, "schedule", "group")
    for name in value:
        if name not in names:
            hint = did_you_mean(name, names) or f"; `{transport}` has {_quote(names)}"
            complaints.append((f"{name:.80}", f"unknown key `{name:.80}`{hint}"))
    for name, option in options.items():
        _check_option(name, option, value.get(name), checked, complaints)
    if events_topic is not None and checked.get("topic") == events_topic:
        complaints.append(("topic", "`topic` is the one of the service's events; matches go to another"))
    try:
        checked["schedule"] = check_schedule(value.get("schedule", IMMEDIATE))
    except TidingsError as problem:
        complaints.append(("schedule", str(problem)))
    checked["group"] = value.get("group", GROUPS[0])
    if checked["group"] not in GROUPS:
        complaints.append(("group", f"`group` is one of {_quote(GROUPS)}"))
    return checked, complaints


def _check_option(
    name: str, option: DeliveryOption, value: Any, checked: dict[str, Any], complaints: list[Complaint]
) -> None:
    if value is None:
        if option.required:
            complaints.append((name, f"`{name}` is missing"))
        return
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_OPTION or not value.isprintable():
        complaints.append((name, f"`{name}` is a text of 1 to {MAX_OPTION:,} printable characters"))
        return
    try:
        option.check(value)
    except TidingsError as problem:
        complaints.append((name, str(problem)))
        return
    checked[name] = value


def hide_secrets(delivery: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the settings without the option that is never read."""
    if delivery is None:
        return None
    secret = SECRETS.get(delivery["transport"])
    return {name: value for name, value in delivery.items() if name != secret}


def keep_secret(value: Any, before: Mapping[str, Any] | None) -> Any:
    """Return a delivery as it is sent, with the secret of the one before if it says nothing of it.

    Only where the rest of what it is sent to is the same: a secret must not follow to another address.
    """
    if type(value) is not dict or before is None or value.get("transport") != before["transport"]:
        return value
    secret = SECRETS.get(before["transport"])
    if secret is None or secret in value or secret not in before:
        return value
    others = [name for name in TRANSPORTS[before["transport"]] if name != secret]
    same = all(value.get(name) == before.get(name) for name in others)
    return {**value, secret: before[secret]} if same else value


def names_secret(change: Any, before: Mapping[str, Any] | None) -> bool:
    """Tell whether a change of a delivery says what becomes of its secret."""
    return isinstance(change, dict) and before is not None and SECRETS.get(before["transport"]) in change


# Options ------------------------------------------------------------------------------------------------


def _check_url(text: str) -> None:
    try:
        url = urlsplit(text)
        port_is_fine = url.port is None or url.port > 0
    except ValueError:
        url, port_is_fine = urlsplit(""), False
    if url.scheme not in ("http", "https") or not url.hostname or not port_is_fine or " " in text:
        msg = "`url` is an address such as `https://example.org/hook`"
        raise TidingsError(msg)
    if url.username is not None or url.password is not None:
        msg = "`url` has no user and password in it; `secret` signs what is sent"
        raise TidingsError(msg)


def _check_secret(text: str) -> None:
    try:
        raw = base64.b64decode(text.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if not text.startswith("whsec_") or not 24 <= len(raw) <= 64:
        msg = "`secret` is `whsec_` and the base64 of 24 to 64 bytes, as Standard Webhooks has it"
        raise TidingsError(msg)


def _check_address(text: str) -> None:
    if not _ADDRESS.fullmatch(text):
        msg = f"`to` is an address such as `ada@example.org`, not `{text:.80}`"
        raise TidingsError(msg)


def _check_path(text: str) -> None:
    if "\\" in text or ":" in text or not all(map(_is_file_name, text.split("/"))):
        msg = "`path` is a name within the owner's folder of deliveries, such as `mine/matches.jsonl`"
        raise TidingsError(msg)


def _is_file_name(part: str) -> bool:
    return part not in ("", ".", "..") and len(part.encode()) <= MAX_FILE_NAME


def _check_topic(text: str) -> None:
    if not _TOPIC.fullmatch(text) or text in (".", ".."):
        msg = f"`topic` is 1 to 249 letters, digits, `.`, `_` and `-`, not `{text:.80}`"
        raise TidingsError(msg)


def _check_apprise(text: str) -> None:
    if "://" not in text or not text.partition("://")[0].isalnum():
        msg = "`url` is a URL that Apprise knows, such as `ntfy://topic`"
        raise TidingsError(msg)


def _quote(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)


TRANSPORTS: dict[str, dict[str, DeliveryOption]] = {
    "webhook": {"url": DeliveryOption(_check_url), "secret": DeliveryOption(_check_secret, required=False)},
    "email": {"to": DeliveryOption(_check_address)},
    "file": {"path": DeliveryOption(_check_path, required=False)},
    "kafka": {"topic": DeliveryOption(_check_topic, required=False)},
    "stream": {},
    "apprise": {"url": DeliveryOption(_check_apprise)},
}
"""The transports and their options."""
