"""`tidings test`: unit tests of subscriptions. Each case is an event and the ids that must, or must not, match it.

`expect` alone means exactly these ids. With `expect_not` only the ids that are named count: those of `expect` must
match, those of `expect_not` must not. An id that no subscription has fails the case: a misspelt one in `expect_not`
would otherwise always pass.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidings.cli import render
from tidings.cli.match.explain import format_explanation
from tidings.errors import BadEvent
from tidings.matcher import Explanation
from tidings.matcher.algorithm import SubId
from tidings.matcher.loading.row_files import RowFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidings.cli.match.subscription_origin import SubscriptionOrigin
    from tidings.matcher import Matcher
    from tidings.matcher.loading.row_readers import Row

KEYS = {"name", "event", "expect", "expect_not", "now"}
"""The keys of a case."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of a case: it passes when nothing is missing or unexpected, and the case could be run."""

    name: str
    place: str
    matches: tuple[SubId, ...] = ()
    missing: tuple[SubId, ...] = ()
    unexpected: tuple[SubId, ...] = ()
    problem: str | None = None
    why: tuple[Explanation, ...] = ()

    @property
    def is_correct(self) -> bool:
        """Whether the case passes."""
        return not (self.missing or self.unexpected or self.problem)

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        ids = {"got": list(self.matches), "missing": list(self.missing), "unexpected": list(self.unexpected)}
        reasons = {"problem": self.problem, "why": [format_explanation(reason) for reason in self.why]}
        return {"case": self.name, "at": self.place, "ok": self.is_correct, **ids, **reasons}


def run(origin: SubscriptionOrigin, cases: str, *, as_json: bool) -> bool:
    """Run every case, print those that fail (with `--json` all of them) and return whether all pass."""
    with RowFile(cases, form=origin.form) as file:
        matcher = origin.open_matcher()
        results = []
        with render.show_progress(file, "cases", beside_output=as_json) as batches:
            for row in (row for batch in batches for row in batch):
                results.append(_run_case(matcher, row))
                if as_json:
                    render.write_json(results[-1].to_dict())
    failed = [result for result in results if not result.is_correct]
    if not as_json:
        for result in failed:
            render.print_labelled("FAIL", "\n".join(_describe(result)), between="  ")
    output = sys.stderr if as_json else sys.stdout
    if failed:
        render.print_labelled("FAIL", f"{len(failed):,} of {len(results):,} cases", between="  ", file=output)
    elif results:
        render.print_labelled("ok", f"{len(results):,} cases", between="  ", file=output)
    else:
        render.warn("there are no cases")
    return not failed


def _run_case(matcher: Matcher, row: Row) -> CaseResult:
    case = row.values or {}
    name = str(case.get("name") or f"case {row.number}")
    if (problem := row.problem or _find_mistake(case, matcher)) is not None:
        return CaseResult(name, row.place, problem=problem)
    now = datetime.fromisoformat(case["now"]) if case.get("now") else None
    try:
        matches = matcher.match(case["event"], now=now)
    except BadEvent as bad:
        return CaseResult(name, row.place, problem=f"the event cannot be read: {bad}")
    expected, excluded = case.get("expect") or [], case.get("expect_not")
    missing = tuple(id for id in expected if id not in matches)
    if excluded is None:
        unexpected = tuple(id for id in matches if id not in expected)
    else:
        unexpected = tuple(id for id in excluded if id in matches)
    why = tuple(matcher.why(case["event"], id, now=now) for id in (*missing, *unexpected))
    return CaseResult(name, row.place, tuple(matches), missing, unexpected, None, why)


def _find_mistake(case: dict[str, Any], matcher: Matcher) -> str | None:
    extra = sorted(set(case) - KEYS)
    if extra:
        return f"a case has no `{extra[0]}`; it has {', '.join(sorted(KEYS))}"
    if not isinstance(case.get("event"), dict):
        return "a case needs an `event`, which is an object"
    if case.get("expect") is None and case.get("expect_not") is None:
        return "a case needs `expect` or `expect_not`, a list of ids"
    for key in ("expect", "expect_not"):
        ids = case.get(key)
        if ids is not None and not (isinstance(ids, list) and all(isinstance(id, str | int) for id in ids)):
            return f"`{key}` is a list of ids"
    try:
        if (now := case.get("now")) is not None:
            datetime.fromisoformat(str(now))
    except ValueError:
        return f"`now` is an ISO time, not {now!r}"
    named = [*(case.get("expect") or []), *(case.get("expect_not") or [])]
    return next((f"no subscription has the id {id!r}" for id in named if id not in matcher), None)


def _describe(result: CaseResult) -> Iterator[str]:
    yield f"{result.name} ({result.place})"
    if result.problem:
        yield f"      {result.problem}".replace("\n", "\n      ")
        return
    yield f"      matched: {', '.join(map(str, result.matches)) or 'none'}"
    for ids, words in ((result.missing, "missing"), (result.unexpected, "not expected")):
        if ids:
            yield f"      {words}: {', '.join(map(str, ids))}"
    for explanation in result.why:
        yield f"        {explanation}".replace("\n", "\n        ")
