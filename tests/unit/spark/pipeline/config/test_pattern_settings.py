"""Patterns in `pipeline.toml`: what is read, every mistake in its words, and how batches of patterns are told."""

import io
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.request import urlopen

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from rich.console import Console
from tests.spark.pipeline.test_pipeline_patterns import ATTACKS as SIZED_ATTACKS
from tests.spark.pipeline.test_pipeline_patterns import PIPELINE
from tests.unit.spark.pipeline.config.mistake_lines import without_lines

from tidings.errors import BadPipeline
from tidings.spark.pipeline.config import settings
from tidings.spark.pipeline.config.describe import describe_pipeline
from tidings.spark.pipeline.config.load import load
from tidings.spark.pipeline.monitor.batch_report import BatchReport
from tidings.spark.pipeline.monitor.live_view import LiveView
from tidings.spark.pipeline.monitor.metrics import Metrics
from tidings.spark.pipeline.monitor.text_log import PlainText

PAGE = (Path(__file__).parents[5] / "docs" / "guide" / "pipeline.md").read_text(encoding="utf-8")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

ATTACKS = """
pattern intrusion
  fail  = status = 'denied'  and ip = $x
  enter = status = 'success' and ip = $x
  fail{3,} ; enter within 5 min
"""

SOURCE = """
[source]
kind = "json"
path = "logins"
columns = "id BIGINT, ip STRING, status STRING, ts TIMESTAMP"
id = "id"
time = "ts"
"""

PATTERNS = """
[patterns]
file = "attacks.patterns"
lateness = "10 min"
"""

DETECTIONS = """
[[detections]]
kind = "json"
path = "attacks"
"""

ALONE = f'checkpoint = "state"\n{SOURCE}{PATTERNS}{DETECTIONS}'

SUBSCRIPTIONS = """
[subscriptions]
directory = "searches"
[[sink]]
kind = "console"
"""


@pytest.fixture
def load_here(tmp_path):
    """Read a pipeline's text, beside a file of patterns and a folder of subscriptions."""

    def load_text(text, patterns=ATTACKS):
        (tmp_path / "searches").mkdir(exist_ok=True)
        (tmp_path / "attacks.patterns").write_text(patterns)
        (tmp_path / "pipeline.toml").write_text(text)
        return load(tmp_path / "pipeline.toml", environ={"SECRET": "swordfish"})

    return load_text


@pytest.fixture
def mistakes(load_here, tmp_path):
    def find_mistakes(text, **about):
        with pytest.raises(BadPipeline) as refused:
            load_here(text, **about)
        return [line.replace(f"{tmp_path}/", "") for line in without_lines(refused.value.mistakes, text)]

    return find_mistakes


# What is read --------------------------------------------------------------------------------------


def test_patterns_may_stand_alone(load_here, tmp_path):
    pipeline = load_here(ALONE)
    assert (pipeline.subscriptions, pipeline.sinks) == (None, ())
    expected = settings.PatternSettings(file=str(tmp_path / "attacks.patterns"), lateness=timedelta(minutes=10))
    assert pipeline.patterns == expected
    assert pipeline.detections == (settings.SinkSettings("json", path=str(tmp_path / "attacks")),)
    assert not pipeline.needs_kafka


def test_patterns_may_stand_beside_subscriptions_and_say_more(load_here):
    more = 'keep = ["ip"]\nkey = "ip"\n[[detections]]\nkind = "kafka"\nservers = "b:1"\ntopic = "attacks"\n'
    pipeline = load_here(ALONE.replace(DETECTIONS, more) + SUBSCRIPTIONS)
    assert (pipeline.patterns.key, pipeline.patterns.keep) == ("ip", ("ip",))
    assert (pipeline.subscriptions is not None, len(pipeline.sinks)) == (True, 1)
    assert pipeline.needs_kafka


def test_a_check_says_what_patterns_will_do(load_here, tmp_path):
    parts = describe_pipeline(load_here(ALONE.replace('"10 min"', '"10 min"\nkey = "ip"\nkeep = ["status"]')))
    assert "subscriptions" not in parts
    assert "matching" not in parts
    assert parts["patterns"].replace(f"{tmp_path}/", "") == (
        "file attacks.patterns; events wait 10 min to be put in order; parted by `ip`; detections carry `status`"
    )
    assert parts["detections"].replace(f"{tmp_path}/", "") == "JSON files in attacks; exactly once"
    assert "dead letters" not in parts
    letters = parts["letters of patterns"].replace(f"{tmp_path}/", "")
    assert letters == "JSON files in state/dead_letters_of_patterns; exactly once"
    both = describe_pipeline(load_here(f'{ALONE}{SUBSCRIPTIONS}[duplicates]\nwithin = "1 hour"\n'))
    assert both["duplicates"] == "left out of matching when the id came within 1 h"


