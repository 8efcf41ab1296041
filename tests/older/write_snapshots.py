"""Write the snapshots of subscriptions: a matcher's, format 4 and 1, and a folder of versions, format 5.

Written by version 0.1.0 at commit f057d71; kept so that what was written can be rebuilt; not run by tests.
In that commit's checkout: PYTHONPATH=src python -m tests.older.write_snapshots
"""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.older.forms import HERE, pack, write

import tidings as td

FOLDER = HERE / "snapshots"
NOW = datetime(2024, 7, 1, 12, tzinfo=UTC)

SCHEMA = {
    "make": "text",
    "model": "string",
    "price": "number",
    "list_price": "number",
    "year": "number",
    "sold": "bool",
    "posted": "time",
    "tags": "several text",
    "rooms": "several number",
    "spot": "place",
    "ip": "ip",
    "whatever": "any",
    "extra.*": "number",
}

ONTOLOGY = {
    "trees": {
        "product": {
            "outline": "product\n  computer = PC\n    laptop = notebook = 笔记本电脑\n    desktop = 台式机\n"
            "  accessory\n    hard disk = HDD\n"
        },
        "animal": {"parents": {"cat": ["pet", "mammal"], "dog": ["pet", "mammal"], "pet": [], "mammal": []}},
    },
    "attribute_trees": {"contact": {"outline": "contact\n  phone = seller.phone\n  email = seller.email\n"}},
    "attributes": {
        "target": "concept product",
        "graduated": "time",
        "weight": {"kind": "number", "unit": "kg"},
        "cost": {"unit": "USD", "unit_from": "currency", "synonyms": ["fee"]},
    },
    "units": {"crate": "12 kg"},
    "currencies": {"base": "USD", "rates": {"EUR": 1.08, "GBP": 1.27}},
    "derived": {"experience": "now - graduated", "saving": "list_price - price"},
}

SQUARE = [[[8.0, 47.0], [9.0, 47.0], [9.0, 48.0], [8.0, 48.0], [8.0, 47.0]]]
REGIONS = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "properties": {"name": "downtown"},
            "geometry": {"type": "Polygon", "coordinates": SQUARE},
        }
    ],
}

HOLED = "POLYGON((0 0, 9 0, 9 9, 0 9, 0 0), (3 3, 6 3, 6 6, 3 6, 3 3))"
ISLANDS = "MULTIPOLYGON(((20 20, 22 20, 22 22, 20 20)), ((170 -10, -170 -10, -170 10, 170 10, 170 -10)))"

