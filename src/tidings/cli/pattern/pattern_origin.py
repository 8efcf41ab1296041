"""Where a command's patterns come from: a file, a state that knows them, or both; and where a state goes.

A state is written beside its place and then put there, so that whoever is interrupted has the old one or the new one.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tidings.cli.match.subscription_origin import surroundings
from tidings.errors import BadSubscriptions, FileError, PatternError, TidingsError
from tidings.forecast import Detector
from tidings.lang import WrittenPattern, read_patterns
from tidings.lang.diagnostics import MAX_MISTAKES
from tidings.model.patterns import Mode
from tidings.patterns.overview import around, has_begun
from tidings.patterns.run.graph_run import MOST_PARTIALS
from tidings.patterns.state.graph_bytes import MAGIC

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.patterns.compile.graph import CompiledPattern

Kind = TypeVar("Kind", bound=Detector)
"""A detector, or one that forecasts too."""

LINES = ""
"""The id's field where events are called by the numbers of their lines: no event has it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a detector is told beside its patterns; nothing where nothing was typed."""

    time: str | None = None
    event_id: str | None = None
    keep: list[str] | None = None
    lateness: timedelta | None = None
    partials: int | None = None

    def made(self, kind: Callable[..., Kind], **known: Any) -> Kind:
        """Return a detector without patterns, of this kind."""
        return kind(
            time=self.time or "time",
            event_id=self.event_id or LINES,
            keep=self.keep or (),
            lateness=self.lateness,
            partials=self.partials or MOST_PARTIALS,
            **known,
        )

    def over(self, held: Detector) -> Detector:
        """Return a resumed detector with what was typed; once it holds events, some settings cannot change."""
        span = timedelta(microseconds=held.lateness) if self.lateness is None else self.lateness
        names = self.time or held.time, self.event_id or held.event_id
        wanted = Settings(*names, self.keep or list(held.keep), span, self.partials or held.partials)
        made = wanted.made(Detector, **around(held))
        if not has_begun(held):
            made.add_many([WrittenPattern(one.name, one.pattern, one.mode, _limit(one)) for one in held.watched])
            return made
        for name in ("lateness", "keep", "partials"):
            if getattr(made, name) != getattr(held, name):
                msg = f"the state has begun with another --{name}; leave it out, or begin anew without --state"
                raise TidingsError(msg)
        held.time, held.event_id = names
        return held


def _limit(told: CompiledPattern) -> int | None:
    return told.limit if told.mode is Mode.ANY else None


@dataclass(frozen=True, slots=True)
class Source:
    """A file of patterns and what its names mean, or a state."""

    patterns: str | None
    state: Path | None
    settings: Settings
    schema: Path | None = None
    ontology: Path | None = None
    regions: Path | None = None
    mode: str | None = None

    def new(self, kind: Callable[..., Kind], **plan: Any) -> Kind:
        """Return a detector of a kind that forecasts, with the file's patterns and what is foretold of them."""
        known = surroundings(self.schema, self.ontology, self.regions)
        made = self.settings.made(kind, **known)
        watched(made, self.read(known), **plan)
        return made

    def detector(self) -> Detector:
        """Return a detector of the patterns, new or where the state stands."""
        if self.state is None:
            return self.new(Detector)
        held = Detector.resume(_state(self.state))
        assert isinstance(held, Detector)
        made = self.settings.over(held)
        if self.patterns is not None:
            watched(made, self.read(around(made)))
        return made

    def read(self, known: dict[str, Any]) -> list[WrittenPattern]:
        """Return the patterns of the file, with the mode that was typed."""
        found = _read(str(self.patterns), known)
        return found if self.mode is None else [_in_mode(one, Mode(self.mode)) for one in found]


def watched(detector: Detector, patterns: list[WrittenPattern], **plan: Any) -> None:
    """Let a detector watch these patterns and no others; those that it knows go on. A refusal names the pattern."""
    for name in set(detector) - {one.name for one in patterns}:  # first: their filters may be in the way of new ones
        detector.remove(name)
    try:
        detector.add_many(patterns, **plan)
    except (PatternError, BadSubscriptions) as refused:
        raise _named(patterns, around(detector)) or refused from refused


