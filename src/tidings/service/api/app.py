"""The API as an app: `build_app` puts operations, limits and the document together; `create_app` is what workers call.

A module of `api.routes` has a tuple `OPERATIONS`, and where its document needs schemas of its own `SCHEMAS`; one
line in `ROUTES` makes it part of the API and of the OpenAPI document. Operations are routes of the FastAPI app, so
`app.routes` lists them all; its dependencies and models are not used (see `operations`). The app is stateless: whatever
it must remember is in the store.
"""

from __future__ import annotations

import signal
import threading
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException

from tidings.service.api.background import run_background
from tidings.service.api.openapi import build_document
from tidings.service.api.problems import LOGGER, build_response, to_problem
from tidings.service.api.routes import (
    audit,
    estimating,
    events,
    health,
    keys,
    matches,
    owners,
    stream,
    subscriptions,
    transfer,
    trying,
    validate,
    why,
)
from tidings.service.api.routing import OperationRoute
from tidings.service.api.state import ApiState, Clocks
from tidings.service.checking import SubscriptionChecker
from tidings.version import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from types import ModuleType

    from starlette.requests import Request
    from starlette.responses import Response

    from tidings.service.settings import ServiceSettings
    from tidings.service.store.base import Store

ROUTES: tuple[ModuleType, ...] = (
    subscriptions,  # first: what is asked most is found first
    events,
    matches,
    stream,
    trying,
    estimating,
    why,
    validate,
    transfer,
    keys,
    owners,
    audit,
    health,
)
"""The modules of routes."""

KEPT_RULES = (
    "the owner `%s` keeps the rules that the store has, though [owners] in the settings of this process does not "
    "name it; a table of it without keys removes them"
)
"""What is logged of each owner whose rules another process has written."""


def build_app(settings: ServiceSettings, store: Store, *, time: Clocks | None = None) -> FastAPI:
    """Return the app over a store; the rules of owners in the settings are written to the store first.

    Owners whom the settings do not name keep the rules that the store has. The store is closed by whoever opened it,
    the app's own threads when its lifespan ends.
    """
    state = ApiState.make(settings, store, SubscriptionChecker.of(settings), time=time or Clocks())
    for owner in store.owners.set(list(settings.owners.values()), actor="service", at=state.now()):
        LOGGER.warning(KEPT_RULES, owner)
    app = FastAPI(
        title="Tidings", version=__version__, openapi_url=None, docs_url=None, redoc_url=None, lifespan=_run_lifespan
    )
    app.state.api = state
    operations = [operation for module in ROUTES for operation in module.OPERATIONS]
    app.router.routes[:] = [OperationRoute(operation, state) for operation in operations]
    app.router.redirect_slashes = False
    document = build_document(operations, [getattr(module, "SCHEMAS", {}) for module in ROUTES])
    app.openapi = lambda: document  # type: ignore[method-assign]
    state.parts["openapi"] = document
    app.add_exception_handler(HTTPException, _answer_error)
    app.add_exception_handler(Exception, _answer_error)
    return app


def create_app() -> FastAPI:
    """Return the app of the settings in the environment, for `uvicorn --factory tidings.service.api.app:create_app`."""
    from tidings.service.reading import read_exported
    from tidings.service.store.opening import open_store

    settings = read_exported()
    store = open_store(settings.store_url)
    app = build_app(settings, store)
    app.state.own_store = store  # nobody else closes it
    return app


@asynccontextmanager
async def _run_lifespan(app: FastAPI) -> AsyncIterator[None]:
    state: ApiState = app.state.api
    with _note_signals(state.stopping):
        async with run_background(state):
            yield
            state.stopping.set()
    state.writer.close()
    if (store := getattr(app.state, "own_store", None)) is not None:
        store.close()


@contextmanager
def _note_signals(stopping: threading.Event) -> Iterator[None]:
    """Set an event as soon as a signal asks the server to stop: it waits for open streams before the lifespan ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def note(number: int, frame: Any) -> None:
        stopping.set()
        handler = before[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    for number, handler in before.items():
        if callable(handler):  # the server's own
            signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in before.items():
            if callable(handler):
                signal.signal(number, handler)


async def _answer_error(_request: Request, error: Exception) -> Response:
    return build_response(to_problem(error))
