"""What a paper claims, and whether a study's figures bear it out: kept, missed, or not measured at this scale.

A study's `claims.toml` names the paper and lists claims; each has a fact of the study and the least or the most that
counts as kept. Every mistake in the file is told at once, with the claim's key.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tidings.bench.harness.result_tables import number
from tidings.concepts.spelling import did_you_mean
from tidings.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

WORDS, NUMBERS = ("key", "place", "says", "fact", "reason"), ("printed", "at_least", "at_most")
"""What a claim may say: text, and numbers."""

NEEDED = ("key", "place", "says", "fact")


class Outcome(StrEnum):
    """What became of a claim."""

    KEPT = "kept"
    MISSED = "missed"
    UNMEASURED = "not measured at this scale"


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence of a paper: where it stands, what it says in our words, and what counts as kept.

    `printed` is the paper's own figure, where it has one; `reason` is why we miss it, where that is known.
    """

    key: str
    place: str
    says: str
    fact: str
    printed: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    reason: str = ""

    def outcome(self, found: float | None) -> Outcome:
        """Judge our figure; none, or one that is not a number, was not measured."""
        if found is None or math.isnan(found):
            return Outcome.UNMEASURED
        low = -math.inf if self.at_least is None else self.at_least
        high = math.inf if self.at_most is None else self.at_most
        return Outcome.KEPT if low <= found <= high else Outcome.MISSED

    @property
    def allowed(self) -> str:
        """What counts as kept, in words."""
        ends = {"at least": self.at_least, "at most": self.at_most}
        return ", ".join(f"{words} {number(end)}" for words, end in ends.items() if end is not None)


@dataclass(frozen=True, slots=True)
class Claims:
    """What `claims.toml` has."""

    paper: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim with our figure."""

    claim: Claim
    found: float | None
    outcome: Outcome

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        one = self.claim
        said = {name: getattr(one, name) for name in (*NEEDED, *NUMBERS)}
        missed = self.outcome is Outcome.MISSED
        found = self.found if self.found is not None and math.isfinite(self.found) else None
        return {
            **said,
            "found": found,
            "outcome": self.outcome.name.lower(),
            "reason": one.reason if missed else "",
        }


# Reading ---------------------------------------------------------------------------------------


def read_claims(path: Path) -> Claims:
    """Read a study's claims; `FileError` lists every mistake."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        msg = f"cannot read the claims `{path}`: {problem.strerror}"
        raise FileError(msg) from problem
    except ValueError as problem:  # not UTF-8, or not TOML
        msg = f"the claims `{path}` are not TOML: {problem}"
        raise FileError(msg) from problem
    mistakes: list[str] = []
    listed = table.get("claim", [])
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        mistakes.append("`claim` must be a list of tables; write each as [[claim]]")
        listed = []
    mistakes += [_unknown(name, ("paper", "claim")) for name in table.keys() - {"paper", "claim"}]
    if not isinstance(table.get("paper"), str) or not table["paper"].strip():
        mistakes.append("`paper` is missing: authors, title and year, as text")
    names = [_name(one, at) for at, one in enumerate(listed, 1)]
    for said, name in zip(listed, names, strict=True):
        mistakes += [f"claim {name}: {mistake}" for mistake in _mistakes(said)]
    keys = [one["key"] for one in listed if isinstance(one.get("key"), str)]
    mistakes += [f"claim `{key}`: its key is there {keys.count(key)} times" for key in _twice(keys)]
    if mistakes:
        lines = "".join(f"\n  {mistake}" for mistake in sorted(mistakes, key=lambda line: line.startswith("claim")))
        msg = f"the claims `{path}` have {len(mistakes)} mistake{'s' if len(mistakes) > 1 else ''}:{lines}"
        raise FileError(msg)
    return Claims(table["paper"], tuple(_claim(said) for said in listed))


def _name(said: Mapping[str, Any], at: int) -> str:
    key = said.get("key")
    return f"`{key}`" if isinstance(key, str) and key.strip() else f"number {at}"


def _twice(keys: list[str]) -> list[str]:
    return [key for key in dict.fromkeys(keys) if keys.count(key) > 1]


def _unknown(name: str, known: Iterable[str]) -> str:
    known = list(known)
    way_out = did_you_mean(name, known) or f"; there are {', '.join(known)}"
    return f"`{name}` is not known here{way_out}"


def _mistakes(said: Mapping[str, Any]) -> list[str]:
    found = [_unknown(name, (*WORDS, *NUMBERS)) for name in said if name not in (*WORDS, *NUMBERS)]
    found += [f"`{name}` is missing" for name in NEEDED if name not in said]
    for name in WORDS:
        if name in said and not (isinstance(said[name], str) and said[name].strip()):
            found.append(f"`{name}` must be text, not {said[name]!r}")
    wrong = [name for name in NUMBERS if name in said and not _is_number(said[name])]
    found += [f"`{name}` must be a number, not {said[name]!r}" for name in wrong]
    if "at_least" not in said and "at_most" not in said:
        found.append("needs `at_least` or `at_most`, or both: what counts as kept")
    elif not wrong and said.get("at_least", -math.inf) > said.get("at_most", math.inf):
        found.append(f"`at_least` {said['at_least']} is more than `at_most` {said['at_most']}; nothing can keep it")
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)


def _claim(said: Mapping[str, Any]) -> Claim:
    given: dict[str, Any] = {name: float(value) if name in NUMBERS else value for name, value in said.items()}
    return Claim(**given)


# Judging ---------------------------------------------------------------------------------------


def judged(claims: Claims, facts: Mapping[str, float]) -> list[Judged]:
    """Hold the claims to what a study found."""
    found = [(claim, facts.get(claim.fact)) for claim in claims.claims]
    return [Judged(claim, fact, claim.outcome(fact)) for claim, fact in found]


def claim_rows(found: Iterable[Judged]) -> list[list[str]]:
    """Return the claims as a heading and rows of words."""
    rows = [["place", "what the paper says", "paper", "ours", "kept if", "verdict"]]
    for one in found:
        claim = one.claim
        printed = "" if claim.printed is None else number(claim.printed)
        ours = "" if one.found is None or math.isnan(one.found) else number(one.found)
        rows.append([claim.place, claim.says, printed, ours, claim.allowed, str(one.outcome)])
    return rows


def reasons(found: Iterable[Judged]) -> list[str]:
    """Return for each missed claim why, or that nobody has said so yet."""
    missed = [one.claim for one in found if one.outcome is Outcome.MISSED]
    return [f"missed, {claim.place} (`{claim.key}`): {claim.reason or 'no reason is given yet'}" for claim in missed]


def tally(found: Iterable[Judged]) -> str:
    """Count the claims by what became of them.

    >>> claim = Claim("a", "5.1", "twice as fast", "ratio", at_least=2)
    >>> tally(judged(Claims("a paper", (claim,)), {"ratio": 3.0}))
    '1 claim: 1 kept'
    """
    outcomes = [one.outcome for one in found]
    counted = [f"{outcomes.count(one)} {one}" for one in Outcome if one in outcomes]
    return f"{len(outcomes)} claim{'' if len(outcomes) == 1 else 's'}: {', '.join(counted) or 'none to judge'}"
