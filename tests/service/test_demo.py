"""`make demo` as a user has it: a process of its own, and a service below it."""

import os
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")
pytest.importorskip("fastapi", reason="needs tidings[service]")

from tests.kafka.broker import wait_for
from tests.kafka.leash import build_leashed_command
from tests.service.killing import JAVA
from tests.spark.pipeline.crashing import alive, command_of, descendants

import tidings as td
from tidings.service.demo.demo_world import DemoWorld

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
NOW = datetime.now(UTC)
pytestmark = pytest.mark.spark


def build_command(folder, *arguments):
    return build_leashed_command(sys.executable, "-m", "tidings.service.demo", "--out", folder, *arguments)


@pytest.fixture(scope="module")
def demo_run(tmp_path_factory):
    """What the demo leaves and says, in a folder that has something of an earlier one."""
    folder = tmp_path_factory.mktemp("demo")
    (folder / "data" / "checkpoint").mkdir(parents=True)
    (folder / "data" / "store.db").write_text("left over\n")
    command = build_command(folder, "--ads", 120, "--searches", 150, "--seed", 3)
    environ = {**os.environ, "COLUMNS": "150"}
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_the_demo_tells_what_it_found_and_where_it_lies(demo_run):
    folder, output = demo_run
    assert re.search(r"ads posted +│ +120 ", output)
    assert re.search(r"ads refused +│ +1 ", output)
    assert re.search(r"ad-\d+: (`price`|`spot`|the body is not JSON)", output.partition("not be taken, and why")[2])
    assert "A few ads, and the searches that caught them" in output
    for name in ("service.toml", "data/store.db", "data/admin.key", "data/logs/api.log"):
        assert (folder / name).exists()
    assert str(folder) in output


def test_the_demo_shows_an_added_and_a_removed_search(demo_run):
    _, output = demo_run
    added = output.partition("A search that was added while it ran:")[2].partition("\n\n")[0]
    assert re.search(r"caught ad-\d.*; it was added before ad-30", added)
    removed = output.partition("A search that was removed while it ran:")[2].partition("\n\n")[0]
    assert re.search(r"it was removed before ad-90\n +ad-\d.* would have been for it, and it heard of none", removed)


def test_every_ad_of_the_demo_met_the_searches_of_its_act(demo_run):
    """The number of matches is that of the world; the ads of a world are as old as it says, to some minutes."""
    _, output = demo_run
    world = DemoWorld.generate(120, 150, seed=3, now=NOW)
    pairs = sum(map(count_matches, range(4), [world] * 4))
    matches = int(re.search(r"matches +│ +([\d,]+) ", output)[1].replace(",", ""))
    assert abs(matches - pairs) <= sum(is_on_the_verge(ad) for act in world.acts for ad in act.ads) * 150


def count_matches(number, world):
    searches = td.Matcher(now=NOW)
    searches.add_many(list(world.find_searches_before(number + 1).items()))
    return len(searches.match_many([ad for ad in world.acts[number].ads if ad["id"] not in world.damages]))


def is_on_the_verge(ad):
    """Tell whether an ad becomes a day older while the demo runs."""
    return (NOW - ad["posted"]) % timedelta(days=1) > timedelta(days=1, minutes=-10)


def test_the_readme_shows_the_demo_as_it_is(demo_run):
    (listed,) = re.findall(r"^```text\n(Tidings serves at.*?)^```", README, re.MULTILINE | re.DOTALL)
    names = re.findall(r"^│ (.*?) +│", listed, re.MULTILINE)
    headings = re.findall(r"^A .*:$", listed, re.MULTILINE)
    assert len(names) > 5
    assert len(headings) == 5
    assert all(line in demo_run[1] for line in (*headings, *names, "saved searches", "searches are added"))


def is_java_there(pid):
    return any(JAVA in command_of(child) for child in descendants(pid))


def test_ctrl_c_ends_the_demo_and_its_service_without_a_trace_and_waits_for_no_start_of_spark(tmp_path):
    """Spark's Java has just come up: the pipeline, which would go on with the subscriptions, ends there and then."""
    with subprocess.Popen(
        build_command(tmp_path, "--searches", 50), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for(lambda: is_java_there(process.pid) or process.poll() is not None, 120)
        assert process.poll() is None
        started = descendants(process.pid)
        process.send_signal(signal.SIGINT)
        output, wrong = process.communicate(timeout=120)
    assert not any(map(alive, started))
    assert not (tmp_path / "data" / "checkpoint" / "subscriptions").exists()
    assert process.returncode == 130
    assert "goes on from here" in output
    assert "Traceback" not in wrong
    assert "note: stopped" in wrong
