"""`tidings test`: a rule author's unit test. Each case is an event and who must, or must not, hear of it.

`expect` alone means exactly these ids. With `expect_not` the case speaks only of the ids it names: those of `expect`
must hear, those of `expect_not` must not, and the rest are free. An id that no subscription has fails the case, since
a misspelt id in `expect_not` would otherwise pass for ever.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidings.cli import render
from tidings.cli.match.why import as_dict
from tidings.errors import BadEvent
from tidings.matcher import Explanation
from tidings.matcher.algorithm import SubId
from tidings.matcher.loading.row_files import Form, RowFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidings.cli.match.subscription_origin import Origin
    from tidings.cli.options import FileForm
    from tidings.matcher import Matcher
    from tidings.matcher.loading.row_readers import Row

KEYS = {"name", "event", "expect", "expect_not", "now"}
"""What a case may say."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a case: right when nothing is missing, unexpected or wrong with it."""

    name: str
    place: str
    got: tuple[SubId, ...] = ()
    missing: tuple[SubId, ...] = ()
    unexpected: tuple[SubId, ...] = ()
    problem: str | None = None
    why: tuple[Explanation, ...] = ()

    @property
    def right(self) -> bool:
        """Whether the case holds."""
        return not (self.missing or self.unexpected or self.problem)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        ids = {"got": list(self.got), "missing": list(self.missing), "unexpected": list(self.unexpected)}
        told = {"problem": self.problem, "why": [as_dict(reason) for reason in self.why]}
        return {"case": self.name, "at": self.place, "ok": self.right, **ids, **told}


def run(origin: Origin, cases: str, *, form: FileForm | None, as_json: bool) -> bool:
    """Judge every case, print those that fail (with `--json` all of them) and return whether all hold."""
    with RowFile(cases, form=Form(form) if form else None) as file:
        matcher = origin.matcher()
        verdicts = []
        with render.progress(file, "cases", beside_output=as_json) as batches:
            for row in (row for batch in batches for row in batch):
                verdicts.append(_judged(matcher, row))
                if as_json:
                    render.out_json(verdicts[-1].to_dict())
    failed = [verdict for verdict in verdicts if not verdict.right]
    if not as_json:
        for verdict in failed:
            render.labelled("FAIL", "\n".join(_told(verdict)), between="  ")
    _close(len(verdicts), len(failed), as_json=as_json)
    return not failed


def _close(cases: int, failed: int, *, as_json: bool) -> None:
    file = sys.stderr if as_json else sys.stdout
    if failed:
        render.labelled("FAIL", f"{failed:,} of {cases:,} cases", between="  ", file=file)
    elif cases:
        render.labelled("ok", f"{cases:,} cases", between="  ", file=file)
    else:
        render.warning("there are no cases")


def _judged(matcher: Matcher, row: Row) -> Verdict:
    case = row.values or {}
    name = str(case.get("name") or f"case {row.number}")
    if (problem := row.problem or _malformed(case) or _unknown(matcher, case)) is not None:
        return Verdict(name, row.place, problem=problem)
    now = datetime.fromisoformat(case["now"]) if case.get("now") else None
    try:
        got = matcher.match(case["event"], now=now)
    except BadEvent as bad:
        return Verdict(name, row.place, problem=f"the event cannot be read: {bad}")
    missing, unexpected = _differences(case, got)
    why = tuple(matcher.why(case["event"], id, now=now) for id in (*missing, *unexpected))
    return Verdict(name, row.place, tuple(got), missing, unexpected, None, why)


def _differences(case: dict[str, Any], got: list[SubId]) -> tuple[tuple[SubId, ...], tuple[SubId, ...]]:
    expected, refused = case.get("expect") or [], case.get("expect_not")
    missing = tuple(id for id in expected if id not in got)
    if refused is None:
        return missing, tuple(id for id in got if id not in expected)
    return missing, tuple(id for id in refused if id in got)


def _malformed(case: dict[str, Any]) -> str | None:
    strange = sorted(set(case) - KEYS)
    if strange:
        return f"a case has no `{strange[0]}`; it has {', '.join(sorted(KEYS))}"
    if not isinstance(case.get("event"), dict):
        return "a case needs an `event`, which is an object"
    if case.get("expect") is None and case.get("expect_not") is None:
        return "a case needs `expect` or `expect_not`, a list of ids"
    for key in ("expect", "expect_not"):
        ids = case.get(key)
        if ids is not None and not (isinstance(ids, list) and all(isinstance(id, str | int) for id in ids)):
            return f"`{key}` is a list of ids"
    return _bad_time(case.get("now"))


def _bad_time(now: object) -> str | None:
    try:
        if now is not None:
            datetime.fromisoformat(str(now))
    except ValueError:
        return f"`now` is an ISO time, not {now!r}"
    return None


def _unknown(matcher: Matcher, case: dict[str, Any]) -> str | None:
    named = [*(case.get("expect") or []), *(case.get("expect_not") or [])]
    unknown = [id for id in named if id not in matcher]
    return f"no subscription has the id {unknown[0]!r}" if unknown else None


def _told(verdict: Verdict) -> Iterator[str]:
    yield f"{verdict.name} ({verdict.place})"
    if verdict.problem:
        yield f"      {verdict.problem}".replace("\n", "\n      ")
        return
    yield f"      matched: {_listed(verdict.got)}"
    for ids, words in ((verdict.missing, "missing"), (verdict.unexpected, "not expected")):
        if ids:
            yield f"      {words}: {_listed(ids)}"
    for explanation in verdict.why:
        yield f"        {explanation}".replace("\n", "\n        ")


def _listed(ids: tuple[SubId, ...]) -> str:
    return ", ".join(map(str, ids)) or "none"
