"""Measuring an entrant of the scoreboard inside its own process, and comparing its answers with the engine's.

The clock is that of the settings: processor time of all threads, since on a machine that others use too everyone
waits, and not evenly.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.scoreboard.forked_process import READY
from tidings.bench.harness.process_memory import read_status, settle_resident_memory
from tidings.bench.harness.timing import Clock, measure_seconds, plan_repeats, time_events

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from benchmarks.scoreboard.entrants import Entrant, EntrantAnswer
    from benchmarks.scoreboard.forked_process import Send
    from tidings.bench.harness.measure import Settings


def measure_entrant(entrant: Entrant, subscriptions: int, settings: Settings, *, send: Send) -> None:
    """Build and time an entrant; send `build_s` first, so that it is kept if the process is stopped, then the rest."""
    _warm_up(entrant, min(settings.warm_up, subscriptions), settings)
    before = settle_resident_memory()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets VmHWM, the peak
    resident, began = read_status("VmRSS"), settings.clock.read()
    send(READY)
    send({"build_s": _time_building(entrant, subscriptions, settings.clock)})
    figures = _time_matching(entrant, settings, left_s=max(0.0, settings.budget_s + began - settings.clock.read()))
    peak = read_status("VmHWM") - resident
    memory = {"bytes": settle_resident_memory() - before, "peak": peak} if before else {}
    send({**figures, "approximate": entrant.approximate, **memory})


def _warm_up(entrant: Entrant, subscriptions: int, settings: Settings) -> None:
    """Build and match at small sizes, which loads compiled code, and leave an almost empty index."""
    entrant.build(subscriptions)
    for count in {1, min(16, settings.events), min(64, settings.events)}:
        entrant.prepare(count)
        entrant.list_answers(entrant.match(count), count)
    entrant.build(min(1, subscriptions))


def _time_building(entrant: Entrant, subscriptions: int, clock: Clock) -> float:
    """Return the seconds of building, including what is built only when the first event comes."""
    seconds = measure_seconds(lambda: entrant.build(subscriptions), clock)
    entrant.prepare(1)
    first, second = (measure_seconds(lambda: entrant.match(1), clock) for _ in range(2))
    return seconds + max(0.0, first - second)


def _time_matching(entrant: Entrant, settings: Settings, *, left_s: float) -> dict[str, Any]:
    """Return the answers to the first events, and the times of an event, in microseconds."""
    count, repeat = plan_repeats(
        entrant.match,
        settings.events,
        repeat=settings.repeat,
        allowed_s=min(settings.budget_s / 3, left_s * 0.7),
        least=settings.checked,
        prepare=entrant.prepare,
        clock=settings.clock,
    )
    entrant.prepare(count)
    answers = entrant.list_answers(entrant.match(count), count)
    matches = sum(answer if isinstance(answer, int) else len(answer) for answer in answers)
    answers = answers[: settings.checked]
    times = time_events(lambda: entrant.match(count), count, repeat=repeat, budget_s=left_s * 0.7, clock=settings.clock)
    return {
        "batch": list(times.figure.repeats),
        "events": count,
        "matches": matches / count,
        "wall": times.wall_us,
        "answers": answers,
    }


@dataclass(frozen=True, slots=True)
class AnswerDifference:
    """On how many events answers are wrong, the share of ids that should not be there, and an example."""

    wrong: int = 0
    extra: float = 0.0
    example: str = ""


def compare_answers(
    answers: Sequence[EntrantAnswer], expected: Sequence[AbstractSet[Any]], *, approximate: bool
) -> AnswerDifference:
    """Compare answers with the expected ids: ids as sets, each id once; counts with the size of the set.

    An approximate answer may have more ids, never fewer.

    >>> compare_answers([["a", "b"], ["c"]], [{"a", "b"}, {"c", "d"}], approximate=False)
    AnswerDifference(wrong=1, extra=0.0, example='event 1 lacks d')
    >>> compare_answers([["a", "b"]], [{"a"}], approximate=True)
    AnswerDifference(wrong=0, extra=0.5, example='')
    """
    wrong: list[str] = []
    extra = total = 0
    for event, (answer, right) in enumerate(zip(answers, expected, strict=False)):
        if isinstance(answer, int):
            wrong += [f"event {event} has {answer:,} matches, not {len(right):,}"] if answer != len(right) else []
            continue
        ids = set(answer)
        total += len(ids)
        extra += len(ids - right)
        words = [] if right <= ids else [f"lacks {_list_few(right - ids)}"]
        words += [] if approximate or ids <= right else [f"has {_list_few(ids - right)} too many"]
        words += ["has ids twice"] if len(ids) != len(answer) else []
        wrong += [f"event {event} {' and '.join(words)}"] if words else []
    return AnswerDifference(len(wrong), extra / total if total else 0.0, wrong[0] if wrong else "")


def _list_few(ids: AbstractSet[Any]) -> str:
    some = sorted(ids)
    return ", ".join(map(str, some[:3])) + (f" and {len(some) - 3:,} others" if len(some) > 3 else "")
