"""A store as a feed, as a sink and as the place of patterns; and sources that give whole documents."""

from datetime import timedelta

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tidings.errors import BadPipeline
from tidings.spark.pipeline.config.describe import describe_pipeline
from tidings.spark.pipeline.config.load import load

SERVICE = """\
checkpoint = "state"
[source]
kind = "json"
path = "events"
id = "id"
time = "posted"
[subscriptions]
store = "STORE"
[matching]
keep = ["document"]
[[sink]]
kind = "store"
store = "STORE"
keep = 20
"""
PATTERNS = """
[patterns]
store = "STORE"
lateness = "1 second"
idle = "5 seconds"
ahead = "2 h"
[[detections]]
kind = "store"
store = "STORE"
"""
SECRET = "swordfish-4711"


@pytest.fixture
def load_here(tmp_path):
    def load_text(text, store="sqlite:///data/store.db", **environ):
        path = tmp_path / "pipeline.toml"
        path.write_text(text.replace("STORE", store))
        return load(path, environ=environ)

    return load_text


def test_a_store_is_relative_to_the_file(load_here, tmp_path):
    pipeline, url = load_here(SERVICE + PATTERNS), f"sqlite:///{tmp_path}/data/store.db"
    assert (pipeline.subscriptions.store, pipeline.sinks[0].store, pipeline.patterns.store) == (url, url, url)
    assert (pipeline.sinks[0].keep, pipeline.detections[0].keep) == (20, 1000)
    patterns = pipeline.patterns
    assert (patterns.file, patterns.idle, patterns.ahead) == (None, timedelta(seconds=5), timedelta(hours=2))


def test_a_source_without_columns_has_documents(load_here):
    assert load_here(SERVICE).source.has_documents
    assert not load_here(
        SERVICE.replace('id = "id"', 'id = "id"\ncolumns = "id INT, document STRING"')
    ).source.has_documents
    for source in ('kind = "kafka"\nservers = "b:1"\ntopic = "t"', 'kind = "socket"\nhost = "h"\nport = 1'):
        text = SERVICE.replace('kind = "json"\npath = "events"', source)
        assert load_here(text).source.has_documents
        assert not load_here(text.replace('id = "id"', 'id = "value"\nvalue = "text"')).source.has_documents


def test_a_check_says_what_a_store_is_for(load_here, tmp_path):
    parts = {
        name: text.replace(f"{tmp_path}/", "")
        for name, text in describe_pipeline(load_here(SERVICE + PATTERNS)).items()
    }
    assert parts["source"] == "JSON files in events; documents; id `id`; time `posted`"
    assert parts["subscriptions"] == "store sqlite:///data/store.db, followed"
    assert parts["sink"] == "store sqlite:///data/store.db, the 20 latest of each subscription; exactly once"
    assert parts["patterns"] == (
        "store sqlite:///data/store.db, followed; events wait 1 s to be put in order; "
        "none is more than 2 h ahead of its batch; after 5 s without events by the clock"
    )


@pytest.mark.parametrize("given_as", ["variable", "whole", "plain"])
def test_the_password_of_a_store_is_never_shown(load_here, given_as):
    url = f"postgresql+psycopg://me:{SECRET}@host/db"
    store = {"variable": "postgresql+psycopg://me:${PASSWORD}@host/db", "whole": "${URL}", "plain": url}[given_as]
    pipeline = load_here(SERVICE + PATTERNS, store, PASSWORD=SECRET, URL=url)
    assert pipeline.subscriptions.store == url
    assert SECRET not in repr(pipeline)
    assert SECRET not in str(describe_pipeline(pipeline))


def test_patterns_come_from_a_file_or_a_store(load_here):
    with pytest.raises(BadPipeline, match="needs exactly one of `file`, `store`, not `file` and `store`"):
        load_here(SERVICE + PATTERNS.replace("lateness", 'file = "x"\nlateness'))
    with pytest.raises(BadPipeline, match=r"needs exactly one of `file`, `store`$"):
        load_here(SERVICE + PATTERNS.replace('[patterns]\nstore = "STORE"', "[patterns]"))
