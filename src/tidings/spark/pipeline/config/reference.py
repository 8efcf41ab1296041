"""The JSON schema of `pipeline.toml` for editors, made from the settings classes.

A test compares `pipeline.schema.json` with what is built here. To write that file anew:

    python -m tidings.spark.pipeline.config.reference
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter
from pydantic_core import PydanticUndefined

from tidings.spark.pipeline.config import settings
from tidings.spark.pipeline.config.settings import FEEDS, PipelineFile, get_rule

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

SCHEMA_FILE = Path(__file__).parents[1] / "pipeline.schema.json"
"""The JSON schema, as it is installed with the package."""


def get_default(field: FieldInfo) -> str:
    """Return the default of a key as the file would write it, or in words; empty where there is none."""
    rule = get_rule(field)
    if rule.default or field.is_required() or field.default in (None, PydanticUndefined):
        return rule.default
    return json.dumps(field.default)


def build_json_schema() -> dict[str, Any]:
    """Return the JSON schema of `pipeline.toml`."""
    schema = TypeAdapter(PipelineFile).json_schema()
    schema["title"] = "pipeline.toml"
    for definition in (schema, *schema["$defs"].values()):
        for name, key in definition["properties"].items():
            definition["properties"][name] = _clean_key(key)
    for section in settings.SECTIONS:
        if (table := settings.find_settings_class(section)) is not None:
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
    for name, field in settings.list_keys(section).items():
        rule, default = get_rule(field), get_default(field)
        with suppress(json.JSONDecodeError):  # a default in words
            definition["properties"][name]["default"] = json.loads(default)
        if rule.kinds:
            is_one_of_them: dict[str, Any] = {"properties": {"kind": {"enum": list(rule.kinds)}}}
            if section == "subscriptions":
                is_one_of_them = {"anyOf": [{"required": [feed]} for feed in rule.kinds]}
            conditions.append({"if": is_one_of_them, "else": {"properties": {name: False}}})
        if rule.required and name != "columns":  # not needed with value = "text"
            conditions[-1]["then"] = {"required": [name]}
    if section == "subscriptions":
        definition["oneOf"] = [{"required": [feed]} for feed in FEEDS]
    if conditions:
        definition["allOf"] = conditions


if __name__ == "__main__":
    SCHEMA_FILE.write_text(json.dumps(build_json_schema(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
