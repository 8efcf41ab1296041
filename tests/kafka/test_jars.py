"""`tools/kafka-jars`, with a Maven that fetches nothing: what it says, leaves behind, and does when it fails."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

FETCHES = """#!/bin/bash
for said; do case $said in -DoutputDirectory=*) folder=${said#*=} ;; esac; done
mkdir -p "$folder"
touch "$folder/a-1.jar" "$folder/b-1.jar"
echo called >>"$CALLS"
"""

FAILS = """#!/bin/bash
echo '[INFO] trying'
echo '[ERROR] no such host'
exit 1
"""


@pytest.fixture
def run_in_folder(tmp_path):
    """Run a command with programs of the test's own before the system's, into a folder of the test's own."""

    def run(*command, ci="", **programs):
        for name, text in programs.items():
            path = tmp_path / "bin" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)
        env = {**os.environ, "KAFKA_FOLDER": str(tmp_path / "jars"), "CALLS": str(tmp_path / "calls"), "CI": ci}
        env["PATH"] = f"{tmp_path / 'bin'}:{env['PATH']}"
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=60)

    return run


def test_jars_are_fetched_once_and_then_it_is_quiet(run_in_folder, tmp_path):
    done = run_in_folder("tools/kafka-jars", mvn=FETCHES)
    assert (done.returncode, done.stdout) == (0, "")
    assert "==> fetching a Kafka broker" in done.stderr
    assert sorted(path.name for path in tmp_path.glob("jars/*/*.jar")) == ["a-1.jar", "a-1.jar", "b-1.jar", "b-1.jar"]
    again = run_in_folder("tools/kafka-jars")
    assert (again.returncode, again.stdout + again.stderr) == (0, "")
    assert (tmp_path / "calls").read_text().count("called") == 2


def test_other_versions_are_fetched_anew(run_in_folder, tmp_path):
    run_in_folder("tools/kafka-jars", mvn=FETCHES)
    (tmp_path / "jars" / ".fetched").write_text("of other versions\n")
    assert "==> fetching" in run_in_folder("tools/kafka-jars").stderr


def test_what_failed_is_told_and_tried_again(run_in_folder, tmp_path):
    done = run_in_folder("tools/kafka-jars", mvn=FAILS)
    assert done.returncode == 1
    assert "[ERROR] no such host\nerror: could not fetch Kafka's broker" in done.stderr
    assert not list(tmp_path.glob("jars/broker*/"))
    assert run_in_folder("tools/kafka-jars", mvn=FETCHES).returncode == 0


def test_without_maven_it_says_how_to_get_one(run_in_folder, tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "dirname", "cat", "cksum"):  # and no mvn
        (programs / name).symlink_to(f"/usr/bin/{name}")
    (programs / "id").write_text("#!/bin/bash\necho 1000\n")
    (programs / "id").chmod(0o755)
    done = run_in_folder("/usr/bin/env", f"PATH={programs}", "tools/kafka-jars")
    assert done.returncode == 1
    assert done.stderr == (
        "error: no Maven to fetch Kafka's jars with; run: sudo apt-get install maven && tools/kafka-jars\n"
    )


def test_make_goes_on_without_the_jars_but_the_gate_does_not(run_in_folder):
    done = run_in_folder("make", "--no-print-directory", "kafka", mvn=FAILS)
    assert (done.returncode, done.stdout) == (0, "==> the Kafka tests will be skipped\n")
    assert run_in_folder("make", "kafka", ci="true").returncode != 0
