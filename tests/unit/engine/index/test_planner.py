"""Which literals find a row."""

import pyarrow as pa

import tidings as td


def ways(matcher):
    [segment] = matcher.explain().to_dict()["segments"]
    return {path["kind"] for path in segment["paths"]}


def test_text_patterns_are_keys_and_never_hulls():
    # An event's text satisfies several patterns, so a hull of their ids would hold for nearly every event.
    matcher = td.Matcher()
    matcher.add_many([(f"s{n}", f"title contains 'word{n} '") for n in range(20_000)])
    assert ways(matcher) == {"key"}


def test_ranges_are_packed_into_hulls():
    matcher = td.Matcher()
    low = list(range(20_000))
    matcher.add_many(pa.table({"id": low, "a_from": low, "a_to": [n + 50 for n in low]}))
    assert ways(matcher) == {"hull"}
