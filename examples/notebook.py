"""Tidings on Spark, cell by cell.

Open it in an editor that knows `# %%` cells (or turn it into a notebook with jupytext), or run all of it:
`python examples/notebook.py`. It needs `pip install 'tidings[spark]'` and Java 17 or later.
"""

# %% A session: a plain SparkSession, here on all cores of this machine.
import json
import tempfile
from pathlib import Path

import tidings as td
from tidings import spark as ts

session = ts.session("notebook")
folder = Path(tempfile.mkdtemp(prefix="tidings-"))

# %% A first match: ads in a DataFrame, two searches in a list, and who must hear of which ad.
ads = session.createDataFrame(
    [(1, "ford", "8500", 2016), (2, "opel", "4200", 2012), (3, "ford", "15000", 2021), (4, "fiat", "call me", 2009)],
    "id BIGINT, make STRING, price STRING, year INT",
)
kinds = {"price": "number"}  # the column is text, since sellers write what they like; it is to be read as a number
pairs = ts.match(ads, [("cheap", "price < 9000"), ("fords", "make = 'ford'")], event_id="id", schema=kinds)
pairs.orderBy("event", "subscription").show()
assert pairs.count() == 4

# %% Subscriptions in a DataFrame, of any size: the executors compile them, the driver never sees them.
searches = session.createDataFrame(
    [
        ("cheap", "price < 9000", "text"),
        ("young fords", "make=ford&year_from=2015", "url"),
        ("not a fiat", '{"not": {"attr": "make", "op": "=", "value": "fiat"}}', "json"),
    ],
    "id STRING, filter STRING, notation STRING",
)
lists = ts.match(ads, searches, event_id="id", grouped=True, keep=["make"], schema=kinds)
lists.orderBy("event").show(truncate=False)

# Filters are read before any job runs on events; all bad ones are told together, by id: also one that asks a column
# for another kind than it has, or that names a column that is not there.
try:
    ts.match(
        ads, [("good", "price < 1"), ("bad", "price <"), ("odd", "year = 'new'"), ("slip", "prise < 1")], schema=kinds
    )
except td.TidingsError as refused:
    print(refused)

# %% Why? The same filters in a matcher of this process give reasons, and the plan.
local = td.Matcher()
local.add_many([("cheap", "price < 9000"), ("young fords", "make = 'ford' and year >= 2015")])
print(local.why_not({"make": "ford", "price": 8500, "year": 2012}, "young fords"))
print(local.explain())

# %% Dead letters: an ad that does not fit matches nothing, and is never lost.
letters = ts.dead_letters(ads, searches, event_id="id", schema=kinds)
letters.show(truncate=False)
assert [row.event for row in letters.collect()] == [4]
print(letters.first().reason)

# %% A stream whose searches change while it runs: a folder of versions instead of a list.
live = td.Live(folder / "searches")
live.add("cheap", "price < 9000")
(folder / "ads").mkdir()


def add_ads(*ads):
    """Add ads to the stream, as one file; the dot keeps Spark from reading half of it."""
    number = len(list((folder / "ads").iterdir()))
    beside = folder / "ads" / f".{number}.json"
    beside.write_text("".join(json.dumps(ad) + "\n" for ad in ads))
    beside.rename(folder / "ads" / f"{number}.json")


stream = session.readStream.schema("id BIGINT, make STRING, price DOUBLE").json(str(folder / "ads"))
matches = ts.match(stream, live, event_id="id")
query = (
    matches.writeStream.format("memory")
    .queryName("matches")
    .option("checkpointLocation", str(folder / "checkpoint"))
    .start()
)
add_ads({"id": 1, "make": "ford", "price": 8500})
query.processAllAvailable()  # for a demonstration; a real stream just goes on

live.add("opels", "make = 'opel'")  # in force in the next micro-batch, without a restart
live.remove("cheap")
add_ads({"id": 2, "make": "opel", "price": 4200})
query.processAllAvailable()
query.stop()
pairs = sorted(map(tuple, session.table("matches").collect()))
print(pairs)
assert pairs == [(1, "cheap"), (2, "opels")]

# %% Shards: for more subscriptions than one machine's memory holds. The rows are the same.
many = session.range(5000).selectExpr("cast(id as string) id", "concat('price < ', id, ' and year > 2010') filter")
version = ts.compile(many, folder / "compiled", shards=3)
print(f"{version.count:,} subscriptions in {len(version.shards)} shards")
cars = ads.selectExpr("id", "make", "try_cast(price AS DOUBLE) price", "year")
assert ts.match(cars, str(folder / "compiled"), event_id="id").count() == 799

# %% Too wide: an event that too many subscriptions want is left out, and told of.
ts.match(cars, many, event_id="id", limit=500).groupBy("event").count().show()
ts.dead_letters(cars, many, event_id="id", limit=500).select("event", "reason").show(truncate=False)

# %% SQL: the same as a table function, for whoever writes no Python.
ts.register(session)
cars.createOrReplaceTempView("cars")
by_sql = session.sql(
    "SELECT event, count(*) AS searches FROM tidings_match(TABLE(cars), :snapshot, event_id => 'id') GROUP BY event",
    args={"snapshot": str(folder / "compiled")},
)
by_sql.orderBy("event").show()
assert by_sql.count() == 1