# Mistakes ------------------------------------------------------------------------------------------

BROKEN = [
    (
        ALONE.replace(PATTERNS, "").replace(DETECTIONS, ""),
        ["[subscriptions] is missing: who wants to hear of what; or [patterns], what is to happen over time"],
    ),
    (ALONE.replace(DETECTIONS, ""), ["[[detections]] is missing: where detections go"]),
    (
        ALONE.replace(PATTERNS, "") + SUBSCRIPTIONS,
        ["[[detections]] needs [patterns], whose detections it gets"],
    ),
    (
        ALONE.replace("[[detections]]", "[detections]"),
        ["[detections] is written [[detections]], since there may be several"],
    ),
    (
        ALONE.replace('lateness = "10 min"', ""),
        [
            "[patterns] `lateness` is missing: how far an event may be behind the newest one seen; "
            "events wait so long to be put in order"
        ],
    ),
    (
        ALONE.replace("10 min", "soon"),
        ['[patterns] `lateness` must be a duration such as "10 minutes", not `soon`'],
    ),
    (
        ALONE.replace("attacks.patterns", "nowhere.patterns"),
        ["[patterns] `file` names `nowhere.patterns`: there is no such file"],
    ),
    (
        ALONE.replace('time = "ts"', "").replace('id = "id"', ""),
        [
            "[patterns] needs `id` in [source]: detections name their events by it",
            "[patterns] needs `time` in [source]: it says when an event happened",
        ],
    ),
    (
        ALONE
        + '[[sink]]\nkind = "console"\n[matching]\nlimit = 5\n[late]\nafter = "1 h"\n[duplicates]\nwithin = "1 h"',
        [
            "[[sink]] needs [subscriptions], whose matches it gets; detections go to [[detections]]",
            "[matching] needs [subscriptions]; what detections carry is `keep` in [patterns]",
            "[late] needs [subscriptions]; how late an event may be for patterns is `lateness` in [patterns]",
            "[duplicates] needs [subscriptions]: it is for matching, and patterns see every event that comes",
        ],
    ),
    (
        ALONE.replace('"10 min"', '"10 min"\nkeep = ["event", "ip", "ip"]'),
        [
            "[patterns] `keep` names `event`, which is what the ids are called; call it otherwise in [derived]",
            "[patterns] `keep` names `ip` twice",
        ],
    ),
    (
        ALONE.replace('kind = "json"\npath = "logins"', 'kind = "socket"\nhost = "h"\nport = 1') + SUBSCRIPTIONS,
        ['[source] `kind` cannot be "socket" with [subscriptions] and [patterns]: it can be read once'],
    ),
    (
        ALONE.replace('"attacks"', '"dead_of_patterns"') + '[dead_letters]\nkind = "json"\npath = "dead"\n',
        ["[dead_letters] of patterns `path` is that of [[detections]] too: `dead_of_patterns`"],
    ),
    (
        ALONE.replace('"attacks"', '"logins/out"'),
        ["[[detections]] `path` `logins/out` lies within the source's, so its rows would come in as events"],
    ),
]


@pytest.mark.parametrize(("text", "words"), BROKEN, ids=[words[0] for _, words in BROKEN])
def test_each_mistake_is_told_in_these_words(mistakes, text, words):
    assert mistakes(text) == words


def test_a_bad_pattern_is_shown_with_its_line_and_a_caret(mistakes):
    (message,) = mistakes(ALONE, patterns=ATTACKS.replace("; enter", "; entr"))
    assert message.splitlines() == [
        "[patterns] `file` does not load:",
        "  line 5: no filter is called `entr`; did you mean `enter`?",
        "      fail{3,} ; entr within 5 min",
        "                 ^^^^",
    ]


