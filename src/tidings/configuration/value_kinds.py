"""The kinds of values that settings files may have, as pydantic annotations.

A `ValueKind` stands in the annotation of a key's field. It names the kind in the words of messages and of the docs,
checks a raw TOML value, replaces `${NAME}` in texts and converts the result. A value that cannot be used raises
`WrongValue`, whose texts follow the key's name in a message: "must be a whole number, not a text". Messages quote
only what stands in the file, never what a variable was replaced by.

Values are checked only when a file is read, that is with a `FileContext`. A settings object that code constructs is
taken as it is. TOML has no null, so None always means a key that is missing or was refused before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

from pydantic_core import PydanticKnownError, core_schema

from tidings.concepts import did_you_mean
from tidings.configuration.environment import Variables, mask

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo

_TYPE_WORDS = {dict: "a table", list: "a list", str: "a text", bool: "true or false", int: "a whole number"}


@dataclass(frozen=True, slots=True)
class FileContext:
    """What the meaning of a value depends on: the folder that relative paths start from, and the variables."""

    folder: Path
    variables: Variables


class WrongValue(ValueError):
    """A value that cannot be used: texts about the value itself, and pairs of a setting within it and a text."""

    def __init__(self, *texts: str, settings: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(*texts)
        self.mistakes = (*(("", text) for text in texts), *settings)


@dataclass(frozen=True, slots=True)
class ValueKind:
    """A kind of value: how messages and docs name it, how a raw value is converted, and its JSON schema."""

    words: str
    convert: Callable[[object, FileContext], Any]
    json_schema: Mapping[str, Any]

    def validate(self, value: object, info: ValidationInfo) -> Any:
        """Convert a value of a file; without the context of a file, return it as it is."""
        return value if info.context is None or value is None else self.convert(value, info.context)

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.with_info_plain_validator_function(self.validate)

    def __get_pydantic_json_schema__(self, schema: object, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return dict(self.json_schema)


# Texts -------------------------------------------------------------------------------------------


def make_text_kind(words: str, convert: Callable[[str, FileContext], Any], **json_schema: Any) -> ValueKind:
    """Return a kind that is a text in the file; `convert` gets it with its variables replaced."""
    return ValueKind(
        words,
        lambda value, context: convert(expand_text(value, context, wanted=words), context),
        {"type": "string", **json_schema},
    )


def expand_text(value: object, context: FileContext, *, wanted: str = "a text") -> str:
    """Return a text with its variables replaced."""
    if not isinstance(value, str):
        raise reject(wanted, value)
    text, mistakes = context.variables.expand(value)
    if mistakes:
        raise WrongValue(*(f"cannot be read: {mistake}" for mistake in mistakes))
    if not text.strip():
        raise WrongValue("is empty" if text is value else f"is empty: `{value}` gives nothing")
    return text


def reject(wanted: str, value: object) -> WrongValue:
    """Return the mistake of a value that is not what it should be; only a text is quoted."""
    quoted = f"`{mask(value)}`" if isinstance(value, str) else name_type(value)
    return WrongValue(f"must be {wanted}, not {quoted}")


def name_type(value: object) -> str:
    """Return the type of a TOML value in words, without the value: it may be a secret at the wrong place."""
    if isinstance(value, date | time):  # a datetime is a date
        return "a time"
    return _TYPE_WORDS.get(type(value), "a number")


def make_choice_kind(literal: Any) -> ValueKind:
    """Return the kind whose values are the words of a `Literal`."""
    choices = get_args(literal)

    def convert(text: str, _: FileContext) -> str:
        if text not in choices:
            hint = did_you_mean(text, choices) if text is mask(text) else ""
            raise WrongValue(f"cannot be `{mask(text)}`" + (hint or f"; it is one of {', '.join(choices)}"))
        return str(text)  # a plain text: a word of a fixed list is no secret

    kind = make_text_kind("one of a few words", convert, enum=list(choices))
    return ValueKind(" ".join(f"`{choice}`" for choice in choices), kind.convert, kind.json_schema)


def _convert_texts(value: object, context: FileContext) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise reject(TEXTS.words, value)
    return tuple(expand_text(text, context, wanted="texts in a list") for text in value)


def make_pattern_kind(words: str, pattern: str) -> ValueKind:
    """Return the kind of texts that match a regular expression."""

    def convert(text: str, _: FileContext) -> str:
        if not re.fullmatch(pattern, text):
            raise reject(words, text)
        return text

    return make_text_kind(words, convert, pattern=f"^{pattern}$")


_PORT_PATTERN = r"(\d{1,4}|[0-5]\d{4}|6[0-4]\d{3}|65[0-4]\d{2}|655[0-2]\d|6553[0-5])"

TEXT = make_text_kind("a text", lambda text, _: text)
TEXTS = ValueKind("a list of texts", _convert_texts, {"type": "array", "items": {"type": "string"}})
ADDRESS = make_pattern_kind('an address such as "127.0.0.1:9464"', rf"([^\s:/]+|\[[0-9A-Fa-f:.]+\]):{_PORT_PATTERN}")
FUNCTION = make_pattern_kind('a function such as "package.module:name"', r"\w+(\.\w+)*:\w+(\.\w+)*")


# Tables of the user's own keys -------------------------------------------------------------------


def flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield dotted names and values: TOML reads a dotted key as a table within a table."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def make_settings_kind(replaced: Mapping[str, str], prefix: str = "") -> ValueKind:
    """Return the kind of tables of settings for Spark.

    `replaced` maps settings that a key of the file already gives to that key; `prefix` begins every name.
    """

    def convert(name: str, value: object, context: FileContext) -> str:
        text = _convert_setting(value, context)
        if name in replaced:
            msg = f"is not set here; the key `{replaced[name]}` says it"
            raise WrongValue(msg)
        if not name.startswith(prefix):
            msg = f"is not a setting of Spark; each begins with `{prefix}`"
            raise WrongValue(msg)
        return text

    return make_table_kind("a table of settings", lambda table: dict(flatten(table)), convert)


def _convert_setting(value: object, context: FileContext) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    # An empty one means something to Spark, such as no delimiter at all.
    return "" if value == "" else expand_text(value, context, wanted="a text, a number, or true or false")


def make_table_kind(
    words: str,
    unfold: Callable[[dict[str, object]], dict[str, object]],
    convert: Callable[[str, object, FileContext], str],
) -> ValueKind:
    """Return the kind of tables whose keys are the user's; all values that cannot be used are in one `WrongValue`."""

    def convert_table(table: object, context: FileContext) -> dict[str, str]:
        if not isinstance(table, dict):
            error: Final = "dict_type"
            raise PydanticKnownError(error)
        values: dict[str, str] = {}
        mistakes: list[tuple[str, str]] = []
        for name, value in unfold(table).items():
            try:
                values[name] = convert(name, value, context)
            except WrongValue as wrong:
                mistakes += [(name, text) for _, text in wrong.mistakes]
        if mistakes:
            raise WrongValue(settings=tuple(mistakes))
        return values

    return ValueKind(words, convert_table, {"type": "object"})


SPARK = make_settings_kind({"spark.master": "master", "spark.app.name": "name"}, prefix="spark.")
NAMED_TEXTS = make_table_kind("a table of texts", dict, lambda _, value, context: expand_text(value, context))
