"""The API as the commands use it: one connection, the key of whoever runs a command, refusals in the compiler's words.

The key comes from `--key-file`, else from TIDINGS_KEY, else, for a service of this machine, from the folder that
`tidings serve` makes here. It is never printed. A problem document becomes one message: mistakes in a filter or pattern
with a caret under each, others with the place they are about.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from tidings.errors import FilterError, MissingExtra, Mistake, TidingsError
from tidings.service.data_folder import KEY_FILE, read_key

try:
    import httpx
except ModuleNotFoundError as problem:
    msg = "`tidings sub` needs httpx; install it with `pip install 'tidings[service]'`"
    raise MissingExtra(msg) from problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidings.cli.service.options import ClientOptions

PATH = "/v1/subscriptions"
KEY, DATA = "TIDINGS_KEY", "TIDINGS_SERVICE_DATA"
"""The variables of the key, and of the folder that `tidings serve` made."""

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
"""The hosts for which the admin key of the folder is taken."""

PATIENCE_S = 60.0
"""How long an answer may take to begin; an import is answered when it is stored."""

PROBLEM = "application/problem+json"


class RequestRefused(TidingsError):
    """The service refused the request; `problem` is what it answered, `status` its status."""

    problem: Mapping[str, Any]
    status: int


class ServiceUnreachable(TidingsError):
    """No service answers at this address."""


@contextmanager
def open_client(options: ClientOptions) -> Iterator[ServiceClient]:
    """Open the client of a command; it is closed with the block."""
    url = options.url.rstrip("/")
    if urlsplit(url).scheme not in ("http", "https"):
        msg = f"`{url}` is not the URL of a service; one begins with http:// or https://"
        raise TidingsError(msg)
    with ServiceClient(url, find_key(options), owner=options.owner) as client:
        yield client


def find_key(options: ClientOptions) -> str:
    """Return the key to ask with; an error says where one may come from."""
    if options.key_file is not None:
        if (key := read_key(options.key_file)) is not None:
            return key
        msg = f"`{options.key_file}` holds no key"
        raise TidingsError(msg)
    if key := os.environ.get(KEY, "").strip():
        return key
    path = Path(os.environ.get(DATA) or "tidings-data") / KEY_FILE
    if urlsplit(options.url).hostname in LOCAL_HOSTS and (key := read_key(path)) is not None:
        return key
    msg = f"a key is needed: set {KEY}, or give --key-file FILE; `tidings service key add` makes keys"
    raise TidingsError(msg)


class ServiceClient:
    """Sends requests with a key; an answer of 400 and more is a `RequestRefused`."""

    def __init__(
        self, url: str, key: str, *, owner: str | None = None, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._owner = owner
        # A proxy that the environment names is not for this machine's own address.
        is_remote = urlsplit(url).hostname not in LOCAL_HOSTS
        headers = {"Authorization": f"Bearer {key}"}
        self._client = httpx.Client(
            base_url=url, headers=headers, timeout=PATIENCE_S, trust_env=is_remote, transport=transport
        )

    def __enter__(self) -> ServiceClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def ask(self, method: str, path: str, *, text: str | None = None, **request: Any) -> Any:
        """Return the JSON of an answer, or nothing; `text` is the filter or pattern that carets stand under."""
        return self.send(method, path, text=text, **request)[0]

    def send(self, method: str, path: str, *, text: str | None = None, **request: Any) -> tuple[Any, str | None]:
        """Return the JSON of an answer and its ETag."""
        with self._explain(text):
            answer = self._client.request(method, path, **self._complete(request))
            self._check(answer)
            return (answer.json() if answer.content else None), answer.headers.get("etag")

    def stream_lines(self, path: str, *, timeout: float | None = PATIENCE_S, **request: Any) -> Iterator[str]:
        """Yield the lines of a streamed answer."""
        with (
            self._explain(None),
            self._client.stream(
                "GET", path, timeout=httpx.Timeout(PATIENCE_S, read=timeout), **self._complete(request)
            ) as answer,
        ):
            self._check(answer)
            yield from answer.iter_lines()

    def upload(self, path: str, pieces: Iterable[bytes], **request: Any) -> Any:
        """Send a body in pieces; return the JSON of the answer, which may take as long as it needs."""
        timeout = httpx.Timeout(PATIENCE_S, read=None)
        headers = {"Content-Type": "application/x-ndjson"}
        with self._explain(None):
            answer = self._client.post(
                path, content=pieces, headers=headers, timeout=timeout, **self._complete(request)
            )
            self._check(answer)
            return answer.json()

    def iterate_pages(self, path: str, field: str, *, limit: int | None = None, **params: Any) -> Iterator[Any]:
        """Yield the items of a list, page by page, `limit` of them at most."""
        cursor, count = None, 0
        while limit is None or count < limit:
            size = 500 if limit is None else min(500, limit - count)
            page = {**params, "limit": size, **({"cursor": cursor} if cursor else {})}
            answer = self.ask("GET", path, params={name: value for name, value in page.items() if value is not None})
            yield from answer[field]
            count += len(answer[field])
            if not (cursor := answer.get("next")):
                return

    def _complete(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._owner is None:
            return request
        return {**request, "params": {**(request.get("params") or {}), "owner": self._owner}}

    @staticmethod
    def _check(answer: httpx.Response) -> None:
        if answer.status_code >= 400:
            answer.read()
            raise _RefusedAnswer(answer)

    @contextmanager
    def _explain(self, text: str | None) -> Iterator[None]:
        """Turn what goes wrong inside the block into errors of ours."""
        try:
            yield
        except _RefusedAnswer as refusal:
            raise explain_refusal(refusal.answer, text) from None
        except httpx.HTTPError as problem:
            url = self._client.base_url
            advice = "`tidings serve` starts one, --url names another"
            msg = f"no service answers at {url}: {describe_failure(problem)}; {advice}"
            raise ServiceUnreachable(msg) from None


class _RefusedAnswer(Exception):
    def __init__(self, answer: httpx.Response) -> None:
        super().__init__()
        self.answer = answer


def make_path(id: str, rest: str = "") -> str:
    """Return the path of a subscription, whatever characters its id has.

    >>> make_path("a/b", ":pause")
    '/v1/subscriptions/a%2Fb:pause'
    """
    return f"{PATH}/{quote(id, safe='')}{rest}"


def describe_failure(problem: httpx.HTTPError) -> str:
    """Return in a few words why there is no answer."""
    if isinstance(problem, httpx.TimeoutException):
        return "it takes too long"
    return str(problem) or type(problem).__name__


def explain_refusal(answer: httpx.Response, text: str | None) -> RequestRefused:
    """Return the error of a refused request."""
    problem = _read_problem(answer)
    mistakes = problem.get("errors") or []
    lines = [line for mistake in mistakes if (line := format_mistake(mistake, text))]
    message = "\n".join(lines) or str(problem.get("detail") or problem.get("title"))
    if answer.status_code == 401:
        message += f" (it comes from --key-file, {KEY} or tidings-data/{KEY_FILE})"
    return RequestRefused(message, problem=problem, status=answer.status_code)


def _read_problem(answer: httpx.Response) -> Mapping[str, Any]:
    if answer.headers.get("content-type", "").startswith(PROBLEM):
        try:
            problem = answer.json()
        except ValueError:
            problem = None
        if isinstance(problem, dict):
            return problem
    return {"status": answer.status_code, "detail": f"the service answered {answer.status_code} {answer.reason_phrase}"}


def format_mistake(mistake: Mapping[str, Any], text: str | None) -> str:
    """Return a mistake as the compiler would show it, where its text is at hand; else in words."""
    from tidings.lang.diagnostics import build_error

    words = "; ".join(str(part) for part in (mistake.get("message"), mistake.get("hint")) if part)
    place, length = mistake.get("at"), mistake.get("length")
    if isinstance(place, int) and text is not None and 0 <= place <= len(text):
        return str(build_error(FilterError, [Mistake(words, place, place + (length or 1))], text))
    # A message that names the field needs no path to it.
    is_placed = isinstance(place, str) and place != "$" and f"`{place.rpartition('.')[2]}`" not in words
    where = f"line {mistake['line']}: " if mistake.get("line") else ""
    return f"{where}`{place}`: {words}" if is_placed else f"{where}{words}"
