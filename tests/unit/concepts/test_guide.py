"""Every example of docs/guide/concepts.md, run, and the example files it shows."""

import doctest
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "guide" / "concepts.md").read_text(encoding="utf-8")


def test_every_example_of_the_guide_holds(monkeypatch):
    monkeypatch.chdir(ROOT)
    text = re.sub(r"^```.*$", "", PAGE, flags=re.MULTILINE)
    examples = doctest.DocTestParser().get_doctest(text, {}, "concepts.md", "concepts.md", 0)
    assert len(examples.examples) > 25
    report = []
    doctest.DocTestRunner().run(examples, out=report.append)
    assert "".join(report) == ""


def test_guide_shows_the_example_file_as_it_is():
    shown = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert shown[0] == (ROOT / "examples" / "ontology.toml").read_text(encoding="utf-8")
    assert all(tomllib.loads(block) for block in shown)
