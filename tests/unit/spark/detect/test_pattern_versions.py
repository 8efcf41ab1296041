"""Versions of patterns in a folder: each is what was put into it, however a reader came there."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tidings.errors import CheckpointError
from tidings.matcher.live.claims import Claim, settle
from tidings.spark.detect.followed.pattern_versions import FollowedPattern, PatternVersion, PatternVersions

NAMES = st.sampled_from("abcdef")
STEPS = st.lists(st.tuples(st.lists(st.tuples(NAMES, st.integers(0, 3)), max_size=3), st.sets(NAMES)), max_size=12)


def make_pattern(name, since=0):
    tree = {"filters": [{"name": "a", "filter": {"attr": "kind", "op": "=", "value": "a"}}], "pattern": {"step": "a"}}
    return FollowedPattern(name, tree, "restart", since)


def move(patterns, changes):
    """Return what a reader of these patterns has after changes."""
    patterns = {} if changes.all else dict(patterns)
    for name in changes.removed:
        patterns.pop(name, None)
    return patterns | {pattern.name: pattern for pattern in changes.patterns}


@examples(60)
@given(STEPS)
def test_a_reader_of_any_version_comes_to_any_later_one(tmp_path_factory, steps):
    versions = PatternVersions(tmp_path_factory.mktemp("versions"))
    version, expected = PatternVersion(), [{}]
    for put, removed in steps:
        patterns = list({name: make_pattern(name, since) for name, since in put}.values())
        removed = sorted(removed - {pattern.name for pattern in patterns})
        version = versions.write(version, patterns, removed, most_changes=4)
        rest = {name: pattern for name, pattern in expected[-1].items() if name not in removed}
        expected.append(rest | {pattern.name: pattern for pattern in patterns})
        assert dict(version.patterns) == expected[-1]
    for number, patterns in enumerate(expected):
        assert dict(versions.read(number).patterns) == patterns
        for since in range(number + 1):
            assert move(expected[since], versions.read_changes(number, since)) == patterns


def test_versions_that_no_claim_needs_are_removed_and_those_that_one_needs_stay(tmp_path):
    versions, version = PatternVersions(tmp_path), PatternVersion()
    model = versions.write_model(b"a model")
    for number in range(40):
        version = versions.write(version, [make_pattern(f"p{number % 3}", number)], model=model, most_changes=4)
        if number in (20, 30):
            settle(tmp_path, "patterns", number, claim=Claim(version.number, {}), keep=9)
    kept = versions.read(21).patterns, versions.read(31).patterns, versions.read(40).patterns
    versions.prune()
    assert (versions.read(21).patterns, versions.read(31).patterns, versions.read(40).patterns) == kept
    assert versions.read_model(model) == b"a model"
    with pytest.raises(CheckpointError, match="cannot be read"):
        versions.read(5)


def test_an_altered_version_is_refused(tmp_path):
    versions = PatternVersions(tmp_path)
    versions.write(PatternVersion(), [make_pattern("a")])
    (path,) = tmp_path.glob("versions/*.json")
    table = json.loads(path.read_text())
    table["put"][0]["mode"] = "any"
    path.write_text(json.dumps(table))
    with pytest.raises(CheckpointError, match="is altered"):
        versions.read(1)