def _named(patterns: list[WrittenPattern], known: dict[str, Any]) -> PatternError | None:
    """Return the refusal with the pattern's name, found by adding them one by one."""
    so_far = Detector(**known)
    for place, one in enumerate(patterns):
        try:
            so_far.add_many([one])
        except PatternError as problem:
            return PatternError(f"pattern `{one.name}`: {problem}")
        except BadSubscriptions as problem:
            other = next((told.name for told in patterns[:place] if _clash(told, one, known)), None)
            beside = "" if other is None else f" does not go with pattern `{other}`"
            reasons = "; ".join(re.sub(r"subscription `\d+`", "one filter", str(why)) for _, why in problem.errors)
            return PatternError(f"pattern `{one.name}`{beside}: {reasons}")
    return None


def _clash(one: WrittenPattern, other: WrittenPattern, known: dict[str, Any]) -> bool:
    try:
        Detector(**known).add_many([one, other])
    except TidingsError:
        return True
    return False


def _in_mode(one: WrittenPattern, mode: Mode) -> WrittenPattern:
    return replace(one, mode=mode, limit=one.limit if mode is Mode.ANY else None)


def _read(path: str, known: dict[str, Any]) -> list[WrittenPattern]:
    name, text = "standard input" if path == "-" else path, _text(path)
    try:
        found = read_patterns(text, **known)
    except PatternError as refused:
        count = len(refused.mistakes)
        counted = "1 mistake" if count == 1 else f"{count} mistakes{' or more' if count >= MAX_MISTAKES else ''}"
        msg = f"`{name}` has {counted}:\n{refused}"
        raise PatternError(msg, mistakes=refused.mistakes, text=text) from refused
    if not found:
        msg = f"`{name}` holds no pattern; one begins with a line `pattern NAME`"
        raise PatternError(msg)
    return found


def _text(path: str) -> str:
    name = "standard input" if path == "-" else path
    try:
        if path == "-" and sys.stdin is None:
            raise OSError("it is closed")  # noqa: EM101 - joins the reasons below
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as problem:
        msg = f"cannot read `{name}`: it is not UTF-8 text (byte {problem.start})"
        raise FileError(msg) from problem
    except (OSError, ValueError) as problem:
        msg = f"cannot read `{name}`: {(problem.strerror if isinstance(problem, OSError) else None) or problem}"
        raise FileError(msg) from problem


# States -----------------------------------------------------------------------------------------


def _state(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as problem:
        reason = (problem.strerror if isinstance(problem, OSError) else None) or problem
        msg = f"cannot read the state `{path}`: {reason}; `tidings pattern compile -o STATE` writes a first one"
        raise FileError(msg) from problem


def check_place(path: Path, *, magic: bytes = MAGIC, called: str = "detector's state") -> None:
    """Refuse a place where nothing can go, before hours of work: a folder, or a file that is something else."""
    try:
        begins = _beginning(path, len(magic))
    except (OSError, ValueError) as problem:
        raise unwritable(path, problem, called.rsplit(maxsplit=1)[-1]) from problem
    if begins not in (None, b"", magic):
        msg = f"`{path}` is no {called}, and would be overwritten; choose another name"
        raise FileError(msg)


def _beginning(path: Path, size: int) -> bytes | None:
    if path.exists():
        with path.open("rb") as file:
            return file.read(size)
    if not os.access(path.parent, os.W_OK):
        raise OSError("its folder cannot be written to")  # noqa: EM101 - joins the reasons above
    return None


def save(detector: Detector, path: Path) -> None:
    """Write where a detector stands."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(detector.snapshot())
        beside.replace(path)
    except (OSError, ValueError) as problem:
        raise unwritable(path, problem) from problem
    finally:
        with suppress(OSError, ValueError):
            beside.unlink(missing_ok=True)


def unwritable(path: Path, problem: Exception, called: str = "state") -> FileError:
    """Return an error that says why a file cannot be written."""
    reason = (problem.strerror if isinstance(problem, OSError) else None) or problem
    return FileError(f"cannot write the {called} to `{path}`: {reason}")
