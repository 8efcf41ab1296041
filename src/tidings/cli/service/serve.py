"""`tidings serve`: the whole service as supervised children, or one of its parts in this process.

The parts are the API (`--only api`) and the pipeline (`--only pipeline`); the supervisor starts this same command for
each. What one line can say before anything starts is said then: a port that is taken, a folder that cannot be written
to, a missing Java.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from importlib.util import find_spec
from shlex import quote
from typing import TYPE_CHECKING

from tidings.cli import render
from tidings.errors import BadSettings, MissingExtra, SparkUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tidings.cli.service.options import ServeOptions
    from tidings.service.settings import ServiceSettings

NEEDS = {
    "service": ("fastapi", "uvicorn", "sqlalchemy", "alembic", "psycopg", "orjson", "pydantic"),
    "spark": ("pyspark", "pandas"),
    "kafka": ("confluent_kafka",),
}
"""The modules by which a missing extra shows."""

PARTS = ("api", "pipeline")
"""The parts of the service, in the order of their start."""


def run(file: Path | None, options: ServeOptions, *, only: str | None, check: bool, as_json: bool) -> None:
    """Serve until a signal comes; with `check` only say what would be done."""
    require_extras("service", *(["spark"] if only != "api" else []))
    try:
        settings = read_settings(file, options)
    except BadSettings as problem:
        if as_json:
            render.write_json({"ok": False, "mistakes": list(problem.mistakes)})
        raise
    if only != "pipeline" and settings.events.to == "kafka":
        require_extras("kafka")
    if only != "api":
        require_java()
    if check:
        describe(settings, as_json=as_json)
        return
    from tidings.service.leash import follow_supervisor

    follow_supervisor()
    if only is None:
        supervise(file, settings, as_json=as_json)
    else:
        run_part(only, file, settings)


def read_settings(file: Path | None, options: ServeOptions) -> ServiceSettings:
    """Return the settings of the file with those of the command line over them."""
    from tidings.service.reading import check_port, read_service

    settings = read_service(file, data=options.data, store=options.store or None)
    changes = {name: value for name in ("host", "workers") if (value := getattr(options, name)) is not None}
    port = settings.port if options.port is None else check_port(options.port)
    return replace(settings, port=port, **changes)


def require_extras(*extras: str) -> None:
    """Raise `MissingExtra` if a package of an extra is not installed."""
    missing = [extra for extra in extras if any(find_spec(module) is None for module in NEEDS[extra])]
    if missing:
        names = ",".join(missing)
        msg = f"`tidings serve` needs what is not installed; get it with `pip install 'tidings[{names}]'`"
        raise MissingExtra(msg)


def require_java() -> None:
    """Raise `SparkUnavailable` if there is no Java that the pipeline could run on."""
    from tidings.cli.doctor import Status, check_java

    check = check_java()
    if check.status is not Status.OK:
        msg = f"the pipeline runs on Spark, which needs Java: {check.finding}; {check.fix}"
        raise SparkUnavailable(msg)


def describe(settings: ServiceSettings, *, as_json: bool) -> None:
    """Print what would be served, without a secret."""
    from tidings.service.description import describe_service

    render.write_parts("service", describe_service(settings), as_json=as_json)


# One part, in this process ------------------------------------------------------------------------------


def run_part(part: str, file: Path | None, settings: ServiceSettings) -> None:
    """Run a part until a signal comes; the workers of the API have their settings from the environment."""
    from tidings.service.data_folder import prepare_folder
    from tidings.service.leash import is_leashed
    from tidings.service.reading import export_settings

    prepare_folder(settings)
    if not is_leashed():
        warn_of_host(settings)
    if part == "api":
        from tidings.service.api_server import require_port, serve_api

        if not is_leashed():
            require_port(settings)
            warn_of_keys(settings)
        with set_variables(export_settings(file, settings)):
            serve_api(settings)
    else:
        from tidings.spark.pipeline.service_pipeline import run_service_pipeline

        run_service_pipeline(settings)


@contextmanager
def set_variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment while the block runs, for processes that are started in it."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def warn_of_host(settings: ServiceSettings) -> None:
    """Warn where keys and events would travel in the clear."""
    if settings.host not in ("127.0.0.1", "::1", "localhost"):
        text = f"{settings.host} can be reached from other machines, and keys travel in the clear: put TLS before it"
        render.warn(f"{text} (docs/guide/operations.md)")


def warn_of_keys(settings: ServiceSettings) -> None:
    """Warn where nobody has a key to make others with: a part makes none, since several may share the store."""
    from tidings.configuration.environment import hide_password, mask
    from tidings.service.data_folder import has_admin_key
    from tidings.service.store.opening import open_store

    store = open_store(settings.store_url)
    try:
        if not has_admin_key(store, now=datetime.now(UTC)):
            place = f"--store {mask(hide_password(settings.store))}" if settings.store else f"--data {settings.data}"
            command = f"`tidings service key add --owner ops --scope admin {place}`"
            render.warn(f"the store has no key of an administrator, so every request is a 401: make one with {command}")
    finally:
        store.close()


# All parts, as children -----------------------------------------------------------------------------------


def supervise(file: Path | None, settings: ServiceSettings, *, as_json: bool) -> None:
    """Prepare the folder, the store and the admin key; then run all parts as children until a signal comes."""
    from tidings.service.api_server import require_port
    from tidings.service.data_folder import KEY_FILE, ensure_admin_key, is_private, lock_folder, prepare_folder
    from tidings.service.store.opening import open_store

    require_port(settings)
    prepare_folder(settings)
    with lock_folder(settings.data):
        store = open_store(settings.store_url)
        try:
            is_new = ensure_admin_key(store, settings.data, now=datetime.now(UTC))
        finally:
            store.close()
        warn_of_host(settings)
        if not is_private(settings.data / KEY_FILE):
            render.warn(f"others can read the admin key in {settings.data / KEY_FILE}: chmod 600")
        _run_children(file, settings, Greeting(settings, is_new=is_new, as_json=as_json))
    render.note("stopped")


def _run_children(file: Path | None, settings: ServiceSettings, greeting: Greeting) -> None:
    from tidings.service.reading import export_settings
    from tidings.service.supervisor import ChildProgram, Supervisor

    base = [sys.executable, "-m", "tidings", "serve"]
    place = ["--host", settings.host, "--port", str(settings.port), "--workers", str(settings.workers)]
    environ = export_settings(file, settings)
    programs = [ChildProgram(name=part, command=[*base, "--only", part, *place], environ=environ) for part in PARTS]
    supervisor = Supervisor(
        programs, settings.logs_folder, warn=render.warn, note=render.note, on_ready=greeting.tell_ready
    )
    render.note(f"starting; what the parts say is in {settings.logs_folder}/")
    supervisor.run()


class Greeting:
    """What a person at the terminal is told when the parts begin to work."""

    def __init__(self, settings: ServiceSettings, *, is_new: bool, as_json: bool) -> None:
        self._settings, self._is_new, self._as_json = settings, is_new, as_json

    def tell_ready(self, part: str, text: str) -> None:
        """Say that a part works; the first time the API does, where everything is and how to use it."""
        if self._as_json:
            render.write_json({"ready": part, "text": text})
        elif part == "api" and self._is_new:
            self._is_new = False
            render.write("\n".join(self._list_places()))
        else:
            render.note(text)

    def _list_places(self) -> list[str]:
        from tidings.configuration.environment import hide_password, mask
        from tidings.service.api_server import format_url
        from tidings.service.data_folder import KEY_FILE

        settings = self._settings
        url, key = format_url(settings), settings.data / KEY_FILE
        curl = f'curl -H "Authorization: Bearer $(cat {quote(str(key))})"'
        subscription = '{"id": "bargain", "filter": "price < 9000 and year >= 2015"}'
        event = '{"id": "ad-1", "make": "ford", "price": 8500, "year": 2016}'
        return [
            f"Tidings serves at {url}",
            f"  data       {settings.data}",
            f"  store      {mask(hide_password(settings.store_url))}",
            f"  admin key  {key} (for you alone; for others: tidings service key add)",
            f"  logs       {settings.logs_folder}/",
            f"  API        {url}/openapi.json describes it",
            "Subscribe, post an event, read what matched (Spark takes some ten seconds to start; events wait for it):",
            f"  {curl} -d '{subscription}' {url}/v1/subscriptions",
            f"  {curl} -d '{event}' {url}/v1/events",
            f"  {curl} {url}/v1/subscriptions/bargain/matches",
        ]
