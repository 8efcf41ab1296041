"""The claims of a paper, and whether a study's figures bear them out: kept, missed, or not measured at this scale.

A study's `claims.toml` names the paper and lists claims; each has a fact of the study and the least or the most that
counts as kept. All mistakes in the file are reported together, each with the claim's key.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tidings.bench.harness.result_tables import format_number
from tidings.concepts.spelling import did_you_mean
from tidings.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

TEXT_FIELDS, NUMBER_FIELDS = ("key", "place", "says", "fact", "reason"), ("printed", "at_least", "at_most")
"""The fields of a claim in `claims.toml`, by type."""

REQUIRED_FIELDS = ("key", "place", "says", "fact")


class ClaimOutcome(StrEnum):
    """Whether a claim was kept."""

    KEPT = "kept"
    MISSED = "missed"
    UNMEASURED = "not measured at this scale"


@dataclass(frozen=True, slots=True)
class PaperClaim:
    """One sentence of a paper: its place, a paraphrase, the fact that decides it, and the bounds that keep it.

    `printed` is the paper's own figure, where it has one; `reason` is why our figure misses it, where that is known.
    """

    key: str
    place: str
    says: str
    fact: str
    printed: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    reason: str = ""

    def judge(self, measured: float | None) -> ClaimOutcome:
        """Return the outcome for our figure; None or NaN means that it was not measured."""
        if measured is None or math.isnan(measured):
            return ClaimOutcome.UNMEASURED
        low = -math.inf if self.at_least is None else self.at_least
        high = math.inf if self.at_most is None else self.at_most
        return ClaimOutcome.KEPT if low <= measured <= high else ClaimOutcome.MISSED

    @property
    def criterion(self) -> str:
        """The bounds within which the claim is kept, as text."""
        ends = {"at least": self.at_least, "at most": self.at_most}
        return ", ".join(f"{words} {format_number(end)}" for words, end in ends.items() if end is not None)


@dataclass(frozen=True, slots=True)
class Claims:
    """The contents of a `claims.toml`."""

    paper: str
    claims: tuple[PaperClaim, ...]


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim with the figure we measured for it."""

    claim: PaperClaim
    measured: float | None
    outcome: ClaimOutcome

    def to_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return {
            **{name: getattr(self.claim, name) for name in (*REQUIRED_FIELDS, *NUMBER_FIELDS)},
            "found": self.measured if self.measured is not None and math.isfinite(self.measured) else None,
            "outcome": self.outcome.name.lower(),
            "reason": self.claim.reason if self.outcome is ClaimOutcome.MISSED else "",
        }


# Reading ---------------------------------------------------------------------------------------


