"""`service.toml` into `ServiceSettings`: all mistakes are reported together, each with its line.

Keys and values are validated by `configuration.reading`; then tables are compared with each other, and what owners may
see is parsed against the service's own schema, ontology and regions. A process that another one starts gets the same
settings from the environment (`export_settings`, `read_exported`), so that no password stands in a command line.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from tidings.configuration.environment import Variables, mask
from tidings.configuration.keys import get_rule, summarize_key
from tidings.configuration.measure_kinds import PORT, format_size
from tidings.configuration.path_kinds import STORE_URL, load_or_reject
from tidings.configuration.reading import FileReading, build_error, read_settings
from tidings.configuration.value_kinds import FileContext, WrongValue
from tidings.errors import TidingsError
from tidings.lang import parse
from tidings.service.events.kafka_clients import LOGIN, NEEDED_PARTS, has_part
from tidings.service.settings import KEYS, KafkaProtocol, ServiceFile, ServiceSettings
from tidings.service.subscription import check_owner

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE, DATA, STORE = "TIDINGS_SERVICE", "TIDINGS_SERVICE_DATA", "TIDINGS_STORE"
"""The variables from which the processes of a service have its file, its folder and its store's URL."""

DOCUMENT = "document"
"""The pipeline's name for the whole event, which no field with an id or a time can have."""

_VOCABULARY = ("schema", "ontology", "regions")


def read_service(
    path: str | Path | None,
    *,
    data: str | Path | None = None,
    store: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> ServiceSettings:
    """Return the settings of a file, or without one the defaults; `data` and `store` win over the file.

    `BadSettings` has all mistakes; a file that cannot be opened is a `FileError`.
    """
    settings = ServiceSettings(data=Path("tidings-data").absolute()) if path is None else _read_file(path, environ)
    if data is not None:
        settings = replace(settings, data=Path(data).absolute())
    return settings if store is None else replace(settings, store=resolve_store(store))


def resolve_store(url: str) -> str:
    """Return the URL of a store that is relative to this folder; one that is none is a `TidingsError`."""
    try:
        return str(STORE_URL.convert(url.replace("${", "$${"), FileContext(Path.cwd(), Variables({}))))
    except WrongValue as wrong:
        msg = f"the store {wrong}"
        raise TidingsError(msg) from None


def check_port(port: int) -> int:
    """Return a port; a number that cannot be one is a `TidingsError`."""
    try:
        return int(PORT.convert(port, FileContext(Path(), Variables({}))))
    except WrongValue as wrong:
        msg = f"the port {wrong}"
        raise TidingsError(msg) from None


# For processes that others start -------------------------------------------------------------------


def export_settings(path: str | Path | None, settings: ServiceSettings) -> dict[str, str]:
    """Return the variables from which `read_exported` reads the same settings."""
    variables = {DATA: str(settings.data), STORE: settings.store}
    if path is not None:
        variables[FILE] = str(Path(path).absolute())
    return {name: value for name, value in variables.items() if value}


def read_exported(environ: Mapping[str, str] = os.environ) -> ServiceSettings:
    """Return the settings that the process was given in its environment."""
    file, data, store = (environ.get(name) or None for name in (FILE, DATA, STORE))
    return read_service(file, data=data, store=store, environ=environ)


# The file --------------------------------------------------------------------------------------------


def _read_file(path: str | Path, environ: Mapping[str, str]) -> ServiceSettings:
    path = Path(path).absolute()
    reading = read_settings(path, KEYS, environ)
    file: ServiceFile = reading.validate()
    check_tables(reading, file)
    if reading.mistakes:
        reading.mistakes.sort(key=reading.find_line)
        raise build_error(path, reading.render(reading.mistakes))
    return ServiceSettings.from_file(file, path.parent)


def check_tables(reading: FileReading, file: ServiceFile) -> None:
    """Add all mistakes that concern more than one key, or that only the content of a file shows."""
    check_events(reading, file)
    if file.events.to == "kafka":
        check_login(reading, file)
    check_limits(reading, file)
    check_model(reading, file)
    check_owners(reading, file)


def check_events(reading: FileReading, file: ServiceFile) -> None:
    """Compare the keys of `[events]` with where events go, and the two fields of an event with each other."""
    events, place = file.events, ("events",)
    for name, field in KEYS.list("events").items():
        rule, path = get_rule(field), (*place, name)
        if rule.kinds and events.to not in rule.kinds and reading.is_good(path):
            reading.refuse_key(path, f'does not go with to = "{events.to}"; it is for {", ".join(rule.kinds)}')
        if rule.is_needed(events.to) and reading.lacks(path):
            reading.refuse_key(path, f'is missing with to = "{events.to}": {summarize_key(field)}')
    for name, value in (("id", events.id), ("time", events.time)):
        if value and value.lower() == DOCUMENT:
            reading.refuse_key((*place, name), f"cannot be `{mask(value)}`, the pipeline's name for the whole event")
    if events.id and events.time and events.id.lower() == events.time.lower():
        reading.refuse_key(
            (*place, "time"), f"cannot be `{mask(events.time)}`, as `id` is: they are fields of their own"
        )


def check_login(reading: FileReading, file: ServiceFile) -> None:
    """Compare the login and the certificates of `[events]` with the protocol that the brokers are spoken to by."""
    protocol, place = file.events.protocol, ("events",)
    if not (reading.lacks((*place, "protocol")) or reading.is_good((*place, "protocol"))):
        return  # what it is meant to be is not known
    for name, part in NEEDED_PARTS.items():
        if not has_part(protocol, part) and reading.is_good((*place, name)):
            fitting = ", ".join(each for each in get_args(KafkaProtocol) if has_part(each, part))
            reading.refuse_key((*place, name), f'does not go with protocol = "{protocol}"; it is for {fitting}')
    for name in ("username", "password"):
        if has_part(protocol, LOGIN) and reading.lacks((*place, name)):
            text = summarize_key(KEYS.list("events")[name])
            reading.refuse_key((*place, name), f'is missing with protocol = "{protocol}": {text}')


def check_limits(reading: FileReading, file: ServiceFile) -> None:
    """Refuse sizes of which one can never be reached because of another."""
    limits, place = file.limits, ("limits",)
    for name in ("event", "filter_bytes"):
        size = getattr(limits, name)
        if size and limits.body and size > limits.body and reading.is_good((*place, name)):
            text = f"is more than `body`, the largest request ({format_size(limits.body)})"
            reading.refuse_key((*place, name), text)


def check_model(reading: FileReading, file: ServiceFile) -> None:
    """Open the model of patterns, to find what is wrong with it."""
    if model := file.patterns.model:
        from tidings.forecast import Model  # with it come numpy and the kernels, which few processes here need

        try:
            load_or_reject(lambda: Model.load(model), reading.context)
        except WrongValue as wrong:
            reading.refuse_key(("patterns", "model"), str(wrong))


def check_owners(reading: FileReading, file: ServiceFile) -> None:
    """Check the names of owners, and parse what bounds them."""
    vocabulary = {name: getattr(file, name) for name in _VOCABULARY}
    for name, bounds in file.owners.items():
        place = ("owners", name)
        try:
            check_owner(name)
        except TidingsError as problem:
            reading.refuse_table(place, str(problem), label="[owners]")
        if bounds.only and reading.unusable.isdisjoint(_VOCABULARY):
            try:
                parse(bounds.only, **vocabulary)
            except TidingsError as problem:
                lines = reading.context.variables.hide(str(problem)).replace("\n", "\n  ")
                reading.refuse_key((*place, "only"), f"cannot be read:\n  {lines}")
