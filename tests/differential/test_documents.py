"""Whole documents in Spark's workers are matched as a matcher matches what `json.loads` gives for their text."""

import json
import math
from datetime import date, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

pytest.importorskip("pyspark", reason="needs tidings[spark]")

import tidings as td
from tidings.errors import BadEvent
from tidings.matcher.loading.documents import parse_document
from tidings.spark.match.worker_matcher import DocumentPlaces, MatchStep, StepColumns, TaggedRows, build_lists
from tidings.spark.subscriptions.worker_store import PackedStore
from tidings.testing.strategies import NOW, cases


def to_text(event):
    """Return an event as a document; what JSON has no word for is text, or left out."""
    return json.dumps(to_plain(event))


def to_plain(value):
    match value:
        case dict():
            return {str(name): to_plain(part) for name, part in value.items()}
        case list() | tuple() | set() | frozenset():
            return [to_plain(part) for part in value]
        case datetime() | date():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case None | bool() | int() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case _:
            return None


ODD = st.sampled_from([None, True, "x", "", -1, 10**30, 1e300, [], [[1]], {"lon": 500, "lat": 1}, {"a": {"b": 1}}])


@given(cases(), st.lists(ODD, max_size=2), st.booleans())
@examples(150)
def test_a_document_matches_what_a_matcher_says_of_it(case, odd, has_payload):
    matcher = td.Matcher(**case.world.keywords)
    matcher.add_many([(f"s{number}", tree) for number, tree in enumerate(case.filters)])
    events = [*case.events, *(dict.fromkeys(case.world.slots, value) for value in odd)]
    texts = [to_text({**event, **({"data_base64": "AA=="} if has_payload else {})}) for event in events]
    texts = [text for text in texts if isinstance(parse_document(text), dict)]  # a source refuses the others
    ids = pa.array([f"e{number}" for number in range(len(texts))])
    rows = pa.RecordBatch.from_arrays([pa.array(texts, pa.string()), ids], ["document", "id"])
    columns = StepColumns((0, 1), ("document", "id"), (1,), NOW, documents=DocumentPlaces(0))
    build = TaggedRows(build_lists, document="document")
    step = MatchStep(PackedStore.of(matcher), build, columns, pa.string())
    matches, letters = {}, {}
    for row in (row for batch in step(iter([rows])) for row in zip(*batch.to_pydict().values(), strict=True)):
        event, ids_found, reason, raw, *_ = row
        if ids_found is not None:
            matches[event] = sorted(ids_found)
        if reason is not None:
            letters[event] = (reason, raw)
    for number, text in enumerate(texts):
        event = json.loads(text)
        event.pop("data_base64", None)
        expected, reason = match_slowly(matcher, event)
        assert matches.get(f"e{number}", []) == expected
        assert letters.get(f"e{number}") == (None if reason is None else (reason, text))


def match_slowly(matcher, event):
    """Return the ids, or why the event cannot be read."""
    try:
        return sorted(matcher.match(event, now=NOW)), None
    except BadEvent as problem:
        return [], str(problem)
