"""`service.toml`: what is read from it, and that every mistake is told, together and in these words."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

pytest.importorskip("pydantic", reason="needs tidings[service]")

from tests.unit.service.key_tables import build_markdown, list_tables
from tests.unit.spark.pipeline.config.mistake_lines import without_lines

import tidings as td
from tidings.errors import BadSettings, FileError, TidingsError
from tidings.service import reading
from tidings.service.description import describe_service
from tidings.service.settings import LimitSettings, ServiceSettings
from tidings.service.store.base import OwnerRules

PAGE = (Path(__file__).parents[3] / "docs" / "guide" / "service.md").read_text(encoding="utf-8")
SECRET = "swordfish-4711"
KAFKA = '[events]\nto = "kafka"\nservers = "b:1"\ntopic = "ads"\n'
EVENT_KEYS = ", ".join(list_tables()["events"])

WHOLE = """\
data = "here"
host = "0.0.0.0"
port = 9000
workers = 2
store = "sqlite:///other.db"
trigger = "1 s"
ontology = "products.toml"
[schema]
price = "number"
seller.kind = "text"
[events]
id = "number"
time = "posted"
to = "kafka"
servers = "b:1"
topic = "ads"
kept = "2 days"
within = "5 min"
[limits]
body = "1 MB"
event = "10 kB"
[matches]
keep = 5
[patterns]
lateness = "1 s"
idle = "never"
ahead = "2 h"
[housekeeping]
every = "5 min"
[owners.shop]
only = "price < 100"
subscriptions = 10
[owners."a.b"]
events_per_second = 0.5
[spark]
spark.driver.memory = "2g"
"""


@pytest.fixture
def read_here(tmp_path):
    (tmp_path / "products.toml").write_text("[trees.product.children.product.car]\n")

    def read_text(text, **environ):
        path = tmp_path / "service.toml"
        path.write_text(text, encoding="utf-8")
        return reading.read_service(path, environ=environ)

    return read_text


@pytest.fixture
def mistakes(read_here, tmp_path):
    def find_mistakes(text, **environ):
        with pytest.raises(BadSettings) as refused:
            read_here(text, **environ)
        return [line.replace(f"{tmp_path}/", "") for line in without_lines(refused.value.mistakes, text)]

    return find_mistakes


# What is read ------------------------------------------------------------------------------------


def test_an_empty_file_and_no_file_are_the_defaults(read_here, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    defaults = ServiceSettings(data=tmp_path / "tidings-data")
    assert read_here("") == reading.read_service(None) == defaults
    assert defaults.store_url == f"sqlite:///{tmp_path}/tidings-data/store.db"
    assert defaults.events_folder == tmp_path / "tidings-data" / "events"


def test_every_key_reaches_the_settings(read_here, tmp_path):
    settings = read_here(WHOLE)
    assert (settings.data, settings.host, settings.port, settings.workers) == (tmp_path / "here", "0.0.0.0", 9000, 2)
    assert settings.store_url == f"sqlite:///{tmp_path}/other.db"
    assert list(settings.vocabulary.schema) == ["price", "seller.kind"]
    assert settings.vocabulary.ontology is not None
    events = settings.events
    assert (events.id, events.time, events.to, events.servers, events.topic) == (
        "number",
        "posted",
        "kafka",
        "b:1",
        "ads",
    )
    assert (events.kept, events.within) == (timedelta(days=2), timedelta(minutes=5))
    assert settings.limits == LimitSettings(body=1_000_000, event=10_000)
    patterns = settings.patterns
    assert (settings.matches.keep, patterns.lateness, patterns.idle) == (5, timedelta(seconds=1), None)
    assert patterns.ahead == timedelta(hours=2)
    assert settings.housekeeping.every == timedelta(minutes=5)
    assert settings.owners == {
        "shop": OwnerRules(owner="shop", only="price < 100", subscriptions=10),
        "a.b": OwnerRules(owner="a.b", events_per_second=0.5),
    }
    assert (settings.trigger, settings.spark) == ("1 s", {"spark.driver.memory": "2g"})


def test_the_command_line_wins_over_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "service.toml").write_text(WHOLE.replace('ontology = "products.toml"\n', ""))
    settings = reading.read_service("service.toml", data="elsewhere", store="sqlite:///x.db", environ={})
    assert (settings.data, settings.store) == (tmp_path / "elsewhere", f"sqlite:///{tmp_path}/x.db")
    assert settings.port == 9000


def test_a_process_that_another_starts_reads_the_same_settings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "service.toml").write_text(f'store = "postgresql+psycopg://me:{SECRET}@db/x"\nport = 9000\n')
    for file, store in (("service.toml", None), (None, "sqlite:///x.db"), (None, None)):
        settings = reading.read_service(file, data="d", store=store, environ={})
        assert reading.read_exported(reading.export_settings(file, settings)) == settings
    assert SECRET in reading.export_settings("x", reading.read_service("service.toml", environ={}))[reading.STORE]


def test_a_store_of_the_command_line_is_checked_and_never_quoted():
    for url in (f"mysql://me:{SECRET}@db/x", "memory://", "sqlite://", "store.db"):
        with pytest.raises(TidingsError, match="the store must be a URL such as") as refused:
            reading.resolve_store(url)
        assert SECRET not in str(refused.value)
    with pytest.raises(TidingsError, match="the port must be at most 65535, not `70000`"):
        reading.check_port(70_000)


# Mistakes ----------------------------------------------------------------------------------------

BROKEN = [
    ("port = 99999", ["`port` must be at most 65535, not `99999`"]),
    ('hots = "x"', ["`hots` is not a key; did you mean `host`?"]),
    ("[event]\nid = 'x'", ["[event] is not a table of a service; did you mean `events`?"]),
    ('store = "mysql://x"', ['`store` must be a URL such as "sqlite:///store.db" or "postgresql+psycopg://..."']),
    (
        '[events]\nto = "kafka"\nserver = "b:1"',
        [
            '[events] `topic` is missing with to = "kafka": the topic',
            "[events] `server` is not a key; did you mean `servers`?",
        ],
    ),
    ('[events]\ntopic = "ads"', ['[events] `topic` does not go with to = "folder"; it is for kafka']),
    ('[events]\nid = "Document"', ["[events] `id` cannot be `Document`, the pipeline's name for the whole event"]),
    ('[events]\ntime = "ID"', ["[events] `time` cannot be `ID`, as `id` is: they are fields of their own"]),
    ('[limits]\nevent = "20 MB"', ["[limits] `event` is more than `body`, the largest request (8 MB)"]),
    ("[limits]\nrequests_per_second = 0", ["[limits] `requests_per_second` must be a number above zero, not `0`"]),
    ('[housekeeping]\nevery = "soon"', ['[housekeeping] `every` must be a duration such as "10 minutes", not `soon`']),
    ('[patterns]\nmodel = "nowhere"', ["[patterns] `model` names `nowhere`: there is no such file"]),
    ("[owners.shop]\nonyl = 'x'", ["[owners.shop] `onyl` is not a key; did you mean `only`?"]),
    ("[owners]\nshop = 3", ["[owners.shop] must be a table, not a whole number"]),
    ("owners = 3", ["[owners] must be a table, not a whole number"]),
    (
        '[schema]\nprice = "number"\n[owners.shop]\nonly = "prise > 3"',
        [
            "[owners.shop] `only` cannot be read:\n"
            "  unknown attribute `prise`; did you mean `price`?\n    prise > 3\n    ^^^^^"
        ],
    ),
    (
        '[events]\nprotocol = "SASL_SSL"\nusername = "me"',
        [
            '[events] `protocol` does not go with to = "folder"; it is for kafka',
            '[events] `username` does not go with to = "folder"; it is for kafka',
        ],
    ),
    (
        f'{KAFKA}protocol = "SASL_SSL"\nusername = "me"',
        [
            '[events] `password` is missing with protocol = "SASL_SSL": '
            'its password, best as a variable: "${KAFKA_PASSWORD}"'
        ],
    ),
    (
        f'{KAFKA}protocol = "SSL"\nusername = "me"\npassword = "{SECRET}"',
        [
            '[events] `username` does not go with protocol = "SSL"; it is for SASL_PLAINTEXT, SASL_SSL',
            '[events] `password` does not go with protocol = "SSL"; it is for SASL_PLAINTEXT, SASL_SSL',
        ],
    ),
    (
        f'{KAFKA}ca = "service.toml"',
        ['[events] `ca` does not go with protocol = "PLAINTEXT"; it is for SSL, SASL_SSL'],
    ),
    (
        f'{KAFKA}protocol = "SASL"\nusername = "me"',
        ["[events] `protocol` cannot be `SASL`; did you mean `SSL`?"],
    ),
    (
        f'{KAFKA}protocol = "SASL_SSL"\nusername = "me"\npassword = 4711\nmechanism = "GSSAPI"\nca = "x.pem"',
        [
            "[events] `password` must be a text, not a whole number",
            "[events] `mechanism` cannot be `GSSAPI`; it is one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
            "[events] `ca` names `x.pem`: there is no such file",
        ],
    ),
    (f'{KAFKA}sasl = {{password = "{SECRET}"}}', [f"[events] `sasl` is not a key; the keys are {EVENT_KEYS}"]),
]


@pytest.mark.parametrize(("text", "words"), BROKEN, ids=[words[0].partition("\n")[0] for _, words in BROKEN])
def test_each_mistake_is_told_in_these_words(mistakes, text, words):
    assert mistakes(text) == words


def test_mistakes_come_together_in_the_order_of_their_lines(read_here):
    with pytest.raises(BadSettings) as refused:
        read_here("\n".join(text for text, _ in BROKEN[:2]) + "\n" + BROKEN[7][0] + "\n[schema]\nprice = 'numbr'\n")
    numbers = [int(re.match(r"line (\d+)", line)[1]) for line in refused.value.mistakes]
    assert numbers == [1, 2, 4, 5]
    assert str(refused.value).startswith("`service.toml` has 4 mistakes:\nline 1: ")


def test_an_owners_name_is_checked(read_here):
    with pytest.raises(BadSettings, match=r"line 2: \[owners\] `a b` cannot be an owner's name: 1 to 64 letters"):
        read_here('port = 9000\n[owners."a b"]\nsubscriptions = 1\n')


def test_an_only_is_not_read_by_a_schema_that_is_wrong(mistakes):
    text = 'schema = "nowhere.toml"\n[owners.shop]\nonly = "prise > 3"'
    assert mistakes(text) == ["`schema` names `nowhere.toml`: there is no such file"]


def test_a_model_that_is_none_is_told(mistakes, tmp_path):
    (tmp_path / "bad.model").write_text("x")
    (line,) = mistakes('[patterns]\nmodel = "bad.model"')
    assert line.startswith("[patterns] `model` does not load:\n  ")
    td.Model().save(tmp_path / "good.model")
    assert reading.read_service(None) is not None


def test_what_is_no_file_and_no_toml_is_refused(read_here, tmp_path):
    with pytest.raises(FileError, match="nowhere"):
        reading.read_service(tmp_path / "nowhere.toml")
    with pytest.raises(BadSettings, match="it is not TOML"):
        read_here("port = ")


# Secrets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["${URL}", "postgresql+psycopg://me:${PASSWORD}@db/x", f"postgresql+psycopg://me:{SECRET}@db/x"]
)
def test_the_password_of_the_store_is_never_shown(read_here, url):
    text = f'store = "{url}"\n'
    settings = read_here(text, URL=f"postgresql+psycopg://me:{SECRET}@db/x", PASSWORD=SECRET)
    assert settings.store_url == f"postgresql+psycopg://me:{SECRET}@db/x"
    assert SECRET not in repr(settings)
    assert SECRET not in str(describe_service(settings))


@pytest.mark.parametrize("password", ["${PASSWORD}", SECRET])
def test_the_login_at_the_brokers_is_described_without_its_password(read_here, password, tmp_path):
    (tmp_path / "ca.pem").touch()
    login = f'username = "${{USER}}"\npassword = "{password}"\nca = "ca.pem"\nmechanism = "SCRAM-SHA-512"\n'
    settings = read_here(f'{KAFKA}protocol = "SASL_SSL"\n{login}', USER="ann", PASSWORD=SECRET)
    assert (settings.events.username, settings.events.password) == ("ann", SECRET)
    shown = f"at b:1 (SASL_SSL as ${{USER}} by SCRAM-SHA-512, authorities of {tmp_path}/ca.pem); id"
    assert shown in describe_service(settings)["events"]
    assert SECRET not in repr(settings) + str(describe_service(settings))


def test_a_description_has_every_part(read_here):
    parts = describe_service(read_here(WHOLE))
    assert parts["address"] == "0.0.0.0:9000, 2 processes"
    assert (
        parts["events"]
        == "Kafka topic ads at b:1 (PLAINTEXT); id `number`; time `posted`; doubles left out within 5 min"
    )
    assert parts["schema"] == "2 attributes, an ontology"
    assert parts["owners"] == "`shop`, `a.b`"


# The page ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", list_tables())
def test_the_guide_has_the_table_of_keys(table):
    assert build_markdown(table) in PAGE


def test_the_example_is_read():
    path = Path(__file__).parents[3] / "examples" / "service" / "service.toml"
    environ = {"TIDINGS_DATABASE": f"postgresql+psycopg://me:{SECRET}@127.0.0.1:5433/tidings", "KAFKA_SERVERS": "b:1"}
    settings = reading.read_service(path, environ=environ)
    assert (settings.events.to, settings.owners["swiss-cars"].only) == ("kafka", "country = 'CH'")
    assert SECRET not in str(describe_service(settings))
