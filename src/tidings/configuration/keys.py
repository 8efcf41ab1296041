"""The tables and keys of a settings file, read from the pydantic dataclass that stands for the whole file.

Every key is one field. Its annotation has the Python type, the `ValueKind` that checks and converts a file's value, and
a `KeyRule` for what a field cannot say; the text beneath it is its description. Fields that are dataclasses
themselves, or arrays or tables of them, are tables of the file.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict
from pydantic_core import PydanticUndefined

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

CONFIG = ConfigDict(
    extra="forbid",
    arbitrary_types_allowed=True,
    use_attribute_docstrings=True,
    validate_by_name=True,
    validate_by_alias=True,
)
"""How the dataclasses of settings are validated."""


@dataclasses.dataclass(frozen=True, slots=True)
class KeyRule:
    """What the field of a key cannot say.

    `kinds` are the kinds of the table (or the feeds of `[subscriptions]`) that the key belongs to, all of them where it
    is empty; `required` says that each of those needs it, or names those that do. `default` is the default in the words
    of the docs, where it is not simply the value of the field.
    """

    kinds: tuple[str, ...] = ()
    required: bool | tuple[str, ...] = False
    default: str = ""

    def is_needed(self, kind: str) -> bool:
        """Tell whether a table of this kind must have the key."""
        return kind in (self.kinds if self.required is True else self.required or ())


class FileKeys:
    """The keys of a file: `settings` stands for the whole, whose tables begin with the field `first_table`.

    `noun` is what the file describes, as messages name it: "a pipeline".
    """

    def __init__(self, settings: Any, noun: str, *, first_table: str) -> None:
        self.settings, self.noun = settings, noun
        names = tuple(self.list())
        self.sections = names[names.index(first_table) :]
        """The names of all tables; the keys at the top of the file stand before them."""
        self.top = names[: names.index(first_table)]
        """The keys at the top of the file."""

    def list(self, section: str | int | None = None) -> dict[str, FieldInfo]:
        """Return the keys of a table, none for a table of the user's own; without `section` all of the file."""
        settings: Any = self.settings if section is None else self.find_class(section)
        fields: dict[str, FieldInfo] = {} if settings is None else settings.__pydantic_fields__
        return {str(field.validation_alias or name): field for name, field in fields.items()}

    def find_class(self, section: str | int) -> Any:
        """Return the settings class of a table of the file."""
        annotation = self.list()[str(section)].annotation
        classes = (annotation, *getattr(annotation, "__args__", ()))
        return next((cls for cls in classes if hasattr(cls, "__pydantic_fields__")), None)


def get_rule(field: FieldInfo) -> KeyRule:
    """Return the rule of a key."""
    return next((rule for rule in field.metadata if isinstance(rule, KeyRule)), KeyRule())


def summarize_key(field: FieldInfo) -> str:
    """Return the first sentence of a key's description, to end another sentence with."""
    first = (field.description or "").partition(". ")[0].rstrip(".")
    return first[0].lower() + first[1:]


def get_default(field: FieldInfo) -> str:
    """Return the default of a key as the file would write it, or in words; empty where there is none."""
    rule = get_rule(field)
    if rule.default or field.is_required() or field.default in (None, PydanticUndefined):
        return rule.default
    return json.dumps(field.default)
