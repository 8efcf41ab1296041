"""A list of changes, in the order in which they were made, as few rounds that each can be applied at once.

Every change is judged by itself, after all that come before it: a removal followed by a filter that is refused removes,
and an edit followed by a refused edit is in force. So changes cannot be folded by id before they are judged. But
changes of different ids do not touch each other: in a round, what is removed goes first, then what is added goes in
order, and only the removal of what was added in the same round waits for the next. The one thing that all
subscriptions share is whether ids are text or integers: where that changes in the list, the rounds begin anew.

The result is that of the changes one by one, however a feed is split (tests/laws/test_feeds.py). A feed in which each
id comes once is one round, and goes in as a whole.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidings.errors import TidingsError
    from tidings.matcher.loading.subscription_input import Submission


class ChangeStep(NamedTuple):
    """One change: a filter for an id, or its removal; or `problem` says why it cannot be read."""

    id: Any
    filter: Any = None
    notation: str = "text"
    removes: bool = False
    problem: TidingsError | None = None


class Round(NamedTuple):
    """Ids to remove, and then triples of id, filter and notation to add, with their numbers in the list."""

    removed: list[Any]
    added: list[Submission]
    numbers: list[int]


def split_rounds(steps: Iterable[tuple[int, ChangeStep]]) -> Iterator[Round]:
    """Yield the rounds of numbered changes; all ids are text or integers."""
    for _, run in groupby(steps, key=lambda numbered: isinstance(numbered[1].id, str)):
        rounds = [Round([], [], [])]
        latest: dict[Any, tuple[int, bool]] = {}  # the round of an id's last change, and whether it adds
        for number_in_list, step in run:
            number, was_added = latest.get(step.id, (0, False))
            if not step.removes:
                rounds[number].added.append((step.id, step.filter, step.notation))
                rounds[number].numbers.append(number_in_list)
            else:
                number += was_added
                if number == len(rounds):
                    rounds.append(Round([], [], []))
                rounds[number].removed.append(step.id)
            latest[step.id] = number, not step.removes
        yield from rounds