def read_claims(path: Path) -> Claims:
    """Read a study's `claims.toml`; a `FileError` lists every mistake in it."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        msg = f"cannot read the claims `{path}`: {problem.strerror}"
        raise FileError(msg) from problem
    except ValueError as problem:  # not UTF-8, or not TOML
        msg = f"the claims `{path}` are not TOML: {problem}"
        raise FileError(msg) from problem
    records = table.get("claim", [])
    mistakes = _find_mistakes(table, records)
    if mistakes:
        lines = "".join(f"\n  {mistake}" for mistake in sorted(mistakes, key=lambda line: line.startswith("claim")))
        msg = f"the claims `{path}` have {len(mistakes)} mistake{'s' if len(mistakes) > 1 else ''}:{lines}"
        raise FileError(msg)
    for record in records:
        record |= {name: float(record[name]) for name in NUMBER_FIELDS if name in record}
    return Claims(table["paper"], tuple(PaperClaim(**record) for record in records))


def _find_mistakes(table: Mapping[str, object], records: object) -> list[str]:
    mistakes = [_format_unknown(name, ("paper", "claim")) for name in table.keys() - {"paper", "claim"}]
    if not _is_text(table.get("paper")):
        mistakes.append("`paper` is missing: authors, title and year, as text")
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        return ["`claim` must be a list of tables; write each as [[claim]]", *mistakes]
    for number, record in enumerate(records, 1):
        name = f"`{record['key']}`" if _is_text(record.get("key")) else f"number {number}"
        mistakes += [f"claim {name}: {mistake}" for mistake in _find_claim_mistakes(record)]
    keys = Counter(record["key"] for record in records if isinstance(record.get("key"), str))
    return mistakes + [f"claim `{key}`: its key is there {count} times" for key, count in keys.items() if count > 1]


def _format_unknown(name: str, fields: Sequence[str]) -> str:
    way_out = did_you_mean(name, fields) or f"; there are {', '.join(fields)}"
    return f"`{name}` is not known here{way_out}"


def _find_claim_mistakes(record: Mapping[str, Any]) -> list[str]:
    fields = (*TEXT_FIELDS, *NUMBER_FIELDS)
    mistakes = [_format_unknown(name, fields) for name in record if name not in fields]
    mistakes += [f"`{name}` is missing" for name in REQUIRED_FIELDS if name not in record]
    no_text = [name for name in TEXT_FIELDS if name in record and not _is_text(record[name])]
    mistakes += [f"`{name}` must be text, not {record[name]!r}" for name in no_text]
    no_number = [name for name in NUMBER_FIELDS if name in record and not _is_number(record[name])]
    mistakes += [f"`{name}` must be a number, not {record[name]!r}" for name in no_number]
    if "at_least" not in record and "at_most" not in record:
        mistakes.append("needs `at_least` or `at_most`, or both: what counts as kept")
    elif not no_number and record.get("at_least", -math.inf) > record.get("at_most", math.inf):
        mistakes.append(
            f"`at_least` {record['at_least']} is more than `at_most` {record['at_most']}; nothing can keep it"
        )
    return mistakes


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)


# Judging ---------------------------------------------------------------------------------------


def judge_claims(claims: Claims, facts: Mapping[str, float]) -> list[JudgedClaim]:
    """Judge each claim by the fact that it names; `facts` are a study's."""
    measured = [(claim, facts.get(claim.fact)) for claim in claims.claims]
    return [JudgedClaim(claim, fact, claim.judge(fact)) for claim, fact in measured]


def build_claim_rows(judged: Iterable[JudgedClaim]) -> list[list[str]]:
    """Return the claims as a heading and rows of text."""
    rows = [["place", "what the paper says", "paper", "ours", "kept if", "verdict"]]
    for verdict in judged:
        claim, measured = verdict.claim, verdict.measured
        printed = "" if claim.printed is None else format_number(claim.printed)
        ours = "" if measured is None or math.isnan(measured) else format_number(measured)
        rows.append([claim.place, claim.says, printed, ours, claim.criterion, str(verdict.outcome)])
    return rows


def list_reasons(judged: Iterable[JudgedClaim]) -> list[str]:
    """Return a line for each missed claim with its reason, or that none is given yet."""
    missed = [verdict.claim for verdict in judged if verdict.outcome is ClaimOutcome.MISSED]
    return [f"missed, {claim.place} (`{claim.key}`): {claim.reason or 'no reason is given yet'}" for claim in missed]


def format_tally(judged: Iterable[JudgedClaim]) -> str:
    """Count the claims by outcome, in one line.

    >>> claim = PaperClaim("a", "5.1", "twice as fast", "ratio", at_least=2)
    >>> format_tally(judge_claims(Claims("a paper", (claim,)), {"ratio": 3.0}))
    '1 claim: 1 kept'
    """
    outcomes = [verdict.outcome for verdict in judged]
    counts = [f"{outcomes.count(outcome)} {outcome}" for outcome in ClaimOutcome if outcome in outcomes]
    return f"{len(outcomes)} claim{'' if len(outcomes) == 1 else 's'}: {', '.join(counts) or 'none to judge'}"
