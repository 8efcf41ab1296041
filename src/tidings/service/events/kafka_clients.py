"""The brokers of `[events]` in the words of both clients: librdkafka's, which the API has, and Java's, which Spark has.

A user says once how to reach the brokers and who asks (`protocol`, `mechanism`, `username`, `password`, `ca`). The two
clients agree on the names of the first two alone: to Java a login is a line of JAAS, and a file of certificates a
trust store. What comes out holds the password: never print or log it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidings.service.settings import EventSettings, LoginMechanism

LOGIN, ENCRYPTION = "SASL", "SSL"
"""The parts of a protocol's name that say what it has."""

LOGIN_MODULES: dict[LoginMechanism, str] = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
"""The class of Kafka's Java client that logs in by a mechanism."""

NEEDED_PARTS = {"mechanism": LOGIN, "username": LOGIN, "password": LOGIN, "ca": ENCRYPTION}
"""What a protocol must have for a key of `[events]` to mean something."""

_ESCAPED = re.compile(r'[\x00-\x1f"\\]')


def has_part(protocol: str, part: str) -> bool:
    """Tell whether a protocol has a login, or encryption.

    >>> has_part("SASL_PLAINTEXT", LOGIN), has_part("SASL_PLAINTEXT", ENCRYPTION)
    (True, False)
    """
    return part in protocol.split("_")


def build_client_settings(events: EventSettings) -> dict[str, str]:
    """Return the settings of a producer or consumer of `confluent_kafka`."""
    settings: dict[str, str] = {"bootstrap.servers": events.servers or "", "security.protocol": events.protocol}
    if has_part(events.protocol, LOGIN):
        settings["sasl.mechanism"] = events.mechanism
        settings |= {"sasl.username": events.username or "", "sasl.password": events.password or ""}
    if events.ca:
        settings["ssl.ca.location"] = events.ca
    return settings


def build_spark_options(events: EventSettings) -> dict[str, str]:
    """Return the options of Spark's Kafka reader, beside those for the brokers and the topic."""
    options: dict[str, str] = {"kafka.security.protocol": events.protocol}
    if has_part(events.protocol, LOGIN):
        options["kafka.sasl.mechanism"] = events.mechanism
        options["kafka.sasl.jaas.config"] = _write_login(events)
    if events.ca:
        options |= {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.location": events.ca}
    return options


def _write_login(events: EventSettings) -> str:
    names = {"username": events.username or "", "password": events.password or ""}
    words = [f"{name}={_quote(value)}" for name, value in names.items()]
    return f"{' '.join((LOGIN_MODULES[events.mechanism], 'required', *words))};"


def _quote(text: str) -> str:
    r"""Return a text as JAAS has it: Java's StreamTokenizer reads escapes as C does, and octal ones are for all.

    >>> print(_quote('say "no"'))
    "say \042no\042"
    """
    escaped = _ESCAPED.sub(lambda match: rf"\{ord(match[0]):03o}", text)
    return f'"{escaped}"'
