"""docs/guide/service.md, run as a reader would: `tidings serve` with its pipeline, and its commands in one shell."""

import json
import re
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")
pytest.importorskip("fastapi", reason="needs tidings[service]")

from tests.kafka.broker import find_free_port, wait_for
from tests.kafka.leash import build_leashed_command
from tests.service.guide_shell import GuideShell, list_examples, make_timeless
from tests.spark.pipeline.crashing import alive, descendants

from tidings.service.api.app import build_app
from tidings.service.delivery import check_delivery
from tidings.service.settings import ServiceSettings
from tidings.service.store.memory import MemoryStore

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "service.md").read_text(encoding="utf-8")
README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
OPERATIONS = (Path(__file__).parents[2] / "docs" / "guide" / "operations.md").read_text(encoding="utf-8")
EXAMPLES = list_examples(PAGE)
pytestmark = [pytest.mark.spark, pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")]


class GuideService:
    """The service of the page, and what it said."""

    def __init__(self, folder):
        self.folder = folder
        for name, text in re.findall(r"```\w+ (\S+)\n(.*?)```", PAGE, re.DOTALL):
            (folder / name).write_text(text, encoding="utf-8")
        self.port = find_free_port()
        command = [sys.executable, "-m", "tidings", "serve", "service.toml", "--port", self.port]
        with (folder / "output").open("w") as output:
            self.process = subprocess.Popen(
                build_leashed_command(*map(str, command)), cwd=folder, stdout=output, stderr=subprocess.STDOUT
            )

    @property
    def words(self):
        """What it said, as the page shows it."""
        text = (self.folder / "output").read_text()
        return text.replace(f"{self.folder}/", "").replace(f"127.0.0.1:{self.port}", "127.0.0.1:8080")


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    service = GuideService(tmp_path_factory.mktemp("guide"))
    is_over = wait_for(lambda: "events are matched" in service.words or service.process.poll() is not None, 180)
    assert is_over
    assert service.process.poll() is None, service.words
    yield service
    service.process.kill()
    service.process.wait()


@pytest.fixture(scope="module")
def outputs(service):
    """What each command of the page prints, one after the other in one shell."""
    shell = GuideShell(service.folder, service.port)
    yield [shell.follow(command, expected) for command, expected in EXAMPLES]
    shell.close()


def test_the_first_start_says_what_the_page_shows(service):
    (shown,) = re.findall(r"```\n\$ tidings serve\n(.*?)```", PAGE, re.DOTALL)
    assert service.words == shown
    key, folder = service.folder / "tidings-data" / "admin.key", service.folder / "tidings-data"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (key, folder)] == [0o600, 0o700]


def test_the_lines_that_it_prints_are_those_of_the_page(service):
    printed = [line.strip() for line in service.words.splitlines() if line.startswith("  curl")]
    assert printed == [command.replace("curl -s", "curl") for command, _ in EXAMPLES[:3]]


@pytest.mark.parametrize("at", range(len(EXAMPLES)), ids=[command[:60] for command, _ in EXAMPLES])
def test_a_command_prints_what_the_page_shows(outputs, at):
    assert make_timeless(outputs[at]) == make_timeless(EXAMPLES[at][1])


def test_it_ends_after_what_it_is_at_and_leaves_nobody_behind(service, outputs):
    started = descendants(service.process.pid)
    assert len(started) > 3
    service.process.send_signal(signal.SIGTERM)
    assert service.process.wait(120) == 0
    assert service.words.splitlines()[-1] == "note: stopped"
    assert wait_for(lambda: not any(map(alive, started)), 20)


def test_the_commands_of_the_readme_are_those_that_it_prints(service):
    (block,) = re.findall(r"## As a service\n.*?```sh\n(.*?)```", README, re.DOTALL)
    key, *lines, stream = block.splitlines()
    assert key == 'KEY="Authorization: Bearer $(cat tidings-data/admin.key)"'
    printed = [line.strip() for line in service.words.splitlines() if line.startswith("  curl")]
    assert [line.replace("$KEY", key.partition("=")[2].strip('"')) for line in lines] == printed
    assert stream == f'curl -H "$KEY" -N {lines[0].split()[-1].removesuffix("subscriptions")}stream'
    assert "/v1/stream" in PAGE


# Without a service -----------------------------------------------------------------------------------


def test_the_pages_name_every_path_of_the_api():
    paths = {route.path for route in build_app(ServiceSettings(), MemoryStore()).routes}
    assert len(paths) > 15
    for path in paths - {"/v1/subscriptions/{id}"}:
        last = path.rpartition("/")[2]
        word = f":{last.partition(':')[2]}" if ":" in last else path.partition("/{")[0].rpartition("/")[2]
        word = word if "}/" not in path else last
        assert word in PAGE or word in OPERATIONS, path


def test_the_deliveries_of_the_page_are_taken():
    (block,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    for line in block.replace("whsec_...", f"whsec_{'A' * 43}=").splitlines():
        assert check_delivery(json.loads(line))[1] == []
