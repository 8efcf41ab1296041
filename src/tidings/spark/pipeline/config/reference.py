"""The reference of `pipeline.toml`, made from the settings classes: Markdown for the docs, JSON schema for editors.

Tests compare docs/guide/pipeline.md and `pipeline.schema.json` with what is built here. To write the schema anew:

    python -m tidings.spark.pipeline.config.reference
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter
from pydantic_core import PydanticUndefined

from tidings.spark.pipeline.config.settings import (
    FEEDS,
    SECTIONS,
    TOP_KEYS,
    KeyRule,
    PipelineFile,
    SubscriptionSettings,
    get_rule,
    list_keys,
    settings_class,
)
from tidings.spark.pipeline.config.values import ValueKind

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

SCHEMA_FILE = Path(__file__).parents[1] / "pipeline.schema.json"
"""The JSON schema, as it is installed with the package."""


def list_tables() -> dict[str, dict[str, FieldInfo]]:
    """Return the keys of every table with described keys, by the table's name; the top of the file has the name ""."""
    top = {name: field for name, field in list_keys(PipelineFile).items() if name in TOP_KEYS}
    classes = {name: settings_class(name) for name in SECTIONS}
    return {"": top, **{name: list_keys(settings) for name, settings in classes.items() if settings is not None}}


def get_value_kind(field: FieldInfo) -> ValueKind:
    """Return the kind of a key's values."""
    return next(kind for kind in field.metadata if isinstance(kind, ValueKind))


def get_default(field: FieldInfo) -> str:
    """Return the default of a key as the file would write it, or in words; empty where there is none."""
    rule = get_rule(field)
    if rule.default or field.is_required() or field.default in (None, PydanticUndefined):
        return rule.default
    return json.dumps(field.default)


# Markdown ----------------------------------------------------------------------------------------


def build_markdown(table: str) -> str:
    """Return the keys of a table as a Markdown table, as they stand in docs/guide/pipeline.md."""
    kinds = "with" if table == "subscriptions" else "kind"
    rows = [_build_row(table, name, field) for name, field in list_tables()[table].items()]
    return f"| key | value | default | {kinds} | meaning |\n|---|---|---|---|---|\n" + "".join(rows)


def _build_row(table: str, name: str, field: FieldInfo) -> str:
    rule = get_rule(field)
    default = "**required**" if field.is_required() or rule.required else get_default(field)
    if table == "subscriptions" and name in FEEDS:
        default = "one of these five"
    cells = (f"`{name}`", get_value_kind(field).words, default, ", ".join(rule.kinds), field.description or "")
    return "| " + " | ".join(cells) + " |\n"


# JSON schema -------------------------------------------------------------------------------------


def build_json_schema() -> dict[str, Any]:
    """Return the JSON schema of `pipeline.toml`."""
    schema = TypeAdapter(PipelineFile).json_schema()
    schema["title"] = "pipeline.toml"
    for definition in (schema, *schema["$defs"].values()):
        for name, key in definition["properties"].items():
            definition["properties"][name] = _clean_key(key)
    for section in SECTIONS:
        if (settings := settings_class(section)) is not None:
            _add_rules(schema["$defs"][settings.__name__], settings)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _clean_key(key: dict[str, Any]) -> dict[str, Any]:
    """Drop what means nothing in TOML, which has no null: the default None, and null among the types."""
    plain = {name: value for name, value in key.items() if name not in ("title", "default", "anyOf")}
    for choice in key.get("anyOf", ()):
        plain |= choice if choice != {"type": "null"} else {}
    return plain


def _add_rules(definition: dict[str, Any], settings: Any) -> None:
    """Add the defaults, and which keys go with which kind of the table."""
    conditions: list[dict[str, Any]] = []
    for name, field in list_keys(settings).items():
        rule, default = get_rule(field), get_default(field)
        with suppress(json.JSONDecodeError):  # a default in words
            definition["properties"][name]["default"] = json.loads(default)
        if rule.kinds:
            conditions.append({"if": _build_condition(settings, rule), "else": {"properties": {name: False}}})
        if rule.required and name != "columns":  # not needed with value = "text"
            conditions[-1]["then"] = {"required": [name]}
    if settings is SubscriptionSettings:
        definition["oneOf"] = [{"required": [feed]} for feed in FEEDS]
    if conditions:
        definition["allOf"] = conditions


def _build_condition(settings: Any, rule: KeyRule) -> dict[str, Any]:
    if settings is SubscriptionSettings:
        return {"anyOf": [{"required": [feed]} for feed in rule.kinds]}
    return {"properties": {"kind": {"enum": list(rule.kinds)}}}


def format_json_schema() -> str:
    """Return the JSON schema as the text of its file."""
    return json.dumps(build_json_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(format_json_schema(), encoding="utf-8")