FILTERS = {
    "number": [
        "price = 8500",
        "price < 9000",
        "price in [2000 .. 5000)",
        "price in (8000 .. 9000]",
        "price between 100 and 200.5",
        "price in (1, 5, 8500)",
        "price not in (1, 5)",
        "price != 8500",
        f"year = {2**53 + 1}",
        f"n > {2**53}",
        "n in (1, 2.5, -3)",
        "not (n in [1 .. 5))",
        "all(rooms) > 2",
        "none(rooms) > 4",
        "any(rooms) != 3",
        "extra.doors >= 4",
    ],
    "text": [
        "make = 'ford'",
        "make in ('ford', 'opel')",
        "make < 'm'",
        "make = 'FORD' ignoring case",
        "make in ('Opel', 'straße') ignoring case",
        "model != 'focus'",
        "name starts with 'Fo'",
        "name ends with 'rd'",
        "name contains 'or'",
        "name contains 'OR' ignoring case",
        "name like 'F?r*'",
        "name like 'f*d' ignoring case",
        "name not like '*x*'",
        "name matches /^f[aeiou]r/",
        "name matches /F(or|ia)[dt]$/",
        "tags contains 'blue' and tags ends with 'red'",
        "none(tags) starts with 'old'",
        "whatever = 'line\\nbreak \\u2028 and ünïcode'",
    ],
    "concept": [
        "target is a 'computer'",
        "target is a 'PC'",
        "target = 'laptop'",
        "target is a 'accessory' or target is a 'desktop'",
        "pet is a 'mammal'",
        "none(target) is a 'computer'",
        "contact exists",
        "contact contains '@'",
    ],
    "place": [
        f"spot within {HOLED}",
        f"spot within {ISLANDS}",
        "spot within @downtown",
        "spot near (8.5, 47.4) 5 km",
        "spot near (0, 0) 3 mi",
        "spot = (8.5, 47.4)",
        "not (spot within @downtown)",
        f"where within {HOLED} and where near (1, 1) 200 km",
    ],
    "bool": ["sold = true", "sold != true", "flag = false"],
    "time": [
        "posted > 2024-01-01",
        "posted in [2024-06-01 .. 2024-07-01)",
        "posted = 2024-06-30T12:00:00Z",
        "age(posted) < 7 days",
        "age(posted) > 30 days",
        "seen >= 2023-01-01T00:00:00+02:00",
        "age(seen) between 1 h and 2 days",
        "experience >= 5 years",
    ],
    "unit": [
        "weight > 500 g",
        "weight <= 2 crate",
        "cost < 400 EUR",
        "cost in [100 .. 300]",
        "size >= 40 GB",
        "size < 2 TB",
        "size > 5",
        "length > 5 km and length > 5",
    ],
    "address": [
        "ip in 10.0.0.0/8",
        "ip in (192.168.0.0/16, 2001:db8::/32)",
        "ip = 10.0.0.1",
        "host in 10.1.0.0/16",
        "not (host in ::/0)",
    ],
    "compare": [
        "price < `list_price`",
        "price >= `year`",
        "a = `b`",
        "a < `b`",
        "a != `b`",
        "price < `whatever`",
        "saving > 1000",
        "a <= `b`",
        "a > `b`",
    ],
    "has": [
        "items has (sku = 'x' and qty > 2)",
        "items has (not (sku = 'x'))",
        "none(items) has (qty > 4)",
        "items.sku = 'x' and items.qty > 2",
        "items has (parts has (no = 1 or no = 2))",
    ],
    "there": ["a exists", "a is null", "not (price exists)", "not (a is null) and make exists", "true", "false"],
    "tree": [
        "make = 'ford' or price < 100",
        "(make = 'ford' or make = 'opel') and (price < 9000 or year > 2015) and not (sold = true)",
        " and ".join(f"(n = {n} or price = {n} or name = '{n}' or make = 'ford')" for n in range(5)),
        " or ".join(f"(make = 'm{n}' and price > {n} and model starts with '{n}')" for n in range(12)),
        "not (make = 'ford' and (price > 5000 or spot within @downtown) and not (tags = 'red' or ip in 10.0.0.0/8))",
        "(name contains 'or' or target is a 'computer' or a < `b`) and (posted > 2024-01-01 or size > 1 GB)",
    ],
}
"""What the filters ask, by kind; an id is the kind and a number."""

EVENTS = [
    {},
    {"make": "ford", "price": 8500, "list_price": 9900, "year": 2016, "model": "focus", "sold": False},
    {"make": "FORD", "price": "8500", "list_price": 8000, "model": "mondeo", "sold": True},
    {"make": "opel", "price": 1, "year": 2**53 + 1, "whatever": 3},
    {"make": "OPEL", "price": 150, "year": 2**53, "whatever": "line\nbreak \u2028 and ünïcode"},
    {"make": "STRASSE", "price": 200.5, "whatever": "1000"},
    {"make": "m3", "price": 4, "model": "3 doors", "extra": {"doors": 4}},
    {"make": "m11", "price": 2000, "model": "11", "extra": {"doors": "3"}},
    {"make": "zonda", "price": 5000, "n": 2.5},
    {"n": 2**53 + 1, "name": "0", "flag": False},
    {"n": [1, -3], "name": ["Ford", "fiat"], "flag": "true"},
    {"n": td.Range(2, 9), "name": "Fiat"},
    {"n": "7", "name": "ford"},
    {"n": "many", "name": 5},
    {"name": "xFORDx", "tags": ["light blue", "dark red"]},
    {"name": "Fort", "tags": ["old red"], "rooms": [3, 4]},
    {"rooms": [3, 3], "tags": []},
    {"rooms": [1, 5]},
    {"rooms": td.Range(3, 4)},
    {"target": "notebook", "seller": {"phone": "12"}},
    {"target": "台式机", "seller": {"email": "a@b.ch"}, "pet": "cat"},
    {"target": "HDD", "pet": "fish"},
    {"target": "abacus", "email": "none"},
    {"spot": [8.5, 47.4], "make": "ford", "price": 6000},
    {"spot": {"lon": 8.52, "lat": 47.41}},
    {"spot": [1, 1], "where": [1, 1]},
    {"spot": [4, 4], "where": (4, 4)},
    {"spot": [0.01, 0.01], "where": [[4, 4], [2, 2]]},
    {"spot": [21.5, 20.5], "ip": "10.0.0.1"},
    {"spot": [-175, 0], "ip": "192.168.7.7", "host": "10.1.2.3"},
    {"ip": "::ffff:10.1.1.1", "host": "nobody"},
    {"ip": "2001:db8::1", "host": ["::1", "10.9.9.9"]},
    {"posted": "2024-06-30T12:00:00Z", "seen": "2024-07-01T00:00:00Z", "graduated": "2015-06-01"},
    {"posted": "2024-05-01", "seen": "2023-06-01", "graduated": "2022-06-01"},
    {"posted": datetime(2024, 7, 2, tzinfo=UTC), "seen": 5},
    {"weight": 0.4, "cost": 250},
    {"weight": "1 crate", "cost": 420, "currency": "EUR"},
    {"weight": "0.6 kg", "fee": "500 GBP"},
    {"weight": 24, "cost": 350, "currency": "USD"},
    {"size": "0.05 TB", "length": "6 km"},
    {"size": "3 TB", "length": ["6 km", 6]},
    {"size": 6, "length": 6},
    {"a": 1, "b": 1, "list_price": 4000, "price": 2500},
    {"a": "9", "b": 10},
    {"a": "9", "b": "10"},
    {"a": [1, 5], "b": [5]},
    {"a": None, "b": 2},
    {"a": True, "b": "x"},
    {"items": [{"sku": "x", "qty": 3}, {"sku": "y", "qty": 5}]},
    {"items": [{"sku": "x", "qty": 1}, {"sku": "y", "qty": 4}]},
    {"items": {"parts": [{"no": 3}, {"no": 2}]}},
    {"name": "lord", "size": "2 GB", "a": 3, "b": 2},
]

