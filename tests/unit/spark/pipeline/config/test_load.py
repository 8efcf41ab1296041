"""`pipeline.toml`: what is read from it, and that every mistake is told, together and in these words."""

import copy
import json
import pickle
import re
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.examples import examples

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tests.unit.spark.pipeline.config.key_tables import build_markdown, list_tables
from tests.unit.spark.pipeline.config.mistake_lines import without_lines

import tidings as td
from tidings.configuration.environment import ExpandedText
from tidings.configuration.reading import FileMistake
from tidings.errors import BadPipeline, FileError, TidingsError
from tidings.spark.pipeline.config import reference
from tidings.spark.pipeline.config import settings as config
from tidings.spark.pipeline.config.describe import describe_pipeline
from tidings.spark.pipeline.config.load import load, read

PAGE = (Path(__file__).parents[5] / "docs" / "guide" / "pipeline.md").read_text(encoding="utf-8")
SECRET = "swordfish-4711"

GOOD = {
    "checkpoint": "state",
    "source": {
        "kind": "json",
        "path": "ads",
        "columns": "id BIGINT, make STRING, posted TIMESTAMP, url STRING",
        "id": "id",
        "time": "posted",
    },
    "subscriptions": {"directory": "searches"},
    "matching": {"keep": ["url"]},
    "late": {"after": "10 minutes"},
    "duplicates": {"within": "1 hour"},
    "sink": [{"kind": "parquet", "path": "matches"}, {"kind": "console"}],
    "dead_letters": {"kind": "json", "path": "dead"},
}


