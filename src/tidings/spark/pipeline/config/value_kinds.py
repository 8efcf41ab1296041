"""The kinds of values that `pipeline.toml` may have, as pydantic annotations.

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
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

from pydantic_core import PydanticKnownError, core_schema

from tidings.concepts import did_you_mean
from tidings.errors import TidingsError
from tidings.forecast import Horizon
from tidings.lang.filters.value_text import parse_number, to_seconds
from tidings.model.values import Quantity
from tidings.spark.pipeline.config.environment import Variables, mask
from tidings.spark.pipeline.sources.size_limits import UNITS, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo

_MEASURE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")

MAX_EVENT_BYTES = 10**9
"""Upper bound of `largest`; Java's arrays end at twice as many bytes."""

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
        raise _reject(wanted, value)
    text, mistakes = context.variables.expand(value)
    if mistakes:
        raise WrongValue(*(f"cannot be read: {mistake}" for mistake in mistakes))
    if not text.strip():
        raise WrongValue("is empty" if text is value else f"is empty: `{value}` gives nothing")
    return text


def _reject(wanted: str, value: object) -> WrongValue:
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
        raise _reject(TEXTS.words, value)
    return tuple(expand_text(text, context, wanted="texts in a list") for text in value)


def _make_pattern_kind(words: str, pattern: str) -> ValueKind:
    """Return the kind of texts that match a regular expression."""

    def convert(text: str, _: FileContext) -> str:
        if not re.fullmatch(pattern, text):
            raise _reject(words, text)
        return text

    return make_text_kind(words, convert, pattern=f"^{pattern}$")


_PORT_PATTERN = r"(\d{1,4}|[0-5]\d{4}|6[0-4]\d{3}|65[0-4]\d{2}|655[0-2]\d|6553[0-5])"

TEXT = make_text_kind("a text", lambda text, _: text)
TEXTS = ValueKind("a list of texts", _convert_texts, {"type": "array", "items": {"type": "string"}})
ADDRESS = _make_pattern_kind('an address such as "127.0.0.1:9464"', rf"([^\s:/]+|\[[0-9A-Fa-f:.]+\]):{_PORT_PATTERN}")
FUNCTION = _make_pattern_kind('a function such as "package.module:name"', r"\w+(\.\w+)*:\w+(\.\w+)*")


# Numbers -----------------------------------------------------------------------------------------


def _make_count_kind(largest: int | None = None) -> ValueKind:
    """Return the kind of whole numbers from one up to a bound."""
    words = "a whole number"

    def convert(value: object, _: FileContext) -> int:
        if type(value) is not int:
            raise _reject(words, value)
        if value < 1 or (largest is not None and value > largest):
            raise _reject("at least 1" if value < 1 else f"at most {largest}", str(value))
        return value

    bound = {} if largest is None else {"maximum": largest}
    return ValueKind(words, convert, {"type": "integer", "minimum": 1, **bound})


def _convert_chance(value: object, _: FileContext) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise _reject(CHANCE.words, str(value) if type(value) in (int, float) else value)
    return float(value)


COUNT = _make_count_kind()
PORT = _make_count_kind(65535)
CHANCE = ValueKind("a probability from 0 to 1", _convert_chance, {"type": "number", "minimum": 0, "maximum": 1})


# Durations, sizes and times ----------------------------------------------------------------------


def parse_duration(text: str) -> timedelta:
    """Return a duration above zero: `10 minutes`, in the units that filters know.

    >>> parse_duration("90 s")
    datetime.timedelta(seconds=90)
    """
    measure = _MEASURE.fullmatch(text)
    if not measure:
        raise _reject(DURATION.words, text)
    try:
        length = timedelta(seconds=to_seconds(Quantity(parse_number(measure[1]), measure[2])))
    except (ValueError, OverflowError):  # a unit that filters do not know, or more than Python counts
        raise _reject(DURATION.words, text) from None
    if not length:
        wanted = "longer than nothing"
        raise _reject(wanted, text)
    return length


