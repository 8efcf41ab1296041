"""Mistakes in a sink's settings are refused when it is opened."""

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tidings.errors import SinkError
from tidings.spark.pipeline.config.settings import SinkSettings
from tidings.spark.pipeline.sinks.sinks import open_sink

KEY = ("subscription", "event")


@pytest.fixture
def sink(tmp_path):
    return lambda kind, name="out", **about: SinkSettings(kind=kind, path=str(tmp_path / name), **about)


def test_a_path_that_is_a_file_is_a_clear_error(tmp_path, sink):
    (tmp_path / "out").write_text("")
    with pytest.raises(SinkError, match="cannot be used: a file stands where a folder should be"):
        open_sink(sink("json"), key=KEY)


def test_options_of_a_sink_are_in_no_repr():
    secret = {"kafka.sasl.jaas.config": "hush"}
    output = open_sink(SinkSettings(kind="kafka", servers="h:1", topic="t", options=secret), key=KEY)
    assert "hush" not in repr(output)
    assert "'t'" in repr(output)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("no_such_module:f", "cannot be imported: ModuleNotFoundError: No module named 'no_such_module'"),
        ("json:nothing", "is no function: `json` has nothing of that name"),
        ("json", "write `package.module:name`"),
        ("json:", "write `package.module:name`"),
    ],
)
def test_a_function_that_is_not_there_is_refused_when_the_sink_is_opened(name, why):
    with pytest.raises(SinkError, match=why.replace("`", ".").replace("(", ".")):
        open_sink(SinkSettings(kind="python", function=name), key=KEY)


def test_a_sink_without_what_it_needs_is_refused():
    with pytest.raises(SinkError, match="a sink of kind `json` needs `path`"):
        open_sink(SinkSettings(kind="json"), key=KEY)
