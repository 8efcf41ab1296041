"""Where a command's patterns come from: a file, a state that has its own patterns, or both."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.cli.input_files import read_text
from tidings.cli.match.subscription_origin import load_vocabulary
from tidings.cli.pattern.options import PatternOptions
from tidings.cli.pattern.saved_files import read_state
from tidings.errors import BadSubscriptions, PatternError, TidingsError
from tidings.forecast import Detector
from tidings.lang import WrittenPattern, read_patterns
from tidings.lang.diagnostics import MAX_MISTAKES
from tidings.model.patterns import Mode
from tidings.patterns.run.graph_run import MOST_PARTIALS

if TYPE_CHECKING:
    from tidings.concepts import Vocabulary
    from tidings.forecast import Model

LINE_NUMBERS = ""
"""The id's field where an event's id is the number of its line: no event has such a field."""


@dataclass(frozen=True, slots=True)
class PatternOrigin:
    """A file of patterns, or a state, or both, with the options of the command."""

    options: PatternOptions
    patterns: str | None = None
    state: Path | None = None

    def load_vocabulary(self) -> Vocabulary:
        """Load the schema, ontology and regions that the options name."""
        return load_vocabulary(self.options.schema, self.options.ontology, self.options.regions)

    def build_detector(self, *, model: Model | None = None, learn: bool = False, **plan: Any) -> Detector:
        """Return a new detector of the file's patterns; `plan` says what is forecast of them."""
        vocabulary = self.load_vocabulary()
        detector = _build_empty(self.options, vocabulary, model=model, learn=learn)
        replace_patterns(detector, self.read_patterns(vocabulary), **plan)
        return detector

    def open_detector(self) -> Detector:
        """Return a detector of the patterns: a new one, or the one that the state has."""
        if self.state is None:
            return self.build_detector()
        detector = _apply_options(self.options, Detector.resume(read_state(self.state)))
        if self.patterns is not None:
            replace_patterns(detector, self.read_patterns(detector.vocabulary))
        return detector

    def read_patterns(self, vocabulary: Vocabulary) -> list[WrittenPattern]:
        """Return the patterns of the file, in the mode of `--mode` if there is one."""
        patterns = _read_patterns(str(self.patterns), vocabulary)
        if self.options.mode is None:
            return patterns
        mode = Mode(self.options.mode.value)
        return [replace(written, mode=mode, limit=written.limit if mode is Mode.ANY else None) for written in patterns]


def _build_empty(options: PatternOptions, vocabulary: Vocabulary, **forecasting: Any) -> Detector:
    return Detector(
        time=options.time or "time",
        event_id=options.event_id or LINE_NUMBERS,
        keep=options.keep or (),
        lateness=options.lateness,
        partials=options.partials or MOST_PARTIALS,
        **vocabulary.to_keywords(),
        **forecasting,
    )


def _apply_options(options: PatternOptions, resumed: Detector) -> Detector:
    """Return a resumed detector with the options that were typed; once it has taken events, some cannot change."""
    lateness = timedelta(microseconds=resumed.lateness) if options.lateness is None else options.lateness
    time, event_id = options.time or resumed.time, options.event_id or resumed.event_id
    merged = replace(
        options,
        time=time,
        event_id=event_id,
        keep=options.keep or list(resumed.keep),
        lateness=lateness,
        partials=options.partials or resumed.partials,
    )
    detector = _build_empty(merged, resumed.vocabulary)
    if not resumed.has_begun:
        detector.add_many([pattern.to_written() for pattern in resumed.patterns])
        return detector
    for name in ("lateness", "keep", "partials"):
        if getattr(detector, name) != getattr(resumed, name):
            msg = f"the state has begun with another --{name}; leave it out, or begin anew without --state"
            raise TidingsError(msg)
    resumed.rename_fields(time, event_id)
    return resumed


def replace_patterns(detector: Detector, patterns: list[WrittenPattern], **plan: Any) -> None:
    """Give a detector these patterns and no others; unchanged ones keep their partial matches.

    A refusal names the pattern.
    """
    # First: the filters of patterns that go may be in the way of new ones.
    for name in set(detector) - {pattern.name for pattern in patterns}:
        detector.remove(name)
    try:
        detector.add_many(patterns, **plan)
    except (PatternError, BadSubscriptions) as problem:
        raise _find_refused(patterns, detector.vocabulary) or problem from problem


def _find_refused(patterns: list[WrittenPattern], vocabulary: Vocabulary) -> PatternError | None:
    """Return the refusal with the name of its pattern, found by adding them one by one."""
    detector = Detector(**vocabulary.to_keywords())
    for index, pattern in enumerate(patterns):
        try:
            detector.add_many([pattern])
        except PatternError as problem:
            return PatternError(f"pattern `{pattern.name}`: {problem}")
        except BadSubscriptions as problem:
            other = next((other.name for other in patterns[:index] if _has_clash(other, pattern, vocabulary)), None)
            with_other = "" if other is None else f" does not go with pattern `{other}`"
            reasons = "; ".join(re.sub(r"subscription `\d+`", "one filter", str(why)) for _, why in problem.errors)
            return PatternError(f"pattern `{pattern.name}`{with_other}: {reasons}")
    return None


def _has_clash(pattern: WrittenPattern, other: WrittenPattern, vocabulary: Vocabulary) -> bool:
    try:
        Detector(**vocabulary.to_keywords()).add_many([pattern, other])
    except TidingsError:
        return True
    return False


def _read_patterns(path: str, vocabulary: Vocabulary) -> list[WrittenPattern]:
    name = "standard input" if path == "-" else path
    text = read_text(path, f"`{name}`").replace("\r\n", "\n")
    try:
        patterns = read_patterns(text, **vocabulary.to_keywords())
    except PatternError as problem:
        count = len(problem.mistakes)
        counted = "1 mistake" if count == 1 else f"{count} mistakes{' or more' if count >= MAX_MISTAKES else ''}"
        msg = f"`{name}` has {counted}:\n{problem}"
        raise PatternError(msg, mistakes=problem.mistakes, text=text) from problem
    if not patterns:
        msg = f"`{name}` holds no pattern; one begins with a line `pattern NAME`"
        raise PatternError(msg)
    return patterns
