"""Spark and the local matcher give the same pairs, whatever the columns are made of.

Rows are generated as plain Python and go two ways: straight into a local matcher, and through a DataFrame,
Arrow and the workers into `ts.match`. One job carries many events and many filters.
"""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

import tidings as td
from tidings import spark as ts
from tidings.bench.workloads import NOW
from tidings.spark.schema import schema_of

DDL = """
    id int, tiny tinyint, small smallint, n bigint, f float, x double, d decimal(12, 3), flag boolean, day date,
    at timestamp, naive timestamp_ntz, name string, priced string, ip string, tags array<string>, nums array<int>,
    deep array<array<int>>, who struct<name: string, age: int, home: struct<town: string, since: date>>,
    spot struct<lon: double, lat: double>, spots array<struct<lon: double, lat: double>>,
    items array<struct<sku: string, qty: int, tags: array<string>>>, extra map<string, string>,
    counts map<string, bigint>, days map<string, date>, blob binary
"""
KINDS = {"priced": "number"}
"""What is read otherwise than its column says; the words beside the DataFrame's own types."""

ROOT = Path(__file__).resolve().parents[3]
EPOCH = datetime(2024, 4, 20, tzinfo=UTC)
WORDS = ("ford", "focus", "Ford", "", "fo", "straße", "łódź", "a b")
BIG = 2**53 + 1


class Rows:
    """Seeded rows, each field null now and then."""

    def __init__(self, seed):
        self.rng = Random(seed)

    def some(self, make, chance=0.15):
        return None if self.rng.random() < chance else make()

    def several(self, make, most=3):
        return [self.some(make, 0.1) for _ in range(self.rng.randrange(most + 1))]

    def word(self):
        return self.rng.choice(WORDS)

    def small(self):
        return self.rng.randrange(-3, 6)

    def moment(self):
        return EPOCH + timedelta(hours=self.rng.randrange(0, 400), microseconds=self.rng.randrange(3))

    def day(self):
        return self.moment().date()

    def place(self):
        return {"lon": self.rng.uniform(7, 9), "lat": self.rng.uniform(46, 48)}

    def item(self):
        tags = self.some(lambda: self.several(self.word))
        return {"sku": self.some(self.word), "qty": self.some(self.small), "tags": tags}

    def person(self):
        home = self.some(lambda: {"town": self.some(self.word), "since": self.some(self.day)})
        return {"name": self.some(self.word), "age": self.some(self.small), "home": home}

    def mapping(self, make):
        return {key: self.some(make) for key in self.rng.sample(["a", "b", "c"], self.rng.randrange(4))}

    def draw_price(self):
        return self.rng.choice(["3", "4.5", "-2", "2e1", " 7 "])

    def row(self, number):
        some, several, rng = self.some, self.several, self.rng
        return {
            "id": number,
            "tiny": some(self.small),
            "small": some(self.small),
            "n": some(lambda: rng.choice([BIG, BIG - 1, -(2**63), 2**63 - 1, 0, 1])),
            "f": some(lambda: rng.choice([0.5, -1.25, 3.0])),
            "x": some(lambda: rng.choice([0.1, 0.3, -7.5, 1e300, 3.0])),
            "d": some(lambda: Decimal(rng.choice(["1.250", "-3.999", "8.999", "9.000", "0.000", "2.500"]))),
            "flag": some(lambda: rng.random() < 0.5),
            "day": some(self.day),
            "at": some(self.moment),
            "naive": some(lambda: self.moment().replace(tzinfo=None)),
            "name": some(self.word),
            "priced": some(self.draw_price),
            "ip": some(lambda: rng.choice(["10.0.0.7", "10.1.0.1", "192.168.0.1", "2001:db8::1", "::ffff:10.0.0.9"])),
            "tags": some(lambda: several(self.word)),
            "nums": some(lambda: several(self.small)),
            "deep": some(lambda: several(lambda: several(self.small), 2)),
            "who": some(self.person),
            "spot": some(self.place),
            "spots": some(lambda: several(self.place, 2)),
            "items": some(lambda: several(self.item)),
            "extra": some(lambda: self.mapping(self.word)),
            "counts": some(lambda: self.mapping(self.small)),
            "days": some(lambda: self.mapping(self.day)),
            "blob": some(lambda: b"\x00\xff", 0.5),
        }


