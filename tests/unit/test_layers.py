"""The layers of docs/architecture.md are contracts in pyproject.toml, and nothing is let off."""

import tomllib
from pathlib import Path

from importlinter.cli import lint_imports

PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


def test_imports_point_down_only(monkeypatch):
    monkeypatch.setattr("logging.config.dictConfig", lambda _: None)  # it silences the loggers of other tests
    assert lint_imports(config_filename=str(PYPROJECT), no_cache=True) == 0


def test_no_contract_has_an_ignore_list():
    contracts = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    assert not [contract["id"] for contract in contracts if any("ignore" in key for key in contract)]
