"""The keys of `pipeline.toml` by table, and the Markdown tables of them that stand in docs/guide/pipeline.md."""

from tidings.configuration.keys import get_default, get_rule
from tidings.configuration.value_kinds import ValueKind
from tidings.spark.pipeline.config.settings import KEYS, ONE_OF

WORDS = {2: "two", 6: "six"}


def list_tables():
    """Return the keys of every table with described keys, by the table's name; the top of the file has the name ""."""
    top = {name: field for name, field in KEYS.list().items() if name in KEYS.top}
    return {"": top, **{name: keys for name in KEYS.sections if (keys := KEYS.list(name))}}


def build_markdown(table):
    """Return the keys of a table as a Markdown table."""
    kinds = "with" if table == "subscriptions" else "kind"
    rows = [build_row(table, name, field) for name, field in list_tables()[table].items()]
    return f"| key | value | default | {kinds} | meaning |\n|---|---|---|---|---|\n" + "".join(rows)


def build_row(table, name, field):
    """Return the line of a key."""
    rule, kind = get_rule(field), next(kind for kind in field.metadata if isinstance(kind, ValueKind))
    default = "**required**" if field.is_required() or rule.required else get_default(field)
    if name in ONE_OF.get(table, ()):
        default = f"one of these {WORDS[len(ONE_OF[table])]}"
    cells = (f"`{name}`", kind.words, default, ", ".join(rule.kinds), field.description or "")
    return "| " + " | ".join(cells) + " |\n"
