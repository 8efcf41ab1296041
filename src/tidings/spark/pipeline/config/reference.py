"""The JSON schema of `pipeline.toml` for editors, made from the settings classes.

A test compares `pipeline.schema.json` with what is built here. To write that file anew:

    python -m tidings.spark.pipeline.config.reference
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from tidings.configuration.keys import get_default, get_rule
from tidings.spark.pipeline.config.settings import KEYS, ONE_OF, PipelineFile

SCHEMA_FILE = Path(__file__).parents[1] / "pipeline.schema.json"
"""The JSON schema, as it is installed with the package."""


def build_json_schema() -> dict[str, Any]:
    """Return the JSON schema of `pipeline.toml`."""
    schema = TypeAdapter(PipelineFile).json_schema()
    schema["title"] = "pipeline.toml"
    for definition in (schema, *schema["$defs"].values()):
        for name, key in definition["properties"].items():
            definition["properties"][name] = _clean_key(key)
    for section in KEYS.sections:
        if (table := KEYS.find_class(section)) is not None:
            _add_rules(schema["$defs"][table.__name__], section)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _clean_key(key: dict[str, Any]) -> dict[str, Any]:
    """Drop what means nothing in TOML, which has no null: the default None, and null among the types."""
    plain = {name: value for name, value in key.items() if name not in ("title", "default", "anyOf")}
    for choice in key.get("anyOf", ()):
        plain |= choice if choice != {"type": "null"} else {}
    return plain


def _add_rules(definition: dict[str, Any], section: str) -> None:
    """Add the defaults, and which keys go with which kind of the table."""
    conditions: list[dict[str, Any]] = []
    for name, field in KEYS.list(section).items():
        rule, default = get_rule(field), get_default(field)
        with suppress(json.JSONDecodeError):  # a default in words
            definition["properties"][name]["default"] = json.loads(default)
        if rule.kinds:
            is_one_of_them: dict[str, Any] = {"properties": {"kind": {"enum": list(rule.kinds)}}}
            if section in ONE_OF:
                is_one_of_them = {"anyOf": [{"required": [feed]} for feed in rule.kinds]}
            conditions.append({"if": is_one_of_them, "else": {"properties": {name: False}}})
        if rule.required is True:
            conditions[-1]["then"] = {"required": [name]}
        elif rule.required:
            needy = {"properties": {"kind": {"enum": list(rule.required)}}}
            conditions.append({"if": needy, "then": {"required": [name]}})
    if section in ONE_OF:
        definition["oneOf"] = [{"required": [feed]} for feed in ONE_OF[section]]
    if conditions:
        definition["allOf"] = conditions


if __name__ == "__main__":
    SCHEMA_FILE.write_text(json.dumps(build_json_schema(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
