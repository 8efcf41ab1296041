"""What the pages say of pipelines and folders of versions, held against what is written and shown."""

import json
import re
from pathlib import Path

import pytest

import tidings as td
from tidings.matcher.live.sharded_store import TOKENS, compute_shard
from tidings.matcher.tuning import LIVE_TUNING

DOCS = Path(__file__).parents[2] / "docs"
SNAPSHOT = (DOCS / "snapshot.md").read_text(encoding="utf-8").split("## A folder of versions")[1].split("\n## ")[0]
PIPELINE = (DOCS / "guide" / "pipeline.md").read_text(encoding="utf-8")


def test_the_page_shows_a_version_as_it_is_written(tmp_path):
    td.Live(tmp_path).add("s1", "price < 9000")
    real = json.loads((tmp_path / "versions" / "00000002.json").read_text(encoding="utf-8"))
    (block,) = re.findall(r"```\n(.*?)```", SNAPSHOT, re.DOTALL)
    version_on_page = json.loads(block)
    assert version_on_page.keys() == real.keys()
    assert version_on_page["shards"][0].keys() == real["shards"][0].keys()
    for name in ("format", "number", "count", "now", "ids", "needs", "files"):
        assert version_on_page[name] == real[name], name


def test_the_page_names_the_files_of_the_folder(tmp_path):
    live = td.Live(tmp_path)
    live.claim("query", 345)
    assert [path.name for path in (tmp_path / "claims" / "query").iterdir()] == ["0000000345.json"]
    assert "`claims/QUERY/0000000345.json`" in SNAPSHOT
    assert f"last {LIVE_TUNING.claims_kept} claims stay" in SNAPSHOT
    assert f"last {LIVE_TUNING.versions_kept} versions stay" in SNAPSHOT


def test_the_page_says_which_shard_an_id_is_in():
    import hashlib

    assert f"`token * shards // {TOKENS}`" in SNAPSHOT
    for id in ("s1", 17, "Zürich"):
        token = int(hashlib.sha256(str(id).encode()).hexdigest()[:8], 16) % TOKENS
        assert compute_shard(id, 7) == token * 7 // TOKENS


def test_the_pipelines_page_names_every_field_of_a_report():
    pytest.importorskip("pyspark", reason="needs tidings[spark]")
    from tidings.spark.pipeline.monitor.batch_report import BatchReport

    row = next(line for line in PIPELINE.splitlines() if line.startswith("| `lines` | a JSON object"))
    fields = set(re.findall(r"`([a-z_]+)`", row)) - {"lines", "kind", "batch", "status", "warning", "at"}
    rates = {"events_per_second", "matches_per_second"}
    assert fields == {*BatchReport.__dataclass_fields__, *rates} - {"pipeline", "batch", "files_behind"}


def test_the_pipelines_page_names_every_metric_that_is_not_a_count():
    pytest.importorskip("pyspark", reason="needs tidings[spark]")
    from prometheus_client.parser import text_string_to_metric_families

    from tidings.spark.pipeline.monitor.batch_report import COUNT_FIELDS
    from tidings.spark.pipeline.monitor.metrics import Metrics

    metrics = Metrics("127.0.0.1:0", name="p")
    try:
        served = fetch_metrics(metrics.port)
    finally:
        metrics.close()
    names = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in text_string_to_metric_families(served)
    }
    own = {name for name in names if name.startswith("tidings_") and not name.endswith("_created")} - {
        f"tidings_{name}_total" for name in COUNT_FIELDS
    }
    metrics_on_page = set(re.findall(r"`(tidings_[a-z_]+)`", PIPELINE)) - {"tidings_events_total"}
    assert metrics_on_page == own - {"tidings_files_behind"}


def fetch_metrics(port):
    from urllib.request import urlopen

    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return answer.read().decode()


def test_the_pipelines_page_has_the_table_of_the_checkpoint():
    pytest.importorskip("pyspark", reason="needs tidings[spark]")
    from tidings.spark.pipeline.run import checkpoint

    names = re.findall(r"^\| (`\S+`) \|", checkpoint.__doc__, re.MULTILINE)
    section = PIPELINE.split("## Checkpoints and versions")[1].split("\n## ")[0]
    assert re.findall(r"^\| (`\S+`) \|", section, re.MULTILINE) == names


def test_no_figure_is_left_to_be_measured():
    root = Path(__file__).parents[2]
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md")), *sorted((root / "benchmarks").rglob("*.md"))]
    assert [page.name for page in pages if "MEASURE:" in page.read_text(encoding="utf-8")] == []