def parse_size(text: str) -> int:
    """Return a number of bytes, from one to 1 GB: `8 MB`.

    >>> parse_size("1.5 MB"), parse_size("200 kB")
    (1500000, 200000)
    """
    measure = _MEASURE.fullmatch(text)
    factor = {unit.lower(): factor for unit, factor in UNITS.items()}.get(measure[2].lower()) if measure else None
    if measure is None or factor is None:
        msg = f"must be {SIZE.words}, not `{mask(text)}`; the units are {', '.join(UNITS)}"
        raise WrongValue(msg)
    size = int(Decimal(measure[1]) * factor)
    if not 1 <= size <= MAX_EVENT_BYTES:
        bound = f"at most {format_size(MAX_EVENT_BYTES)}: Java's heap holds an event several times"
        raise _reject(bound if size else "above zero", text)
    return size


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a micro-batch starts: every so often, right after the last one (no field set), or until all is read."""

    every: timedelta | None = None
    available_now: bool = False


def _convert_trigger(text: str, _: FileContext) -> Trigger:
    if text == "available now":
        return Trigger(available_now=True)
    if text == "as soon as possible":
        return Trigger()
    try:
        return Trigger(every=parse_duration(text))
    except WrongValue:
        raise _reject(TRIGGER.words, text) from None


def _convert_moment(value: object, context: FileContext) -> datetime:
    # TOML has times of its own, and a datetime is a date.
    text = value.isoformat() if isinstance(value, date) else expand_text(value, context, wanted=MOMENT.words)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise _reject(MOMENT.words, text) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _convert_horizon(value: object, context: FileContext) -> int | str:
    horizon: int | str = value if type(value) is int else expand_text(value, context, wanted=HORIZON.words)
    try:
        Horizon.of(horizon)
    except TidingsError:
        raise _reject(HORIZON.words, horizon if isinstance(horizon, str) else str(horizon)) from None
    return horizon


DURATION = make_text_kind('a duration such as "10 minutes"', lambda text, _: parse_duration(text))
SIZE = make_text_kind('a size such as "8 MB"', lambda text, _: parse_size(text))
TRIGGER = make_text_kind('"1 second", "available now" or "as soon as possible"', _convert_trigger)
MOMENT = ValueKind("a time such as 2024-07-01T12:00:00Z", _convert_moment, {"type": "string"})
HORIZON = ValueKind('a number of events, "10 own events" or "5 min"', _convert_horizon, {"type": ["integer", "string"]})


# Tables of the user's own keys -------------------------------------------------------------------


def flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield dotted names and values: TOML reads a dotted key as a table within a table."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _make_settings_kind(replaced: Mapping[str, str], prefix: str = "") -> ValueKind:
    """Return the kind of tables of settings for Spark.

    `replaced` maps settings that a key of `pipeline.toml` already gives to that key; `prefix` begins every name.
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

    return _make_table_kind("a table of settings", lambda table: dict(flatten(table)), convert)


def _convert_setting(value: object, context: FileContext) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    # An empty one means something to Spark, such as no delimiter at all.
    return "" if value == "" else expand_text(value, context, wanted="a text, a number, or true or false")


def _make_table_kind(
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


_GIVEN_BY_KEYS = {
    "kafka.bootstrap.servers": "servers",
    "subscribe": "topic",
    "subscribePattern": "topic",
    "assign": "topic",
    "topic": "topic",
    "path": "path",
    "host": "host",
    "port": "port",
    "checkpointLocation": "checkpoint",
}

OPTIONS = _make_settings_kind(_GIVEN_BY_KEYS)
SPARK = _make_settings_kind({"spark.master": "master", "spark.app.name": "name"}, prefix="spark.")
NAMED_TEXTS = _make_table_kind("a table of texts", dict, lambda _, value, context: expand_text(value, context))
