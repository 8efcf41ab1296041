"""Each client of the brokers is told the same, in its own words; tests/spark/test_event_topics.py asks real ones."""

from pathlib import Path
from typing import get_args

import pytest

pytest.importorskip("pydantic", reason="needs tidings[service]")
pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tidings.configuration.environment import ExpandedText, Variables
from tidings.configuration.value_kinds import FileContext
from tidings.service.events.kafka_clients import LOGIN_MODULES, build_client_settings, build_spark_options
from tidings.service.settings import EventSettings, LoginMechanism, ServiceSettings
from tidings.spark.pipeline.config.value_kinds import OPTIONS
from tidings.spark.pipeline.service_pipeline import build_source

PLACE = {"to": "kafka", "servers": "b:1", "topic": "ads"}
LOGIN = {"username": "ann", "password": ExpandedText("swordfish", "${PASSWORD}")}
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"

SAME = [
    ({}, {"security.protocol": "PLAINTEXT"}, {"kafka.security.protocol": "PLAINTEXT"}),
    (
        {"protocol": "SSL", "ca": "/etc/ca.pem"},
        {"security.protocol": "SSL", "ssl.ca.location": "/etc/ca.pem"},
        {
            "kafka.security.protocol": "SSL",
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.location": "/etc/ca.pem",
        },
    ),
    (
        {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-256", **LOGIN},
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": "ann",
            "sasl.password": "swordfish",
        },
        {
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "SCRAM-SHA-256",
            "kafka.sasl.jaas.config": f'{SCRAM} username="ann" password="swordfish";',
        },
    ),
]


@pytest.mark.parametrize(("keys", "client", "spark"), SAME, ids=["plain", "encrypted", "login"])
def test_both_clients_are_told_the_same(keys, client, spark):
    events = EventSettings(**PLACE, **keys)
    assert build_client_settings(events) == {"bootstrap.servers": "b:1", **client}
    assert build_spark_options(events) == spark
    assert spark.items() <= build_source(ServiceSettings(events=events)).options.items()


def test_a_quote_in_a_password_ends_nothing():
    events = EventSettings(**PLACE, protocol="SASL_SSL", username="a", password='x"; y\\\n')
    login = build_spark_options(events)["kafka.sasl.jaas.config"]
    assert login.endswith('required username="a" password="x\\042; y\\134\\012";')


def test_every_mechanism_has_its_module():
    assert [*LOGIN_MODULES] == [*get_args(LoginMechanism)]


def test_a_pipelines_own_source_could_be_given_the_same_options():
    events = EventSettings(**PLACE, protocol="SASL_SSL", ca="/etc/ca.pem", **LOGIN)
    options = build_spark_options(events)
    assert OPTIONS.convert(dict.fromkeys(options, True), FileContext(Path(), Variables({}))).keys() == options.keys()


def test_the_password_is_shown_by_no_settings():
    events = EventSettings(**PLACE, protocol="SASL_SSL", username="ann", password="swordfish")
    settings = ServiceSettings(events=events)
    assert "swordfish" not in repr(settings) + repr(build_source(settings))
