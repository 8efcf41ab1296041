"""Who wants which car? A batch of ads against saved searches, on Spark.

    python examples/spark_batch.py

Needs `pip install 'tidings[spark]'` and Java 17 or later.
"""

from tidings import spark as ts

session = ts.session("cars")

ads = session.createDataFrame(
    [
        (1, "ford", 8500, ["one owner"], {"lon": 8.54, "lat": 47.37}),
        (2, "ford", 12000, [], {"lon": 7.45, "lat": 46.95}),
        (3, "opel", 3200, ["warranty", "one owner"], None),
    ],
    "id BIGINT, make STRING, price INT, tags ARRAY<STRING>, spot STRUCT<lon: DOUBLE, lat: DOUBLE>",
)
searches = session.createDataFrame(
    [
        ("cheap fords", "make = 'ford' and price < 9000"),
        ("near Bern", "spot near (7.45, 46.95) 20 km"),
        ("well kept", "tags = 'one owner' and not price > 10000"),
    ],
    "id STRING, filter STRING",
)

# A row for each pair; `keep` carries columns along.
pairs = ts.match(ads, searches, event_id="id", keep=["make", "price"])
pairs.orderBy("event", "subscription").show()

# A row for each ad that somebody wants.
ts.match(ads, searches, event_id="id", grouped=True).orderBy("event").show(truncate=False)

assert [tuple(row)[:2] for row in pairs.orderBy("event", "subscription").collect()] == [
    (1, "cheap fords"),
    (1, "well kept"),
    (2, "near Bern"),
    (3, "well kept"),
]
