"""The keys of `pipeline.toml` by table, and the Markdown tables of them that stand in docs/guide/pipeline.md."""

from tidings.spark.pipeline.config.reference import get_default
from tidings.spark.pipeline.config.settings import (
    FEEDS,
    SECTIONS,
    TOP_KEYS,
    get_rule,
    list_keys,
)
from tidings.spark.pipeline.config.value_kinds import ValueKind


def list_tables():
    """Return the keys of every table with described keys, by the table's name; the top of the file has the name ""."""
    top = {name: field for name, field in list_keys().items() if name in TOP_KEYS}
    return {"": top, **{name: keys for name in SECTIONS if (keys := list_keys(name))}}


def build_markdown(table):
    """Return the keys of a table as a Markdown table."""
    kinds = "with" if table == "subscriptions" else "kind"
    rows = [build_row(table, name, field) for name, field in list_tables()[table].items()]
    return f"| key | value | default | {kinds} | meaning |\n|---|---|---|---|---|\n" + "".join(rows)


def build_row(table, name, field):
    """Return the line of a key."""
    rule, kind = get_rule(field), next(kind for kind in field.metadata if isinstance(kind, ValueKind))
    default = "**required**" if field.is_required() or rule.required else get_default(field)
    if table == "subscriptions" and name in FEEDS:
        default = "one of these five"
    cells = (f"`{name}`", kind.words, default, ", ".join(rule.kinds), field.description or "")
    return "| " + " | ".join(cells) + " |\n"