def toml(table, above=""):
    """A table as TOML; JSON's scalars and lists are TOML's too."""
    plain, tables = [], []
    for name, content in table.items():
        place = f"{above}{json.dumps(name)}"
        if isinstance(content, dict):
            tables.append(f"[{place}]\n{toml(content, place + '.')}")
        elif isinstance(content, list) and content and isinstance(content[0], dict):
            tables.extend(f"[[{place}]]\n{toml(table_of_list, place + '.')}" for table_of_list in content)
        else:
            plain.append(f"{json.dumps(name)} = {json.dumps(content)}\n")
    return "".join(plain + tables)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with all that a pipeline may name."""
    folder = tmp_path_factory.mktemp("pipeline")
    for name in ("searches", "snapshot", "jars", "empty"):
        (folder / name).mkdir()
    (folder / "jars" / "connector.jar").touch()
    (folder / "searches.jsonl").touch()
    (folder / "attacks.patterns").write_text("pattern twice\n  a = make = 'ford'\n  x:a ; y:a\n")
    td.Model().save(folder / "attacks.model")
    (folder / "schema.toml").write_text('price = "number"\n')
    (folder / "bad_schema.toml").write_text('price = "numbr"\n')
    (folder / "products.toml").write_text("[trees.product.children.product.car]\n")
    (folder / "spots.geojson").write_text('{"type": "FeatureCollection", "features": []}')
    (folder / "pipeline_functions.py").write_text("def save(frame, batch): ...\n")
    return folder


@pytest.fixture
def mistakes(place):
    """What is wrong with a file, given as text or as a table."""

    def find_mistakes(content, **environ):
        path = place / "pipeline.toml"
        text = content if isinstance(content, str) else toml(content)
        path.write_text(text, encoding="utf-8")
        try:
            load(path, environ=environ)
        except BadPipeline as refused:
            return [line.replace(f"{place}/", "") for line in without_lines(refused.mistakes, text)]
        return []

    return find_mistakes


@pytest.fixture
def load_here(place):
    def load_text(text, **environ):
        path = place / "pipeline.toml"
        path.write_text(text if isinstance(text, str) else toml(text), encoding="utf-8")
        return load(path, environ=environ)

    return load_text


def change_good(*steps):
    """The good table with changes, each a path and a value; `...` takes the key away."""
    table = copy.deepcopy(GOOD)
    for path, value in steps:
        *above, last = path
        spot = table
        for name in above:
            spot = spot.setdefault(name, {}) if isinstance(name, str) else spot[name]
        if value is ...:
            del spot[last]
        else:
            spot[last] = value
    return table


# What is read ------------------------------------------------------------------------------------


def test_a_small_file_becomes_a_pipeline_with_its_defaults(load_here, place):
    pipeline = load_here(
        {
            "checkpoint": "state",
            "source": {"kind": "rate"},
            "subscriptions": {"file": "searches.jsonl"},
            "sink": [{"kind": "console"}],
        }
    )
    assert pipeline == config.Pipeline(
        name="pipeline",
        folder=place,
        checkpoint=str(place / "state"),
        source=config.SourceSettings("rate"),
        subscriptions=config.SubscriptionSettings(file=str(place / "searches.jsonl")),
        sinks=(config.SinkSettings("console"),),
        dead_letters=config.SinkSettings("json", path=str(place / "state" / "dead_letters")),
        trigger=config.Trigger(every=timedelta(seconds=1)),
    )


def test_every_key_reaches_the_pipeline(load_here, place):
    pipeline = load_here(
        {
            "name": "cars",
            "checkpoint": "s3a://bucket/state",
            "trigger": "available now",
            "master": "local[2]",
            "jars": "jars",
            "schema": "schema.toml",
            "ontology": "products.toml",
            "regions": "spots.geojson",
            "source": {
                "kind": "kafka",
                "servers": "a:1,b:2",
                "topic": "ads",
                "columns": "make STRING",
                "value": "json",
                "id": "kafka.key",
                "time": "kafka.timestamp",
                "options": {"failOnDataLoss": False, "maxOffsetsPerTrigger": 500, "kafka": {"client.id": "x"}},
            },
            "derived": {"upper": "upper(make)"},
            "subscriptions": {"table": "searches", "notation": "url", "shards": 4, "refresh": "90 s"},
            "matching": {"per": "event", "keep": ["upper"], "limit": 7, "spread": 3, "now": "2024-07-01T12:00:00Z"},
            "late": {"after": "2 hours"},
            "duplicates": {"within": "500 ms"},
            "sink": [{"kind": "python", "function": "pipeline_functions:save"}, {"kind": "console", "rows": 5}],
            "dead_letters": {"kind": "kafka", "servers": "a:1", "topic": "dead", "options": {"kafka.acks": "all"}},
            "shown": {"view": "off", "metrics": "127.0.0.1:9464", "lines": "-"},
            "spark": {"spark": {"sql": {"shuffle": {"partitions": 8}}}, "spark.executor.memory": "4g"},
        }
    )
    assert (pipeline.name, pipeline.checkpoint, pipeline.trigger) == (
        "cars",
        "s3a://bucket/state",
        config.Trigger(None, True),
    )
    assert (pipeline.master, pipeline.jars) == ("local[2]", str(place / "jars"))
    assert pipeline.schema.to_dict() == {"price": "number"}
    assert (pipeline.ontology is not None, pipeline.regions is not None) == (True, True)
    assert pipeline.source.options == {"failOnDataLoss": "false", "maxOffsetsPerTrigger": "500", "kafka.client.id": "x"}
    assert pipeline.subscriptions == config.SubscriptionSettings(
        table="searches", notation="url", shards=4, refresh=timedelta(seconds=90)
    )
    now = datetime(2024, 7, 1, 12, tzinfo=UTC)
    assert pipeline.matching == config.MatchingSettings(per="event", keep=("upper",), limit=7, spread=3, now=now)
    assert (pipeline.late.after, pipeline.duplicates.within) == (timedelta(hours=2), timedelta(milliseconds=500))
    assert pipeline.sinks[1].rows == 5
    assert pipeline.dead_letters.options == {"kafka.acks": "all"}
    assert pipeline.shown == config.MonitorSettings("off", "127.0.0.1:9464", "-")
    assert pipeline.spark == {"spark.sql.shuffle.partitions": "8", "spark.executor.memory": "4g"}
    assert pipeline.needs_kafka


def test_toml_has_times_of_its_own(load_here):
    pipeline = load_here(toml(GOOD).replace('["matching"]\n', '["matching"]\nnow = 2024-07-01\n'))
    assert pipeline.matching.now == datetime(2024, 7, 1, tzinfo=UTC)


def test_a_schema_may_stand_in_the_file(load_here):
    table = {**GOOD, "schema": {"price": "number", "seller": {"kind": "text"}}}
    assert load_here(table).schema.to_dict() == {"price": "number", "seller.kind": "text"}


@pytest.mark.parametrize(
    ("text", "size"), [("8 MB", 8_000_000), ("1.5kb", 1500), (" 1 GB ", 10**9), ("64 mb", 64_000_000)]
)
def test_sizes(load_here, text, size):
    assert load_here(change_good((("source", "largest"), text))).source.largest == size


@pytest.mark.parametrize("path", ["s3a://bucket/out", "hdfs:///out", "file:/data/out", "/data/out"])
def test_absolute_paths_and_uris_are_left_alone(load_here, path):
    assert load_here(change_good((("sink", 0, "path"), path))).sinks[0].path == path


def test_relative_paths_are_reckoned_from_the_files_folder(load_here, place, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert load_here(change_good((("sink", 0, "path"), "../out/./x"))).sinks[0].path == str(place.parent / "out" / "x")


@pytest.mark.parametrize(
    ("text", "trigger"),
    [
        ("2 minutes", config.Trigger(every=timedelta(minutes=2))),
        ("as soon as possible", config.Trigger()),
        ("available now", config.Trigger(available_now=True)),
    ],
)
def test_triggers(load_here, text, trigger):
    assert load_here({"trigger": text, **GOOD}).trigger == trigger


# Mistakes ----------------------------------------------------------------------------------------

KAFKA = {"kind": "kafka", "servers": "b:9092", "topic": "ads", "columns": "id BIGINT", "id": "id", "time": "posted"}
DURATION = 'must be a duration such as "10 minutes", not '
SINK_PATH = ("sink", 0, "path")
STORE_SUMMARY = "store of a subscription service, which has a table of the latest matches"
STORE_SINK = {"kind": "store", "store": "sqlite:///s.db"}
WHOLE = [(("source", "columns"), ...), (("matching", "keep"), ["document"])]

BROKEN = [
    ([(("triger",), "1 s")], "`triger` is not a key; did you mean `trigger`?"),
    ([(("trigger",), "soon")], '`trigger` must be "1 second", "available now" or "as soon as possible", not `soon`'),
    ([(("trigger",), "0 s")], '`trigger` must be "1 second", "available now" or "as soon as possible", not `0 s`'),
    ([(("name",), "")], "`name` is empty"),
    ([(("name",), {"x": "y"})], "`name` must be a text, not a table"),
    (
        [(("checkpoint",), ...)],
        "`checkpoint` is missing: folder where the query remembers how far it came; it belongs to this pipeline alone",
    ),
    ([(("sorce",), {})], "[sorce] is not a table of a pipeline; did you mean `source`?"),
    ([(("source",), ...)], "[source] is missing: where events come from"),
    ([(("source",), "ads")], "[source] must be a table, not a text"),
    ([(("source", "pth"), "x")], "[source] `pth` is not a key; did you mean `path`?"),
    ([(("source", "path"), ...), (("source", "pth"), "x")], "[source] `pth` is not a key; did you mean `path`?"),
    (
        [(("source", "trigger"), "1 s")],
        "[source] `trigger` is not a key of this table; it stands at the top of the file, before the first table",
    ),
    ([(("source", "kind"), "jsn")], "[source] `kind` cannot be `jsn`; did you mean `json`?"),
    ([(("source", "kind"), ...)], "[source] `kind` is missing: what the events are read from"),
    (
        [(("source",), {**KAFKA, "path": "ads"})],
        '[source] `path` does not go with kind = "kafka"; it is for json, csv, parquet',
    ),
    (
        [(("source", "path"), ...)],
        '[source] `path` is missing with kind = "json": folder of files; new files are new events',
    ),
    (
        [(("source", "columns"), ...), (("source", "kind"), "csv")],
        '[source] `columns` is missing with kind = "csv": '
        'columns in Spark\'s words: "id BIGINT, make STRING, price DOUBLE"',
    ),
    (
        [(("source",), {**KAFKA, "value": "text"})],
        '[source] `columns` does not go with value = "text", which gives one column `value`',
    ),
    (
        [(("source", "largest"), "8 megs")],
        '[source] `largest` must be a size such as "8 MB", not `8 megs`; the units are kB, MB, GB',
    ),
    (
        [(("source", "largest"), "8")],
        '[source] `largest` must be a size such as "8 MB", not `8`; the units are kB, MB, GB',
    ),
    ([(("source", "largest"), 8)], '[source] `largest` must be a size such as "8 MB", not a whole number'),
    ([(("source", "largest"), "0 MB")], "[source] `largest` must be above zero, not `0 MB`"),
    (
        [(("source", "largest"), "2 GB")],
        "[source] `largest` must be at most 1 GB: Java's heap holds an event several times, not `2 GB`",
    ),
    (
        [(("source",), {"kind": "rate", "id": "value", "time": "timestamp", "largest": "8 MB"}), (("matching",), ...)],
        '[source] `largest` does not go with kind = "rate"; it is for json, csv, parquet, kafka, socket',
    ),
    ([(("source", "id"), 7)], "[source] `id` must be a text, not a whole number"),
    ([(("source", "options"), [1])], "[source.options] must be a table, not a list"),
    (
        [(("source", "options"), {"a": ["x"]})],
        "[source.options] `a` must be a text, a number, or true or false, not a list",
    ),
    ([(("source", "options"), {"path": "x"})], "[source.options] `path` is not set here; the key `path` says it"),
    (
        [(("source", "options"), {"a": "${NOT_SET}"})],
        "[source.options] `a` cannot be read: the variable `NOT_SET` is not set; `$${` stands for a plain `${`",
    ),
    (
        [(("source", "id"), "${")],
        "[source] `id` cannot be read: a `${` has no `}`; `$${` stands for a plain `${`",
    ),
    (
        [(("source", "id"), "${a b}")],
        "[source] `id` cannot be read: `${a b}` names no variable; `$${` stands for a plain `${`",
    ),
    ([(("derived",), {"x": 1})], "[derived] `x` must be a text, not a whole number"),
    ([(("derived",), {"_raw": "1"})], "[derived] `_raw` is a column of Tidings' own; take another name"),
    (
        [(("subscriptions",), {})],
        "[subscriptions] needs exactly one of `file`, `directory`, `table`, `topic`, `snapshot`, `store`",
    ),
    (
        [(("subscriptions", "file"), "searches.jsonl")],
        "[subscriptions] needs exactly one of `file`, `directory`, `table`, `topic`, `snapshot`, `store`, "
        "not `file` and `directory`",
    ),
    (
        [(("subscriptions",), {"topic": "t"})],
        "[subscriptions] `servers` is missing with `topic`: the brokers of the topic, parted by commas",
    ),
    (
        [(("subscriptions", "refresh"), "1 s")],
        "[subscriptions] `refresh` does not go with `directory`; it is for table",
    ),
    ([(("subscriptions", "shards"), 0)], "[subscriptions] `shards` must be at least 1, not `0`"),
    ([(("subscriptions", "shards"), True)], "[subscriptions] `shards` must be a whole number, not true or false"),
    (
        [(("subscriptions", "directory"), "nowhere")],
        "[subscriptions] `directory` names `nowhere`: there is no such folder",
    ),
    (
        [(("subscriptions",), {"file": "searches"})],
        "[subscriptions] `file` names `searches`: there is no such file; it is a folder",
    ),
    (
        [(("subscriptions",), {"snapshot": "nowhere"})],
        "[subscriptions] `snapshot` names `nowhere`: there is no such folder",
    ),
    (
        [(("subscriptions",), {"snapshot": "snapshot"}), (("schema",), "schema.toml")],
        "`schema` does not go with `snapshot` in [subscriptions]: a snapshot brings its own",
    ),
    ([(("matching", "per"), "evnt")], "[matching] `per` cannot be `evnt`; did you mean `event`?"),
    ([(("matching", "keep"), "url")], "[matching] `keep` must be a list of texts, not `url`"),
    ([(("matching", "keep"), ["url", "url"])], "[matching] `keep` names `url` twice"),
    (
        [(("matching", "keep"), ["event"])],
        "[matching] `keep` names `event`, a column of the matches; call it otherwise in [derived]",
    ),
    ([(("matching", "limit"), 0)], "[matching] `limit` must be at least 1, not `0`"),
    ([(("matching", "now"), "noon")], "[matching] `now` must be a time such as 2024-07-01T12:00:00Z, not `noon`"),
    ([(("late", "after"), "soon")], f"[late] `after` {DURATION}`soon`"),
    ([(("late", "after"), "10 parsecs")], f"[late] `after` {DURATION}`10 parsecs`"),
    ([(("late", "after"), 10)], f"[late] `after` {DURATION}a whole number"),
    ([(("late", "after"), "0 s")], "[late] `after` must be longer than nothing, not `0 s`"),
    ([(("late", "after"), f"{'9' * 15} weeks")], f"[late] `after` {DURATION}`{'9' * 15} weeks`"),
    ([(("source", "time"), ...)], "[late] needs `time` in [source]: it says how old an event is"),
    ([(("sink",), ...)], "[[sink]] is missing: where rows go"),
    (
        [(("sink",), {"kind": "console"})],
        "[sink] is written [[sink]], since there may be several",
    ),
    (
        [(("sink", 1, "kind"), "printer")],
        "[[sink]] 2: `kind` cannot be `printer`; it is one of json, parquet, kafka, console, python, store",
    ),
    ([(("sink", 1, "path"), "x")], '[[sink]] 2: `path` does not go with kind = "console"; it is for json, parquet'),
    (
        [(("sink", 0, "options"), {"x": []})],
        "[sink.options] 1: `x` must be a text, a number, or true or false, not a list",
    ),
    ([(("sink", 1), {"kind": "json", "path": "./matches"})], "[[sink]] 2: `path` is that of [[sink]] 1 too: `matches`"),
    ([(("dead_letters", "path"), "matches")], "[dead_letters] `path` is that of [[sink]] 1 too: `matches`"),
    (
        [(SINK_PATH, "ads/out")],
        "[[sink]] 1: `path` `ads/out` lies within the source's, so its rows would come in as events",
    ),
    (
        [(SINK_PATH, "ads/x/out"), (("source", "path"), "a*/?")],
        "[[sink]] 1: `path` `ads/x/out` lies within the source's, so its rows would come in as events",
    ),
    ([(SINK_PATH, "state/out")], "[[sink]] 1: `path` `state/out` lies within the checkpoint's, which is Spark's own"),
    ([(("checkpoint",), "ads/state")], "`checkpoint` `ads/state` lies within the source's path"),
    (
        [(("source",), KAFKA), (("sink", 1), {"kind": "kafka", "servers": "b:9092", "topic": "ads"})],
        "[[sink]] 2: `topic` `ads` is the source's, so its rows would come in as events",
    ),
    (
        [(("sink", 1), {"kind": "python", "function": "save"})],
        '[[sink]] 2: `function` must be a function such as "package.module:name", not `save`',
    ),
    ([(("shown",), {"metrics": "9464"})], '[shown] `metrics` must be an address such as "127.0.0.1:9464", not `9464`'),
    ([(("spark",), {"sql.x": 1})], "[spark] `sql.x` is not a setting of Spark; each begins with `spark.`"),
    ([(("spark",), {"spark.master": "x"})], "[spark] `spark.master` is not set here; the key `master` says it"),
    ([(("schema",), "nowhere.toml")], "`schema` names `nowhere.toml`: there is no such file"),
    ([(("ontology",), "nowhere.toml")], "`ontology` names `nowhere.toml`: there is no such file"),
    ([(("regions",), "s3a://b/r.geojson")], "`regions` must be a file of this machine, not `s3a://b/r.geojson`"),
    ([(("jars",), "empty")], "`jars` names `empty`, which holds no jars"),
    (
        [(("subscriptions",), {"store": "mysql://me:pass@host/db"})],
        '[subscriptions] `store` must be a URL such as "sqlite:///store.db" or "postgresql+psycopg://..."',
    ),
    (
        [(("subscriptions",), {"store": "sqlite:///s.db", "notation": "json"})],
        "[subscriptions] `notation` does not go with `store`; it is for file, directory, table, topic",
    ),
    ([(("sink", 1), {"kind": "store"})], '[[sink]] 2: `store` is missing with kind = "store": ' + STORE_SUMMARY),
    ([(("sink", 1, "keep"), 5)], '[[sink]] 2: `keep` does not go with kind = "console"; it is for store'),
    (
        [(("sink", 1), STORE_SINK), (("matching", "per"), "event")],
        '[[sink]] 2: `kind` cannot be "store" with per = "event" in [matching]: a store has a row for each match',
    ),
    (
        [(("dead_letters",), STORE_SINK)],
        '[dead_letters] `kind` cannot be "store", which takes matches and detections',
    ),
    (
        [*WHOLE, (("source", "id"), "document")],
        "[source] `id` cannot be `document`, the column of the events' text",
    ),
    (
        [*WHOLE, (("source", "time"), "ID")],
        "[source] `time` cannot be `ID`, as `id` is: they are columns of their own",
    ),
]


@pytest.mark.parametrize(("steps", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_a_mistake_is_told_once_and_in_these_words(mistakes, steps, message):
    assert mistakes(change_good(*steps)) == [message]


def test_a_file_that_does_not_load_is_told_in_its_own_words(mistakes):
    (message,) = mistakes({**GOOD, "schema": "bad_schema.toml"})
    assert message.startswith("`schema` does not load:\n  `price`: unknown kind `numbr`; the kinds are")
    (message,) = mistakes({**GOOD, "schema": {"price": "numbr"}})
    assert message.startswith("`schema` does not load:\n  `price`: unknown kind `numbr`")
    assert mistakes({**GOOD, "regions": "schema.toml"})[0].startswith("`regions` does not load:\n  ")


def test_what_needs_an_id_says_so(mistakes):
    kafka = {"kind": "kafka", "servers": "b:1", "topic": "t"}
    assert mistakes(change_good((("source", "id"), ...), (("matching", "per"), "event"), (("sink", 1), kafka))) == [
        '[matching] `per` cannot be "event" without `id` in [source]',
        "[duplicates] needs `id` in [source]: it says what comes twice",
        '[[sink]] 2: `kind` cannot be "kafka" without `id` in [source]: the key of a record has it',
    ]


def test_a_function_that_is_not_there_is_told(mistakes):
    def find_mistake(name):
        (mistake,) = mistakes(change_good((("sink", 1), {"kind": "python", "function": name})))
        return mistake

    assert "`no_such_module:save` cannot be imported: ModuleNotFoundError" in find_mistake("no_such_module:save")
    assert "is no function: `pipeline_functions` has nothing of that name" in find_mistake("pipeline_functions:load")


def test_what_is_not_toml_is_told_with_its_line(mistakes):
    assert mistakes('checkpoint = "state"\n[source\n') == [
        "it is not TOML: Expected ']' at the end of a table declaration (at line 2, column 8)"
    ]


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(FileError, match=r"cannot read `.*nowhere.toml`"):
        load(tmp_path / "nowhere.toml")


def test_the_error_lists_all_under_the_files_name(place):
    path = place / "two.toml"
    path.write_text(toml({**GOOD, "triger": "x", "nme": "y"}))
    with pytest.raises(TidingsError) as refused:
        load(path, environ={})
    assert str(refused.value).splitlines() == [
        "`two.toml` has 2 mistakes:",
        "line 2: `triger` is not a key; did you mean `trigger`?",
        "line 3: `nme` is not a key; did you mean `name`?",
    ]
    assert refused.value.mistakes == tuple(str(refused.value).splitlines()[1:])


PLANTED = [
    "`triger` is not a key; did you mean `trigger`?",
    "[source] `pth` is not a key; did you mean `path`?",
    "[source] `path` does not go with kind",
    "[source.options] `a` cannot be read: the variable `NOT_SET`",
    "[derived] `_raw`",
    "[subscriptions] `shards` must be at least 1",
    "[subscriptions] `refresh` does not go with `directory`",
    "[matching] `per` cannot be `evnt`",
    "[matching] `keep` names `url` twice",
    "[matching] `limit` must be",
    '[late] `after` must be a duration such as "10 minutes", not `soon`',
    "[[sink]] 2: `kind` cannot be `printer`",
    "[[sink]] 1: `path` `state/out` lies within",
    "[shown] `metrics`",
    "[spark] `sql.x`",
    "`ontology` names `nowhere.toml`",
    "[sorce] is not a table",
]
"""Mistakes of the table above that have nothing to do with each other, by how they begin."""

INDEPENDENT = [
    (steps, message)
    for steps, message in BROKEN
    if any(message.startswith(begins) for begins in PLANTED) and len(steps) == 1 and steps[0][0] != ("source",)
]


def test_there_are_mistakes_to_plant():
    assert len(INDEPENDENT) >= len(PLANTED) - 1


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(st.sampled_from(range(len(INDEPENDENT)))))
def test_any_mistakes_are_told_completely_and_nothing_else(mistakes, chosen):
    picked = [INDEPENDENT[at] for at in sorted(chosen)]
    table = change_good(*(step for steps, _ in picked for step in steps))
    assert sorted(mistakes(table)) == sorted(message for _, message in picked)


# Variables and secrets ---------------------------------------------------------------------------


def test_variables_are_replaced_everywhere(load_here):
    pipeline = load_here(
        change_good(
            (("source", "options"), {"password": "x-${PASSWORD}-y"}),
            (SINK_PATH, "${FOLDER}/out"),
            (("derived",), {"x": "'$${' || '${PASSWORD}'"}),
        ),
        PASSWORD=SECRET,
        FOLDER="/data",
    )
    assert pipeline.source.options == {"password": f"x-{SECRET}-y"}
    assert pipeline.sinks[0].path == "/data/out"
    assert pipeline.derived == {"x": f"'${{' || '{SECRET}'"}


def test_an_empty_variable_gives_nothing(mistakes):
    assert mistakes(change_good((("source", "id"), "${EMPTY}")), EMPTY="") == [
        "[source] `id` is empty: `${EMPTY}` gives nothing"
    ]


def test_an_expanded_text_keeps_its_secret_through_a_pickle():
    text = pickle.loads(pickle.dumps(ExpandedText(SECRET, "${PASSWORD}")))
    assert (text == SECRET, repr(text), text.template) == (True, "'${PASSWORD}'", "${PASSWORD}")


def spots():
    """Every place where a value can be a text."""
    for table, keys in list_tables().items():
        for key in keys:
            above = ("sink", 0) if table == "sink" else (table,) if table else ()
            yield (*above, key, "x") if key == "options" else (*above, key)
    yield from (("derived", "x"), ("spark", "spark.x"), ("schema", "x"))


@pytest.mark.parametrize("spot", list(spots()), ids=lambda spot: ".".join(map(str, spot)))
@pytest.mark.parametrize("text", ["${PASSWORD}", "x/${PASSWORD}/y"])
def test_a_secret_is_nowhere_to_be_seen(place, spot, text):
    path = place / "secret.toml"
    path.write_text(toml(change_good((spot, [text] if spot[-1] == "keep" else text))))
    draft = read(path, environ={"PASSWORD": SECRET})
    assert SECRET not in repr(draft)
    assert SECRET not in str(draft.refuse(FileMistake((), "more")))
    assert SECRET not in repr(draft.refuse().mistakes)
    if draft.pipeline is not None:
        assert SECRET not in str(describe_pipeline(draft.pipeline))
        assert SECRET not in f"{draft.pipeline} {draft.pipeline!r} {draft.events!r}"


def test_the_value_of_an_option_is_never_told(load_here):
    options = {"kafka.sasl.jaas.config": SECRET}
    pipeline = load_here(
        change_good((("source",), {**KAFKA, "options": options}), (("spark",), {"spark.password": SECRET}))
    )
    assert "options `kafka.sasl.jaas.config`" in describe_pipeline(pipeline)["source"]
    assert SECRET not in f"{describe_pipeline(pipeline)} {pipeline!r}"


def test_who_logs_in_by_a_uri_is_not_told(load_here):
    pipeline = load_here(change_good((SINK_PATH, f"s3a://me:{SECRET}@bucket/out")))
    assert describe_pipeline(pipeline)["sink 1"] == "Parquet files in s3a://...@bucket/out; exactly once"


# The page ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", list_tables(), ids=lambda table: table or "top")
def test_the_page_has_every_key_as_it_is_described(table):
    assert build_markdown(table) in PAGE


def test_the_page_has_every_table():
    for name in config.KEYS.sections:
        assert re.search(rf"^###.*`\[+{name}\]+`", PAGE, re.MULTILINE), name


def test_a_pipeline_is_what_the_file_says_and_its_folder():
    assert {*config.Pipeline.__dataclass_fields__} == {*config.PipelineFile.__dataclass_fields__, "folder"}


def test_a_documented_default_is_the_one_that_is_used(load_here, place):
    """A default that the docs write as the file would is what a file without the key gets."""
    small = {
        "checkpoint": "state",
        "source": {"kind": "json", "path": "ads", "columns": "id INT"},
        "subscriptions": {"file": "searches.jsonl"},
        "sink": [{"kind": "console"}],
    }
    pipeline = load_here({**small, "trigger": "1 second", "source": {**small["source"], "largest": "8 MB"}})
    assert pipeline == load_here(small)


# The JSON schema ---------------------------------------------------------------------------------


def test_the_installed_schema_is_that_of_the_settings():
    assert json.loads(reference.SCHEMA_FILE.read_text(encoding="utf-8")) == reference.build_json_schema()


@pytest.mark.parametrize(
    ("steps", "valid"),
    [
        ([], True),
        ([(("trigger",), 1)], False),
        ([(("triger",), "1 s")], False),
        ([(("checkpoint",), ...)], False),
        ([(("source", "kind"), "jsn")], False),
        ([(("source", "path"), ...)], False),
        ([(("source", "topic"), "x")], False),
        ([(("subscriptions", "file"), "x")], False),
        ([(("subscriptions", "refresh"), "1 s")], False),
        ([(("sink", 0, "path"), ...)], False),
        ([(("schema",), {"price": "number"})], True),
        ([(("spark",), {"spark.x": 1})], True),
    ],
)
def test_the_schema_accepts_what_the_file_may_say(steps, valid):
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(reference.build_json_schema())
    assert validator.is_valid(change_good(*steps)) == valid


def test_the_pages_examples_load(load_here):
    first, *others = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    pipeline = load_here(first)
    assert (pipeline.source.id, pipeline.matching.keep) == ("id", ("price",))
    assert len(first.splitlines()) <= 20
    for example in others:
        table = change_good((("late",), ...), (("duplicates",), ...))
        table.update(tomllib.loads(example))
        load_here(table, KAFKA_LOGIN="x")
