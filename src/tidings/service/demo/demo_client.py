"""The world's side of the demo: subscribers and sellers as programs with an HTTP client, and nothing else of Tidings.

A stream of matches is read in a thread of its own. It also says when something is in force, or done: a subscription
that wants nothing but a mark is made after the changes, an event with that mark is posted, and when the mark comes back
as a match, the pipeline has seen everything before it.
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import httpx

from tidings.errors import TidingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PATIENCE_S = 180.0
"""How long anything may take; Spark's start takes most of a minute on a busy machine."""

MARK = "mark"
"""The field of events that are no ads, and what ids of the subscriptions to them begin with."""


class DemoClient:
    """Subscribes, posts and reads over HTTP; `check` raises if the service has ended."""

    def __init__(self, url: str, key: str, *, check: Callable[[], None]) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=PATIENCE_S, trust_env=False)
        self._check = check
        self._ending = threading.Event()
        self._news = threading.Condition()
        self.matches: list[dict[str, Any]] = []
        self._marks: set[str] = set()
        self._thread = threading.Thread(target=self._follow, name="tidings-demo", daemon=True)

    def __enter__(self) -> DemoClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._http.close()

    def ask(self, method: str, path: str, *, accepts: tuple[int, ...] = (), **request: Any) -> Any:
        """Return the JSON of an answer; a refusal raises, unless its status is accepted."""
        answer = self._http.request(method, path, **request)
        if answer.status_code >= 400 and answer.status_code not in accepts:
            msg = f"{method} {path} was answered {answer.status_code}: {answer.text[:500]}"
            raise TidingsError(msg)
        return answer.json() if answer.content else None

    # Searches and ads ------------------------------------------------------------------------------

    def change_searches(self, changes: Mapping[str, str | None]) -> None:
        """Make, change and remove searches; those to make or change go in one import."""
        wanted = [json.dumps({"id": id, "filter": text}) for id, text in changes.items() if text is not None]
        if wanted:
            headers = {"Content-Type": "application/x-ndjson"}
            self.ask("POST", "/v1/subscriptions:import", content="\n".join(wanted), headers=headers)
        for id, text in changes.items():
            if text is None:
                self.ask("DELETE", f"/v1/subscriptions/{id}")

    def post(self, body: str) -> list[str]:
        """Post an event or several; return why they were refused, if they were."""
        headers = {"Content-Type": "application/json"}
        answer = self.ask("POST", "/v1/events", accepts=(400, 422), content=body, headers=headers)
        return [error["message"] for error in answer.get("errors", ())]

    # Marks and matches -------------------------------------------------------------------------------

    def follow_matches(self) -> None:
        """Begin to read the stream of matches."""
        self._thread.start()

    def pass_mark(self, mark: str, *, through_patterns: bool = False) -> None:
        """Post a mark again and again until it comes back: all changes before are in force then.

        Searches and patterns are matched beside each other: a mark goes through the ones or the others.
        """
        wanted = f"{MARK} = '{mark}'"
        body = {"pattern": f"seen = {wanted}\nseen"} if through_patterns else {"filter": wanted}
        self.ask("PUT", f"/v1/subscriptions/{MARK}-{mark}", json=body)
        for number in range(int(PATIENCE_S)):
            self.post(json.dumps({"id": f"{MARK}-{mark}-{number}", MARK: mark}))
            if self.wait_for(mark, 2.0):
                return
        msg = f"the service did not match within {PATIENCE_S:.0f} s; its logs say why"
        raise TidingsError(msg)

    def wait_for(self, mark: str, seconds: float) -> bool:
        """Wait until a mark has come back."""
        with self._news:
            came = self._news.wait_for(lambda: mark in self._marks or self._ending.is_set(), seconds)
        self._check()
        return came

    def _follow(self) -> None:
        after = ""
        while not self._ending.is_set():
            try:
                headers = {"Accept": "text/event-stream", **({"Last-Event-ID": after} if after else {})}
                with self._http.stream("GET", "/v1/stream", headers=headers, timeout=None) as answer:
                    for line in answer.iter_lines():
                        if line.startswith("id:"):
                            after = line[3:].strip()
                        elif line.startswith("data:"):
                            self._take(json.loads(line[5:]))
            except (httpx.HTTPError, RuntimeError):  # it is taken up again after the last one; closed at the end
                self._ending.wait(0.2)

    def _take(self, match: dict[str, Any]) -> None:
        with self._news:
            if match["subscription"].startswith(f"{MARK}-"):
                self._marks.add(match["subscription"].removeprefix(f"{MARK}-"))
                self._news.notify_all()
            elif not str(match.get("event")).startswith(f"{MARK}-"):  # some searches want whatever comes
                self.matches.append(match)
