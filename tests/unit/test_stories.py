"""Stories of what once broke, each from beginning to end, as people met it: those of the library.

The others are in `tests/spark/test_stories.py`, and beside what they are about: a line of 50 MB in
`test_large_events.py`, sinks that are full, read-only or gone in `test_failures.py`, forks in `test_forks.py`.
"""

import pyarrow as pa
import pytest

import tidings as td
from tidings.errors import FilterWarning, KindConflict, SnapshotError

ADS = [{"make": "ford", "price": 8500, "year": 2016, "model": "focus"} for _ in range(483)]
ADS += [{"make": "ford", "price": 8500, "year": 2016, "model": 500} for _ in range(17)]


@pytest.mark.parametrize("kind", ["engine", "brute", "candidates-tree", "poset"])
@pytest.mark.parametrize("events", [ADS, pa.Table.from_pylist([{**ad, "model": str(ad["model"])} for ad in ADS])])
def test_eve_asks_for_a_number_where_models_are_text_and_nobody_else_hears_less(kind, events):
    searches = td.Matcher(kind)
    searches.add("ann", "make = 'ford' and price < 9000")
    searches.add("bob", "year >= 2015")
    before = [sorted(ids) for ids in searches.match_many(events).by_event()]
    searches.add("eve", "model > 5")
    matches = searches.match_many(events, on_error="collect")
    assert matches.dead_letters == ()
    assert [sorted(set(ids) - {"eve"}) for ids in matches.by_event()] == before == [["ann", "bob"]] * 500
    assert sum("eve" in ids for ids in matches.by_event()) == 17
    (mismatch,) = [mismatch for mismatch in searches.mismatches() if mismatch.attribute == "model"]
    assert (mismatch.mismatched, mismatch.subscriptions, mismatch.ids) == (483, 1, ("eve",))
    assert "asked as numbers by 1 subscription (eve)" in str(searches.explain())


def test_metres_of_a_declared_price_are_refused_and_nobody_else_hears_less():
    searches = td.Matcher(schema=td.Schema({"price": "number"}))
    searches.add("ann", "price < 9000")
    with pytest.raises(td.TidingsError, match=r"declared number without a unit.*write the number alone, or declare"):
        searches.add("eve", "price < 9000 m")
    with pytest.raises(KindConflict):
        searches.add("eve", td.parse("price < 9000 m"))
    assert searches.match({"price": 8500}) == ["ann"]


def test_an_event_is_bad_by_what_is_declared_and_by_nothing_else():
    schema = td.Schema({"price": "number"}, closed=False)
    events = [{"price": "cheap", "model": 1}, {"price": 1, "model": {"x": [1]}}, {"price": float("nan")}, 7]
    for filters in ([], ["price < 5"], ["model > 5", "model = 'x'", "price exists", "posted > 2024-01-01"]):
        searches = td.Matcher(schema=schema)
        searches.add_many(enumerate(filters))
        assert [letter.index for letter in searches.match_many(events, on_error="collect").dead_letters] == [0, 3]


@pytest.mark.parametrize("asked", ["a < 2", "a has (b = 1)", "a exists", "a = 'x'", "a near (1, 2) 5 km", "a.b.c = 1"])
def test_a_list_in_lists_in_lists_is_nobodys_but_who_asks_for_it(asked):
    deep = 1
    for _ in range(5000):
        deep = [deep]
    searches = td.Matcher()
    searches.add("ann", "price < 9000")
    searches.add("eve", asked)
    assert searches.match({"price": 1, "a": deep}) == (["ann", "eve"] if asked == "a exists" else ["ann"])


def test_a_damaged_snapshot_is_refused_and_never_answers(tmp_path):
    searches = td.Matcher()
    searches.add_many((f"s{at}", f"price < {at} and make = 'm{at % 7}'") for at in range(500))
    searches.remove("s7")
    searches.save(tmp_path)
    for path in sorted(tmp_path.glob("*.bin")):
        whole = path.read_bytes()
        for at in range(70, len(whole), max(1, len(whole) // 25)):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
            with pytest.raises(SnapshotError, match=path.name):
                td.Matcher.open(tmp_path)
        path.write_bytes(whole)
    assert len(td.Matcher.open(tmp_path)) == 499


def test_a_refused_edit_leaves_the_edit_before_it_in_force_however_many_are_seen_at_once(tmp_path):
    changes = [
        '{"id": "ann", "filter": "price < 1"}\n{"id": "bob", "filter": "price > 1"}\n',
        '{"id": "ann", "filter": "price < 2"}\n{"id": "bob", "filter": null}\n',
        '{"id": "ann", "filter": "price <<"}\n{"id": "bob", "filter": "price >>"}\n',
    ]
    kept = []
    for one_by_one in (True, False):
        feed = tmp_path / f"feed {one_by_one}"
        feed.mkdir()
        live = td.Live(tmp_path / f"live {one_by_one}", follow=feed)
        for number, text in enumerate(changes):
            (feed / f"{number}.jsonl").write_text(text)
            if one_by_one:
                live.sync()
        live.sync()
        matcher = live.open(live.version.number)
        kept.append({id: td.render(matcher[id]) for id in matcher})
    assert kept == [{"ann": "price < 2"}] * 2


def test_a_list_where_a_pattern_joins_passes_that_pattern_by_and_no_other():
    attacks = td.Detector()
    attacks.add("joined", "a = kind = 'a' and ip = $x\nb = kind = 'b' and ip = $x\na ; b")
    attacks.add("plain", "a = kind = 'a'\nb = kind = 'b'\na ; b")
    events = [{"id": 1, "time": 1, "kind": "a", "ip": ["1", "2"]}, {"id": 2, "time": 2, "kind": "b", "ip": "1"}]
    detections = attacks.detect_many(events, on_error="collect")
    assert [(match.pattern, match.events) for match in detections] == [("plain", (1, 2))]
    assert detections.dead_letters == ()


def test_habits_of_sql_are_caught_at_the_door():
    with pytest.raises(td.FilterError, match=r"\*"):
        td.parse("make like 'fo%'")
    with pytest.warns(FilterWarning, match="ford"):
        td.parse("make = ford")
    with pytest.raises(td.FilterError, match="2024-01-01"):
        td.parse("posted > '1 Jan 2024'", schema=td.Schema({"posted": "time"}))
    with pytest.raises(td.FilterError, match="9000"):
        td.parse("price_to=9,000", notation="url")
