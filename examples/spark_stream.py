"""Who must hear of which ad, as ads arrive? The same call as for a batch, on a stream of JSON files.

    python examples/spark_stream.py [FOLDER]

Ads are written into FOLDER (a temporary one unless it is given), streamed, and matched; bad ads go their own way.
A real pipeline leaves out `availableNow`, and then runs on as files arrive.
"""

import json
import sys
import tempfile
from pathlib import Path

from tidings import spark as ts

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="tidings-"))
session = ts.session("cars, as they come")

ADS = "id BIGINT, make STRING, price STRING, seller STRUCT<kind: STRING, rating: DOUBLE>"
KINDS = {"price": "number"}  # sellers write what they like: the column is text, to be read as a number
SEARCHES = [
    ("cheap", "price < 9000"),
    ("trusted", "seller.kind = 'dealer' and seller.rating >= 4"),
]

(folder / "ads").mkdir(parents=True, exist_ok=True)
for number, ad in enumerate(
    [
        {"id": 1, "make": "ford", "price": "8500", "seller": {"kind": "private"}},
        {"id": 2, "make": "opel", "price": "12000", "seller": {"kind": "dealer", "rating": 4.5}},
        {"id": 3, "make": "fiat", "price": "call me", "seller": {"kind": "private"}},
    ]
):
    (folder / "ads" / f"{number}.json").write_text(json.dumps(ad) + "\n")

ads = session.readStream.schema(ADS).option("maxFilesPerTrigger", 1).json(str(folder / "ads"))


def write(frame, name):
    """Write a stream as JSON files; the checkpoint is what lets it go on after a crash."""
    writer = frame.writeStream.format("json").option("checkpointLocation", str(folder / "checkpoints" / name))
    return writer.trigger(availableNow=True).start(str(folder / name))


queries = [
    write(ts.match(ads, SEARCHES, event_id="id", keep=["make"], schema=KINDS), "matches"),
    write(ts.dead_letters(ads, SEARCHES, event_id="id", schema=KINDS), "dead_letters"),
]
for query in queries:
    query.awaitTermination()

matches = session.read.json(str(folder / "matches")).orderBy("event").select("event", "subscription", "make").collect()
letters = session.read.json(str(folder / "dead_letters")).collect()
for row in matches:
    print(f"ad {row.event} ({row.make}) goes to `{row.subscription}`")
for row in letters:
    print(f"ad {row.event} is bad: {row.reason}")

assert [tuple(row) for row in matches] == [(1, "cheap", "ford"), (2, "trusted", "opel")]
assert [row.event for row in letters] == [3]