BAD = [
    {"price": "cheap"},
    {"make": ["ford", "opel"]},
    {"ip": 5},
    {"posted": 1714550400},
    {"rooms": "two"},
]
"""Events that break what is declared."""


def list_subscriptions():
    """Return all subscriptions, by id: one of each kind, and many that are alike."""
    filters = {f"{kind} {n}": text for kind, texts in FILTERS.items() for n, text in enumerate(texts)}
    for n in range(300):
        filters[f"search {n}"] = (
            f"make = 'm{n % 20}' and price < {n * 40} and year in [{1990 + n % 9} .. {2030 - n % 5}]"
        )
    return filters


EVENTS += BAD
EVENTS += [{"make": f"m{n}", "price": n * 700, "year": 1991 + 3 * n, "n": n} for n in range(0, 20, 2)]


def build_keywords():
    """Return what the names mean."""
    return {
        "schema": td.Schema(SCHEMA, closed=False),
        "ontology": td.Ontology.from_dict(ONTOLOGY),
        "regions": td.Regions.from_dict(REGIONS),
        "now": NOW,
    }


def list_answers(matcher):
    """Return who hears of each event, and which events are bad."""
    matches = matcher.match_many(EVENTS, on_error="collect")
    return {
        "heard": [sorted(ids) for ids in matches.by_event()],
        "bad": [letter.index for letter in matches.dead_letters],
        "filters": {id: json.loads(td.render(matcher[id], notation="json")) for id in matcher},
    }


def read_manifest(folder):
    """Return what a snapshot says of itself."""
    return json.loads((folder / "manifest.json").read_text())


def write_engine():
    """Write a matcher of several segments, with some that were removed and replaced."""
    filters, folder = list_subscriptions(), FOLDER / "engine"
    for _ in range(50):  # until the merge in the background is slower than the saving
        shutil.rmtree(folder, ignore_errors=True)
        matcher = td.Matcher(**build_keywords())
        ids = [*filters]
        matcher.add_many((id, filters[id]) for id in ids[:-60])
        matcher.add_many((id, filters[id]) for id in ids[-60:-5])
        matcher.remove_many([f"search {n}" for n in range(3, 290, 7)])
        matcher.add_many([("gone", "price > 0"), ("number 0", "price = 8501")])
        matcher.remove("gone")
        matcher.add_many([("number 0", filters["number 0"])])
        for id in ids[-5:]:
            matcher.add(id, filters[id])
        matcher.save(folder)
        manifest = read_manifest(folder)
        if len(manifest["segments"]) > 1 and manifest["dead"] is not None:
            break
    else:
        msg = "no snapshot has several segments and dead ones"
        raise SystemExit(msg)
    assert manifest["format"] == 4
    answer = list_answers(matcher)
    assert_telling(answer)
    return answer


