"""Without the jars, tests of Kafka are skipped with a hint, and fail in the gate."""

import pytest
from tests.kafka.fixture import skip_without_jars


def test_without_jars_the_tests_are_skipped_and_say_what_fetches_them(tmp_path):
    with pytest.raises(pytest.skip.Exception, match=r"no Kafka broker.*`make test` or `tools/kafka-jars`"):
        skip_without_jars(tmp_path, tmp_path, environ={})


def test_without_jars_the_gate_fails(tmp_path):
    with pytest.raises(pytest.fail.Exception, match="no Kafka broker in the gate"):
        skip_without_jars(tmp_path, tmp_path, environ={"CI": "true"})


def test_half_of_the_jars_are_not_the_jars(tmp_path):
    (tmp_path / "broker").mkdir()
    (tmp_path / "broker" / "kafka.jar").touch()
    with pytest.raises(pytest.skip.Exception):
        skip_without_jars(tmp_path / "broker", tmp_path / "connector", environ={})
