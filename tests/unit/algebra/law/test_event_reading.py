"""Readers of events are as many as the events need, however many names filters have."""

import tidings as td
from tidings.algebra.law import event_reading


def test_arrays_in_arrays_have_readers_only_where_an_event_has_records(monkeypatch):
    made, build = [], event_reading.AttributeReader.__init__

    def count(self, *arguments):
        made.append(self)
        build(self, *arguments)

    monkeypatch.setattr(event_reading.AttributeReader, "__init__", count)
    text = "a = 1"
    for level in range(40):  # a reader for each way to come to a name would be 2**40
        text = f"items has (x{level} = 1 or y = 2 and {text})"
    matcher = td.Matcher()
    matcher.add("nested", text)
    assert matcher.match({"items": [{"x39": 1}]}) == ["nested"]
    assert matcher.match({"items": [{"y": 2, "items": [{"x38": 1}]}]}) == ["nested"]
    assert matcher.match({"items": [{"y": 2, "items": [{"x37": 1}]}]}) == []
    assert len(made) < 10
