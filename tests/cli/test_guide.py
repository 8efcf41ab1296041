"""Every command of docs/guide/cli.md, run in one shell as a reader would, against what the page shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "cli.md").read_text(encoding="utf-8")
FILES = re.findall(r"```\w+ (\S+)\n(.*?)```", PAGE, re.DOTALL)
BLOCKS = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
EXAMPLES = [example for block in BLOCKS for example in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)]
MARK = "=== that was it ==="


@pytest.fixture(scope="module")
def page_outputs(tmp_path_factory):
    """What each command prints, messages after results; one shell runs them all, so that exports last."""
    folder = tmp_path_factory.mktemp("guide")
    for name, text in FILES:
        (folder / name).write_text(text, encoding="utf-8")
    prelude = f'tidings() {{ "{sys.executable}" -m tidings "$@"; }}\n'
    script = prelude + "".join(
        f"{{ {command}\n}} 2> messages; cat messages; echo '{MARK}'\n" for command, _ in EXAMPLES
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TIDINGS_")}
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=clean, capture_output=True, text=True, check=True)
    return done.stdout.split(f"{MARK}\n")


def test_the_page_has_its_examples():
    assert len(EXAMPLES) > 20
    assert {command.split()[0] for command, _ in EXAMPLES if command.startswith("tidings")} == {"tidings"}


@pytest.mark.parametrize("at", range(len(EXAMPLES)), ids=[command for command, _ in EXAMPLES])
def test_a_command_prints_what_the_page_shows(page_outputs, at):
    def timeless(text):
        text = re.sub(r"\(\d+\.\d s\)", "(0.1 s)", text)
        return re.sub(r" +[\d.,]+ (ns|µs|ms|bytes)", r" 1 \1", text)  # what the planner's constants say, and the layout

    assert timeless(page_outputs[at]) == timeless(EXAMPLES[at][1])


def test_every_command_is_on_the_page(tidings):
    listed = re.findall(r"│ (\w+)  ", tidings("--help").out.split("Commands")[1])
    assert listed
    assert all(re.search(rf"\$ .*tidings {name}\b", PAGE) for name in listed)
