"""One value of `pipeline.toml`, read as what its key says it is.

A reader gives the value or raises `Wrong` with all that is wrong, in words that follow the key's name: "must be a
whole number, not a text". Only what stands in the file is ever quoted, never what a variable made of it.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tidings.concepts import did_you_mean
from tidings.errors import TidingsError
from tidings.forecast import Horizon
from tidings.lang.filters.literals import number, seconds
from tidings.model.values import Quantity
from tidings.spark.pipeline.config.keys import Key, Kind
from tidings.spark.pipeline.config.settings import Trigger
from tidings.spark.pipeline.config.variables import like, written
from tidings.spark.pipeline.sinks.batch_folders import local_path
from tidings.spark.pipeline.sources.size_limits import UNITS, shown_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tidings.spark.pipeline.config.variables import Variables

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")
_ADDRESS = re.compile(r"(?:[^\s:/]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})")
_FUNCTION = re.compile(r"\w+(\.\w+)*:\w+(\.\w+)*")
_LARGEST_PORT = 65535

MOST = 10**9
"""Bytes that the bound of an event may have; Java's arrays end at twice as many."""

_WORDS = {dict: "a table", list: "a list", str: "a text", bool: "true or false", int: "a whole number"}


class Wrong(Exception):
    """A value that cannot be used; each text follows the key's name."""

    def __init__(self, *texts: str) -> None:
        """Hold the texts."""
        super().__init__(*texts)
        self.texts = texts


def _unlike(wanted: str, said: Any) -> Wrong:
    """Return the mistake of a value that is not what it should be; only a text is quoted."""
    shown = f"`{written(said)}`" if isinstance(said, str) else word_for(said)
    return Wrong(f"must be {wanted}, not {shown}")


def value_of(key: Key, said: Any, *, folder: Path, variables: Variables) -> Any:
    """Return the value of a key, with variables replaced and relative paths resolved against the folder."""
    match key.kind:
        case Kind.COUNT:
            return _count(key, said)
        case Kind.MOMENT if isinstance(said, date):  # a datetime is one too
            return _moment(said)
        case Kind.TEXTS:
            return _texts(said, variables)
        case Kind.CHANCE:
            return _chance(said)
        case Kind.HORIZON if type(said) is int:
            return _horizon(said)
    text = text_of(said, variables, wanted=key.kind.value)
    match key.kind:
        case Kind.CHOICE:
            return _choice(key, text)
        case Kind.PATH | Kind.ATTRIBUTES:
            return text if text == "-" and key.name == "lines" else resolved(text, folder)
        case Kind.DURATION:
            return duration(text)
        case Kind.SIZE:
            return size(text)
        case Kind.HORIZON:
            return _horizon(text)
        case Kind.TRIGGER:
            return _trigger(text)
        case Kind.MOMENT:
            return _moment(text)
        case Kind.ADDRESS:
            return _address(text)
        case Kind.FUNCTION if not _FUNCTION.fullmatch(text):
            raise _unlike(key.kind.value, text)
    return text


def text_of(said: Any, variables: Variables, *, wanted: str = Kind.TEXT.value) -> str:
    """Return a text with its variables replaced."""
    if not isinstance(said, str):
        raise _unlike(wanted, said)
    text, mistakes = variables.expand(said)
    if mistakes:
        raise Wrong(*(f"cannot be read: {mistake}" for mistake in mistakes))
    if not text.strip():
        raise Wrong("is empty" if text is said else f"is empty: `{said}` gives nothing")
    return text


def word_for(said: Any) -> str:
    """Return what kind of value it is, without saying the value: it may be a secret at the wrong place."""
    if isinstance(said, date | time):  # a datetime is a date
        return "a time"
    return _WORDS.get(type(said), "a number")


def resolved(text: str, folder: Path) -> str:
    """Return a path as an absolute one, reckoned from the folder; a URI is left as it is."""
    if ":" in text and (local_path(text) is None or text.startswith("file:")):
        return text
    return like(text, os.path.abspath(folder / text))


