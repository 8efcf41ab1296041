"""Paths of `pipeline.toml` are local unless they name another file system."""

from pathlib import Path

import pytest

from tidings.configuration.local_paths import to_local_path


@pytest.mark.parametrize("path", ["/x/y", "file:/x/y", "file:///x/y"])
def test_bare_paths_and_file_addresses_are_local(path):
    assert to_local_path(path) == Path("/x/y")


@pytest.mark.parametrize("path", ["a b%20c {x}", "2024-01-01T00:00", "data.csv"])
def test_any_other_text_is_a_name_in_the_working_folder(path):
    assert to_local_path(path) == Path.cwd() / path


@pytest.mark.parametrize("path", ["hdfs://host/x", "s3a://bucket/x", "dbfs:/x"])
def test_other_file_systems_are_not_local(path):
    assert to_local_path(path) is None
