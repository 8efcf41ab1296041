"""The commands of examples/service/README.md are commands, with options that there are, and its file is good.

tests/service/test_example.py follows the page for real.
"""

import re
import shlex
from pathlib import Path

import pytest
import typer

from tidings.cli.app import app

EXAMPLE = Path(__file__).parents[3] / "examples" / "service"
PAGE = (EXAMPLE / "README.md").read_text(encoding="utf-8")
BLOCKS = "\n".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL))
COMMANDS = re.findall(r"^tidings (.*)$", BLOCKS, re.MULTILINE)
ENVIRON = {"TIDINGS_DATABASE": "postgresql+psycopg://me:swordfish@127.0.0.1/x", "KAFKA_SERVERS": "127.0.0.1:9092"}


def split_arguments(command):
    """Return the arguments of a command, without its comment and its redirection."""
    words = shlex.split(command, comments=True)
    return words[: words.index(">")] if ">" in words else words


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_is_one(command):
    words, group = split_arguments(command), typer.main.get_command(app)
    context = group.make_context("tidings", [*words])
    while hasattr(group, "resolve_command"):
        name, group, words = group.resolve_command(context, words)
        context = group.make_context(name, [*words], parent=context)
    assert context.command is group


def test_the_page_has_the_commands_of_a_whole_service():
    starts = {" ".join(split_arguments(command)[:2]) for command in COMMANDS}
    assert starts == {"serve service.toml", "service key", "sub add", "sub matches"}


def test_the_files_that_the_page_names_are_there():
    names = set(re.findall(r"[\w-]+\.(?:toml|properties)", PAGE))
    assert names == {"service.toml", "broker.properties"}
    assert all((EXAMPLE / name).is_file() for name in names)
    assert all((EXAMPLE / path).exists() for path in re.findall(r"\]\((\.\.[^)]*)\)", PAGE))


def test_the_file_is_good_and_says_no_secret(tidings, monkeypatch):
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    done = tidings("serve", EXAMPLE / "service.toml", "--check")
    assert (done.code, done.err) == (0, "")
    assert "Kafka topic ads at ${KAFKA_SERVERS} (PLAINTEXT)" in done.out
    assert "swordfish" not in done.out


def test_the_login_that_the_file_shows_is_good_as_well(tidings, monkeypatch, tmp_path):
    for name, value in {**ENVIRON, "KAFKA_PASSWORD": "swordfish"}.items():
        monkeypatch.setenv(name, value)
    text = (EXAMPLE / "service.toml").read_text(encoding="utf-8")
    (tmp_path / "service.toml").write_text(re.sub(r"^# (\w+ = )", r"\1", text, flags=re.MULTILINE))
    done = tidings("serve", "service.toml", "--check")
    assert "(SASL_SSL as tidings by SCRAM-SHA-512)" in done.out
    assert "swordfish" not in done.out
