"""Runs in a process of its own: the same calls on Spark Connect; prints what they give, as JSON."""

import json
import os
import sys
import tempfile
from pathlib import Path


def main() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    session = SparkSession.builder.remote("local[2]").getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        sys.stdout.write(json.dumps(collect_answers(session)) + "\n")
    finally:
        session.stop()


def collect_answers(session):
    from ad_columns import ADS  # beside this program

    import tidings as td
    from tidings import spark as ts
    from tidings.bench.workloads import NOW, car_ads, saved_searches

    folder = Path(tempfile.mkdtemp())
    ads = car_ads(60, seed=5)
    ads[3]["price"] = "call me"
    (folder / "ads.json").write_text("".join(json.dumps(ad, default=str) + "\n" for ad in ads))
    wanted, about = saved_searches(80, seed=6), {"event_id": "id", "now": NOW}
    priced = td.Schema({"price": "number"}, closed=False)  # its column is text, since sellers write what they like
    batch = session.read.schema(ADS).json(str(folder))
    stream = session.readStream.schema(ADS).json(str(folder))
    table = session.createDataFrame(wanted, "id string, filter string")
    local = td.Matcher(schema=priced, now=NOW)
    local.add_many(wanted)
    matches = local.match_many(ads, on_error="collect")
    return {
        "kind": type(batch).__module__,
        "same": ts.session("the running one") is session,
        "local": sorted([ads[index]["id"], id_] for index, id_ in matches),
        "pairs": rows(ts.match(batch, table, schema=priced, **about)),
        "clock": ts.match(batch, [("old", "age(posted) > 1 day")], event_id="id").count(),
        "grouped": sum(
            len(row.subscriptions) for row in ts.match(batch, wanted, schema=priced, grouped=True, **about).collect()
        ),
        "wide": ts.match(batch, local).columns,
        "letters": rows(ts.dead_letters(batch, wanted, schema=priced, **about).drop("row")),
        "sql": rows(in_sql(session, batch, local)),
        "sharded": rows(ts.match(batch, table, schema=priced, shards=3, **about)),
        "live": run_stream(session, ts.match(stream, living(wanted, priced), **about), "live"),
        "streamed": run_stream(session, ts.match(stream, wanted, schema=priced, **about)),
        "detected": detect_pairs(session),
        "foretold": forecast_pairs(session),
    }


def detect_pairs(session):
    from tidings import spark as ts

    sql = "SELECT * FROM VALUES (1, 10, 'a', 'x'), (2, 20, 'a', 'y'), (3, 30, 'b', 'x') AS t(id, s, kind, ip)"
    events = session.sql(f"SELECT id, timestamp_seconds(s) AS ts, kind, ip FROM ({sql})")
    text = "a = kind = 'a' and ip = $x\nb = kind = 'b' and ip = $x\na ; b within 1 min"
    return [[row.pattern, row.key, row.events] for row in ts.detect(events, {"pair": text}).collect()]


def forecast_pairs(session):
    from tidings import spark as ts

    kind = "CASE id % 3 WHEN 0 THEN 'a' WHEN 1 THEN 'b' ELSE 'c' END"
    events = session.sql(f"SELECT id, timestamp_seconds(id) AS ts, {kind} AS kind, 'x' AS ip FROM range(60)")
    patterns = {"pair": "a = kind = 'a' and ip = $x\nb = kind = 'b' and ip = $x\na ; b"}
    model = ts.train(events, patterns, context=0)
    forecasts = ts.detect(events, patterns, model=model, horizon=1).where("kind = 'forecast'").collect()
    return [model.now[0], sorted({row.key for row in forecasts}), min(row.probability for row in forecasts)]


def in_sql(session, batch, matcher):
    from tidings import spark as ts

    snapshot = Path(tempfile.mkdtemp()) / "snapshot"
    matcher.save(snapshot)
    ts.register(session)
    batch.createOrReplaceTempView("ads")
    return session.sql(f"SELECT * FROM tidings_match(TABLE(ads), '{snapshot}', event_id => 'id')")


def rows(frame):
    return sorted(list(row) for row in frame.collect())


def living(wanted, schema):
    import tidings as td

    live = td.Live(Path(tempfile.mkdtemp()) / "live", shards=2, schema=schema)
    live.add_many(wanted)
    return live


def run_stream(session, frame, name="streamed"):
    query = frame.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
    query.awaitTermination()
    return rows(session.table(name))


if __name__ == "__main__":
    main()