def settings(table: Mapping[str, Any], variables: Variables, prefix: str = "") -> Iterator[tuple[str, str | Wrong]]:
    """Yield names and values, as text; dots in a name that TOML took for tables are dots again."""
    for name, said in table.items():
        if isinstance(said, dict):
            yield from settings(said, variables, f"{prefix}{name}.")
        else:
            yield prefix + name, _setting(said, variables)


def _setting(said: Any, variables: Variables) -> str | Wrong:
    if isinstance(said, bool):
        return "true" if said else "false"
    if isinstance(said, int | float):
        return str(said)
    try:
        # An empty one means something to Spark, such as no delimiter at all.
        return "" if said == "" else text_of(said, variables, wanted="a text, a number, or true or false")
    except Wrong as wrong:
        return wrong


def duration(text: str) -> timedelta:
    """Return a length of time above zero: `10 minutes`, in the units that filters know.

    >>> duration("90 s")
    datetime.timedelta(seconds=90)
    """
    found = _DURATION.fullmatch(text)
    if not found:
        raise _unlike(Kind.DURATION.value, text)
    try:
        length = timedelta(seconds=seconds(Quantity(number(found[1]), found[2])))
    except (ValueError, OverflowError):  # a unit that filters do not know, or more than Python counts
        raise _unlike(Kind.DURATION.value, text) from None
    if not length:
        wanted = "longer than nothing"
        raise _unlike(wanted, text)
    return length


def size(text: str) -> int:
    """Return a number of bytes, from one to 1 GB: `8 MB`.

    >>> size("1.5 MB"), size("200 kB")
    (1500000, 200000)
    """
    found = _SIZE.fullmatch(text)
    factor = next((UNITS[unit] for unit in UNITS if found and unit.lower() == found[2].lower()), None)
    if found is None or factor is None:
        units = ", ".join(UNITS)
        msg = f"must be {Kind.SIZE.value}, not `{written(text)}`; the units are {units}"
        raise Wrong(msg)
    bytes_ = int(Decimal(found[1]) * factor)
    if not 1 <= bytes_ <= MOST:
        bound = f"at most {shown_size(MOST)}: Java's heap holds an event several times" if bytes_ else "above zero"
        raise _unlike(bound, text)
    return bytes_


def _trigger(text: str) -> Trigger:
    if text == "available now":
        return Trigger(available_now=True)
    if text == "as soon as possible":
        return Trigger()
    try:
        return Trigger(every=duration(text))
    except Wrong:
        raise _unlike(Kind.TRIGGER.value, text) from None


def _count(key: Key, said: Any) -> int:
    if type(said) is not int:
        raise _unlike(key.kind.value, said)
    most = _LARGEST_PORT if key.name == "port" else said
    if not key.least <= said <= most:
        bound = f"at least {key.least}" if said < key.least else f"at most {most}"
        raise _unlike(bound, str(said))
    return said


def _chance(said: Any) -> float:
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0 <= said <= 1:
        raise _unlike(Kind.CHANCE.value, str(said) if type(said) in (int, float) else said)
    return float(said)


def _horizon(said: int | str) -> int | str:
    try:
        Horizon.of(said)
    except TidingsError:
        raise _unlike(Kind.HORIZON.value, said if isinstance(said, str) else str(said)) from None
    return said


def _texts(said: Any, variables: Variables) -> tuple[str, ...]:
    if not isinstance(said, list):
        raise _unlike(Kind.TEXTS.value, said)
    return tuple(text_of(one, variables, wanted="texts in a list") for one in said)


def _choice(key: Key, text: str) -> str:
    if text not in key.choices:
        hint = did_you_mean(text, key.choices) if text is written(text) else ""
        raise Wrong(f"cannot be `{written(text)}`" + (hint or f"; it is one of {', '.join(key.choices)}"))
    return str(text)  # one of the choices is no secret


def _moment(said: date | str) -> datetime:
    try:
        moment = datetime.fromisoformat(said if isinstance(said, str) else said.isoformat())
    except ValueError:
        assert isinstance(said, str)
        raise _unlike(Kind.MOMENT.value, said) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _address(text: str) -> str:
    found = _ADDRESS.fullmatch(text)
    if not found or int(found[1]) > _LARGEST_PORT:
        raise _unlike(Kind.ADDRESS.value, text)
    return text
