"""Archives name events by their numbers, however they came."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidings.patterns.run.event_archive import EventArchive, EventRecords, concat_records

BATCHES = st.lists(st.tuples(st.booleans(), st.integers(0, 4)), max_size=5)


def batch_of(first, size, *, arrow):
    ids = [f"e{first + place}" for place in range(size)]
    fields = [{"n": first + place} for place in range(size)]
    return (
        EventRecords(pa.array(ids, pa.string()), pa.table({"n": [row["n"] for row in fields]}))
        if arrow
        else EventRecords(ids, fields)
    )


@given(BATCHES, st.data())
def test_events_are_called_as_they_came(batches, data):
    archive, first = EventArchive(), 0
    for arrow, size in batches:
        archive, first = archive.add(first, batch_of(first, size, arrow=arrow)), first + size
    assert len(archive) == first
    for _ in range(2):
        numbers = sorted({number for chunk, _ in archive.chunks for number in chunk.tolist()})
        asked = data.draw(st.lists(st.sampled_from(numbers), max_size=6)) if numbers else []
        rows = archive.select(np.array(asked, np.int64)).to_lists()
        assert rows.ids == [f"e{number}" for number in asked]
        assert not asked or rows.fields == [{"n": number} for number in asked]
        archive = archive.keep(np.unique(np.array(asked, np.int64)))
        assert len(archive) == len(set(asked))


def test_ids_of_several_kinds_are_joined_as_lists():
    records = concat_records([EventRecords(pa.array([1])), EventRecords(pa.array(["x"])), EventRecords([None])])
    assert records.ids == [1, "x", None]
    assert isinstance(concat_records([EventRecords(pa.array([1])), EventRecords(pa.array([2]))]).ids, pa.Array)