TESTS = f"""
    tiny in [1 .. 4)             small = 2                      n = {BIG}                   n > {BIG - 1}
    n < 1                        f = 0.5                        x < 0.3                     x >= 3
    d = 1.25                     d between -1 and 2.5           d > 8.999                   flag = true
    flag = false                 day = 2024-04-25               day >= 2024-05-01           at < 2024-04-27T12:00:00Z
    age(at) < 7 days             age(day) >= 10 days            naive in [2024-04-22 .. 2024-04-28)
    name = 'ford'                name starts with 'fo'          name contains 'SS' ignoring case
    name matches /^f.*d$/        name like 'f*s'                name in ('Ford', 'a b')     name > 'focus'
    priced < 4                   priced = 20                    ip in 10.0.0.0/16           ip in 2001:db8::/32
    tags = 'ford'                all(tags) > 'a'                none(tags) = 'fo'           tags ends with 'd'
    nums = 3                     nums in [2 .. 3]               all(nums) > 0               nums exists
    deep = 5                     none(deep) < 0                 who.name = 'focus'          who.age > 2
    who.home.town = 'łódź'       who.home.since > 2024-04-29    who exists                  who is null
    spot near (8, 47) 40 km      spot within POLYGON((7.5 46.5, 8.5 46.5, 8.5 47.5, 7.5 47.5, 7.5 46.5))
    any(spots) near (8, 47) 50 km  spot.lon > 8.2               items.qty > 3               items.tags = 'ford'
    items has (sku = 'ford' and qty > 1)                        items has (qty <= 0 and tags = 'focus')
    none(items) has (qty < 0)    items exists                   extra.a = 'ford'            extra.b exists
    counts.c > 2                 counts.a is null               days.b < 2024-04-30         blob exists
    blob is null                 tiny < small                   x > d                       at > day
    name = who.name              tags is null                   missing exists              not missing = 1
"""


def separate(text):
    return [test.strip() for line in text.splitlines() for test in line.strip().split("  ") if test.strip()]


def searches(seed, count):
    """Every test alone and negated, then mixtures."""
    rng, tests = Random(seed), separate(TESTS)
    alone = [*tests, *(f"not ({test})" for test in tests)]
    mixed = [
        f" {rng.choice(['and', 'or'])} ".join(
            f"({rng.choice(['', 'not '])}({test}))" for test in rng.sample(tests, rng.randrange(2, 4))
        )
        for _ in range(count)
    ]
    return list(enumerate([*alone, *mixed]))


def declare_kinds(frame):
    """Return the columns' kinds and those of `KINDS`, as one schema for local matchers and stored ones."""
    return schema_of(frame.schema).merged(td.Schema(KINDS)).opened()


def local_pairs(schema, wanted, rows):
    matcher = td.Matcher(schema=schema, now=NOW)
    matcher.add_many(wanted)
    matches = matcher.match_many(rows, on_error="collect")
    letters = {(rows[letter.index]["id"], letter.reason) for letter in matches.dead_letters}
    return {(rows[index]["id"], id_) for index, id_ in matches}, letters


@pytest.mark.parametrize("seed", [1, 2])
def test_every_kind_of_column_matches_as_it_does_locally(spark, seed):
    rows = [Rows(seed * 1000 + number).row(number) for number in range(400)]
    wanted = searches(seed, 60)
    frame = spark.createDataFrame(rows, DDL).repartition(3)
    expected, letters = local_pairs(declare_kinds(frame), wanted, rows)
    matches = ts.match(frame, wanted, event_id="id", schema=KINDS, now=NOW, unknown="absent").collect()
    assert len(matches) == len(expected)
    assert {(row.event, row.subscription) for row in matches} == expected
    assert not letters
    hit = {text for _, text in {wanted[id_] for _, id_ in expected}}
    assert set(separate(TESTS)) - hit == {"missing exists"}


