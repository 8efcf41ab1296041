"""docs/guide/patterns.md, docs/guide/forecasts.md and the README's part on patterns: their examples run."""

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PATH = ROOT / "docs" / "guide" / "patterns.md"
PAGE = PATH.read_text(encoding="utf-8")
AHEAD = PATH.with_name("forecasts.md")
FORECASTS = AHEAD.read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8").split("## Patterns\n")[1].split("\n## ")[0]
MARK = "=== that was it ==="


@pytest.mark.parametrize(("path", "least"), [(PATH, 40), (AHEAD, 20)], ids=["patterns", "forecasts"])
def test_the_examples_run(path, least, monkeypatch):
    monkeypatch.chdir(ROOT)
    failed, tried = doctest.testfile(str(path), module_relative=False, encoding="utf-8")
    assert tried >= least
    assert failed == 0


def commands(page):
    blocks = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    return [command for block in blocks for command in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)]


def run_page(page, folder):
    """What each command prints, messages after results, beside the shipped example."""
    for name in ("attacks.patterns", "logins.jsonl", "pumps.patterns", "pumps.jsonl"):
        shutil.copy(ROOT / "examples" / name, folder)
    for name, text in re.findall(r"```\w+ (\S+)\n(.*?)```", page, re.DOTALL):
        (folder / name).write_text(text, encoding="utf-8")
    script = f'tidings() {{ "{sys.executable}" -m tidings "$@"; }}\n'
    commands_text = "".join(
        f"{{ {command}\n}} 2> messages; cat messages; echo '{MARK}'\n" for command, _ in commands(page)
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TIDINGS_")}
    done = subprocess.run(
        ["bash", "-c", script + commands_text], cwd=folder, env=clean, capture_output=True, text=True, check=True
    )
    return [sizeless(text) for text in done.stdout.split(f"{MARK}\n")[:-1]]


def sizeless(text):
    """How long it took, and how well a model was packed, are no part of the example."""
    return re.sub(r"[\d,]+ bytes", "5,000 bytes", re.sub(r"\(\d+\.\d s\)", "(0.1 s)", text))


@pytest.mark.parametrize("page", [PAGE, FORECASTS, README], ids=["patterns", "forecasts", "README"])
def test_commands_print_what_the_page_shows(page, tmp_path):
    shown = [text for _, text in commands(page)]
    assert shown
    assert run_page(page, tmp_path) == shown


def test_the_readme_s_example_prints_what_it_says(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    (source,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(source, "README patterns", "exec"), {})
    expected = re.search(r"print\(.*?# (.*)", source).group(1)
    assert capsys.readouterr().out.splitlines()[0] == expected


@pytest.mark.parametrize("page", [PAGE, FORECASTS], ids=["patterns", "forecasts"])
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page):
        assert (PATH.parent / target).exists(), target


def test_the_shipped_reports_are_what_the_tool_makes():
    made = subprocess.run([sys.executable, ROOT / "tools" / "make-pumps"], capture_output=True, check=True)
    assert made.stdout == (ROOT / "examples" / "pumps.jsonl").read_bytes()
