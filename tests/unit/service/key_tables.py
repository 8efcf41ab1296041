"""The keys of `service.toml` by table, and the Markdown tables of them that stand in docs/guide/service.md."""

from tidings.configuration.keys import get_default, get_rule
from tidings.configuration.value_kinds import ValueKind
from tidings.service.settings import KEYS


def list_tables():
    """Return the keys of every table with described keys, by the table's name; the top of the file has the name ""."""
    top = {name: field for name, field in KEYS.list().items() if name in KEYS.top}
    return {"": top, **{name: keys for name in KEYS.sections if (keys := KEYS.list(name))}}


def build_markdown(table):
    """Return the keys of a table as a Markdown table."""
    rows = [build_row(name, field) for name, field in list_tables()[table].items()]
    return "| key | value | default | meaning |\n|---|---|---|---|\n" + "".join(rows)


def build_row(name, field):
    """Return the line of a key."""
    rule, kind = get_rule(field), next(kind for kind in field.metadata if isinstance(kind, ValueKind))
    default = "**required** for kafka" if rule.required else get_default(field)
    return f"| `{name}` | {kind.words} | {default} | {field.description or ''} |\n"


if __name__ == "__main__":
    for table in list_tables():
        print(f"### `[{table}]`\n\n{build_markdown(table)}")  # noqa: T201