def test_bad_events_are_the_same_here_and_there(spark):
    rows = [Rows(number).row(number) for number in range(200)]
    for number, bad in enumerate(
        [
            {"x": float("-inf")},
            {"priced": "dear"},
            {"spot": {"lon": 200.0, "lat": 0.0}},
            {"spot": {"lon": None, "lat": 1.0}},
            {"spots": [{"lon": 0.0, "lat": 91.0}]},
            {"x": float("nan")},  # null
            {"ip": "10.0.0"},  # text, as its column says, and no address
        ]
    ):
        rows[number * 20] = {**rows[number * 20], **bad}
    wanted = searches(3, 20)
    frame = spark.createDataFrame(rows, DDL)
    expected, letters = local_pairs(declare_kinds(frame), wanted, rows)
    matches = ts.match(frame, wanted, event_id="id", schema=KINDS, now=NOW, unknown="absent").collect()
    assert {(row.event, row.subscription) for row in matches} == expected
    dead = ts.dead_letters(frame, wanted, event_id="id", schema=KINDS, now=NOW, unknown="absent").collect()
    assert {(row.event, row.reason) for row in dead} == letters
    assert {event for event, _ in letters} == {0, 20, 40, 60, 80}
    assert all(isinstance(row["row"], str) for row in dead)


def test_dates_are_dates(spark):
    frame = spark.createDataFrame([(1, date(2024, 5, 1))], "id int, day date")
    assert ts.match(frame, [("may", "day = 2024-05-01T00:00:00Z")], event_id="id").count() == 1


SHOP = """
    target is a 'computer'      target = 'laptop'           not target is a 'accessory'     price < 400 USD
    price.value >= 300 EUR      experience > 1000 days      not experience > 1000 days      `contact information` exists
    email like '*@example.org'  spot within @downtown       target.hardDisk.size.value >= 40 GB
"""


def shop_row(number):
    rng = Random(number)
    return {
        "id": number,
        "target": rng.choice(["laptop", "notebook", "台式机", "HDD", "abacus", None]),
        "price": rng.choice(["350", "450 EUR", "$ 250", None]),
        "price.currency": rng.choice(["$", "EUR", None]),
        "graduated": rng.choice([date(2010, 6, 1), date(2023, 6, 1), None]),
        "seller": rng.choice([{"email": "a@example.org", "cellPhoneNumber": None}, None]),
        "spot": rng.choice([{"lon": 0.5, "lat": 0.5}, {"lon": 1.5, "lat": 0.5}, None]),
        "target.hardDisk.size": rng.choice([{"value": 40, "units": "GB"}, {"value": 512, "units": "MB"}, None]),
    }


def test_concepts_units_derived_attributes_and_regions_mean_the_same(spark):
    ontology = td.Ontology.load(ROOT / "examples/ontology.toml")
    square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]}
    regions = td.Regions.from_dict({"type": "Feature", "id": "downtown", "geometry": square})
    rows = [shop_row(number) for number in range(120)]
    ddl = """id int, target string, price string, `price.currency` string, graduated date,
        seller struct<email: string, cellPhoneNumber: string>, spot struct<lon: double, lat: double>,
        `target.hardDisk.size` struct<value: int, units: string>"""
    frame = spark.createDataFrame(rows, ddl)
    wanted = list(enumerate(separate(SHOP)))
    local = td.Matcher(schema=schema_of(frame.schema), ontology=ontology, regions=regions, now=NOW)
    local.add_many(wanted)
    expected = {(rows[index]["id"], id_) for index, id_ in local.match_many(rows)}
    about = {"ontology": ontology, "regions": regions, "now": NOW}
    matches = ts.match(frame, wanted, event_id="id", **about).collect()
    assert {(row.event, row.subscription) for row in matches} == expected
    assert {id_ for _, id_ in expected} == {id_ for id_, _ in wanted}
    assert ts.dead_letters(frame, wanted, **about).count() == 0
    shipped = ts.match(frame, local, event_id="id").collect()
    assert {(row.event, row.subscription) for row in shipped} == expected