def assert_telling(answer):
    """See that every kind of filter hears of some event and not of another."""
    for id in answer["filters"]:
        count = sum(id in ids for ids in answer["heard"])
        is_telling = 0 < count < len(EVENTS) - len(answer["bad"])
        if not is_telling and not id.startswith("search") and id not in ("there 4", "there 5"):
            msg = f"{id} is heard {count} times: {answer['filters'][id]}"
            raise SystemExit(msg)


FREE = [
    "a = 1",
    "a = 'x' or a > 5 GB",
    "b in (1, 2, 3) and c starts with 'x'",
    "p near (8.5, 47.4) 5 km and b > 0",
    "items has (qty > 2)",
    "a < `b`",
    "ip in 10.0.0.0/8",
    "not (c like '*y*') and b <= 7",
    " and ".join(f"(a = {n} or b = {n} or c = '{n}')" for n in range(5)),
    f"n in ({2**53 + 1}, {2**53})",
]
"""Subscriptions with integer ids, of which nothing is declared; `FREE[n]` is subscription `n - 3`."""

FREE_EVENTS = [
    {"a": 1, "b": 2, "c": "xz"},
    {"a": "6 GB", "b": 9},
    {"a": "x", "c": "xy", "b": [0, 3]},
    {"p": [8.5, 47.41], "b": "2", "items": {"qty": 3}},
    {"ip": "10.2.3.4", "n": 2**53 + 1},
    {"n": 2**53, "a": 0.5, "b": 1},
    {"b": [0, 1, 2, 3, 4]},
]


def build_free_matcher():
    """Return a matcher of those."""
    matcher = td.Matcher()
    matcher.add_many((n - 3, text) for n, text in enumerate(FREE))
    return matcher


def write_others():
    """Write a matcher of another kind, which is kept as its filters, and one with integer ids."""
    brute = td.Matcher("brute", **build_keywords())
    brute.add_many((id, text) for id, text in list_subscriptions().items() if not id.startswith("search"))
    brute.save(FOLDER / "brute")
    assert read_manifest(FOLDER / "brute")["format"] == 1
    matcher = build_free_matcher()
    matcher.save(FOLDER / "integers")
    matches = matcher.match_many(FREE_EVENTS)
    content = {"filters": FREE, "events": FREE_EVENTS, "heard": [sorted(ids) for ids in matches.by_event()]}
    assert {id for ids in content["heard"] for id in ids} == set(matcher)
    return list_answers(brute), content


def write_versions():
    """Write a folder of versions that follows a folder of changes, with claims of two queries."""
    filters, answer_by_version = list_subscriptions(), {}
    lines = [{"id": id, "filter": text} for id, text in filters.items()]
    with TemporaryDirectory() as place:
        folder, changes = Path(place, "versions"), Path(place, "changes")
        changes.mkdir()
        live = td.Live(folder, shards=2, follow=changes, **build_keywords())
        _change(changes, "001", lines[:150])
        claims = [_describe_claim(live, "first query", 3)]
        _change(changes, "002", [*lines[150:-20], {"id": "text 0", "filter": None}])
        claims.append(_describe_claim(live, "first query", 4))
        live = td.Live(folder)
        live.add("number 0", "price = 8501")
        claims.append(_describe_claim(live, "a/b ü", 0))
        live.remove("search 7")
        live.change([("number 0", filters["number 0"]), ("text 0", filters["text 0"])], ["place 1"])
        for number in range(2, live.version.number + 1):
            opened = list_answers(live.open(number))
            answer_by_version[str(number)] = {
                "heard": opened["heard"],
                "bad": opened["bad"],
                "ids": sorted(opened["filters"]),
            }
        assert json.loads(next((folder / "versions").glob("*.json")).read_text())["format"] == 5
        pack(folder, "snapshots/versions.tar.gz")
    return {"versions": answer_by_version, "claims": claims, "filters": opened["filters"]}


def _change(folder, name, rows):
    text = "".join(json.dumps(row) + "\n" for row in rows)
    Path(folder, f"{name}.jsonl").write_text(text)


def _describe_claim(live, query, batch):
    claim = live.claim(query, batch, facts={"now": NOW.isoformat(), "batch": batch})
    return {"query": query, "batch": batch, "version": claim.version, "facts": dict(claim.facts)}


def main():
    """Write all of them."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    engine = write_engine()
    brute, integers = write_others()
    versions = write_versions()
    filters = engine.pop("filters") | brute.pop("filters")
    versions.pop("filters")
    expected = {"events": EVENTS, "filters": filters, "engine": engine, "brute": brute, "integers": integers}
    write("snapshots/expected.json.gz", expected | versions)


if __name__ == "__main__":
    main()