def test_the_guides_pattern_loads_and_its_mistake_is_shown_as_it_is(load_here, mistakes):
    (pattern,) = re.findall(r"^```\n(pattern .*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (shown,) = re.findall(r"^```\nline \d+: (\[patterns\] .*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert load_here(ALONE, patterns=pattern).patterns is not None
    assert mistakes(ALONE, patterns=pattern.replace("; enter", "; entr")) == [shown.rstrip()]


def test_a_file_without_patterns_is_refused(mistakes):
    assert mistakes(ALONE, patterns="# later\n") == [
        "[patterns] `file` does not load:\n  `attacks.patterns` holds no pattern; one begins with a line `pattern NAME`"
    ]


def test_a_secret_in_the_files_name_is_not_shown(mistakes):
    messages = mistakes(ALONE.replace("attacks.patterns", "${SECRET}.patterns"))
    assert messages == ["[patterns] `file` names `${SECRET}.patterns`: there is no such file"]


# How it is told ------------------------------------------------------------------------------------


def report(batch=3, **about):
    fields = {"started": NOON, "seconds": 2.0, "events": 1000, "query": "patterns", "patterns": 12, "matches": 0}
    return BatchReport("logins", batch, **{**fields, "detections": 4, "late": 2, "dead_letters": 2, **about})


def beside():
    """Return a batch of matching and one of patterns over the same events."""
    matching = BatchReport("logins", 7, NOON, 2.0, 1000, 50, subscriptions=9, version=1, lag={"a-0": 5})
    return matching, report(beside=True, lag={"a-0": 900})


def test_what_matching_counts_as_well_is_not_summed_up_twice():
    assert [report.count_for_total("events") for report in beside()] == [1000, 0]
    assert [report.count_for_total("detections") for report in beside()] == [0, 4]
    assert report().count_for_total("events") == 1000


def lines(*reports, plain=False):
    console = Console(file=io.StringIO(), width=90, highlight=False)
    watch = PlainText(console) if plain else LiveView(console, name="logins", now=lambda: NOON + timedelta(seconds=10))
    for report in reports:
        watch.report(report)
    watch.close()
    return [" ".join(line.strip("│ ").split()) for line in console.file.getvalue().splitlines()]


def test_the_view_shows_patterns_beside_subscriptions_and_alone():
    both = lines(*beside())
    assert {"events/s 100 events 1,000", "subscriptions 9 version 1", "patterns 12 detections 4"} <= set(both)
    assert {"dead letters 2 late 2", "behind 5 records: a-0 5"} <= set(both)
    alone = lines(report())
    assert {"events/s 100 events 1,000", "patterns 12 detections 4", "dead letters 2 late 2"} <= set(alone)
    assert not [line for line in alone if "subscriptions" in line or "matches" in line]


def test_a_line_of_text_is_about_one_query():
    first, *rest = lines(*beside(), plain=True)
    assert first.startswith("batch 7: 1,000 events")
    assert rest == [
        "patterns, batch 3: 1,000 events in 2.0 s (500/s), 4 detections, 2 dead letters, 2 late, 12 patterns, "
        "900 records behind"
    ]


def test_metrics_have_detections_and_the_patterns_own_batch():
    metrics = Metrics("127.0.0.1:0", name="logins")
    try:
        for report in beside():
            metrics.report(report)
        with urlopen(f"http://127.0.0.1:{metrics.port}/metrics", timeout=10) as answer:
            served = dict(line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if line[0] != "#")
    finally:
        metrics.close()
    counters = {name.removesuffix('{pipeline="logins"}'): float(value) for name, value in served.items()}
    assert (counters["tidings_events_total"], counters["tidings_detections_total"]) == (1000, 4)
    assert (counters["tidings_batch"], counters["tidings_pattern_batch"], counters["tidings_patterns"]) == (
        7,
        3,
        12,
    )
    assert counters['tidings_lag_records{partition="a-0",pipeline="logins"}'] == 5


@pytest.mark.parametrize(
    ("pipeline", "words"),
    [
        ("horizon = 10", "`horizon` needs `model`: forecasts are made with one"),
        ('tell = "every"', "`tell` needs `model`"),
        ('model = "attacks.patterns"', "`model` needs `horizon`"),
        ('model = "attacks.patterns"\nhorizon = 10', "`model` does not load:"),
        ('model = "nowhere"\nhorizon = 10', "`model`"),
        (
            'model = "nowhere"\nhorizon = "soon"',
            '`horizon` must be a number of events, "10 own events" or "5 min", not `soon`',
        ),
        ('model = "nowhere"\nhorizon = 0', '`horizon` must be a number of events, "10 own events" or "5 min", not `0`'),
        ('model = "nowhere"\nthreshold = 2', "`threshold` must be a probability from 0 to 1, not `2`"),
        ('model = "nowhere"\nstep = true', "`step` must be a probability from 0 to 1, not true or false"),
        ('model = "nowhere"\ntell = "often"', "`tell` cannot be `often`"),
    ],
)
def test_mistakes_about_forecasts_in_a_pipeline_are_told(tmp_path, pipeline, words):
    (tmp_path / "ads").mkdir()
    (tmp_path / "attacks.patterns").write_text(SIZED_ATTACKS)
    (tmp_path / "pipeline.toml").write_text(PIPELINE.replace("KEEP", pipeline))
    with pytest.raises(BadPipeline) as caught:
        load(tmp_path / "pipeline.toml")
    assert f"[patterns] {words}" in str(caught.value)
