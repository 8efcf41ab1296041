"""`tools/postgres`: where the programs of PostgreSQL are, or in one line how to get them."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def find(folder, **environment):
    own = {"POSTGRES_FOLDER": str(folder), "PATH": "/usr/bin:/bin", **environment}
    command = [str(ROOT / "tools" / "postgres"), "--find"]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=own)


def make_programs(folder):
    folder.mkdir(parents=True)
    for name in ("initdb", "postgres"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return folder


def test_the_newest_version_is_taken(tmp_path):
    make_programs(tmp_path / "9" / "bin")
    newest = make_programs(tmp_path / "15" / "bin")
    (tmp_path / "16" / "bin").mkdir(parents=True)  # its programs are gone
    assert find(tmp_path).stdout == f"{newest}\n"


def test_a_folder_that_is_named_goes_first(tmp_path):
    make_programs(tmp_path / "15" / "bin")
    own = make_programs(tmp_path / "own")
    assert find(tmp_path, POSTGRES_BIN=str(own)).stdout == f"{own}\n"


def test_nothing_is_installed_by_looking(tmp_path):
    done = find(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
