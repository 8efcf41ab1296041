"""The world of the demo: car ads that arrive, and people who save, change and drop searches meanwhile.

It is a play in four acts, and a function of three numbers: how many ads, how many searches, the seed. An act begins
with changes of searches and goes on with a few files of ads. The next one waits until all of those are read, so that
each ad meets the same searches every time; a real world does not wait, and its ads meet whatever is in force.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from tidings.bench import workloads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SPOILT = ({"price": "call me"}, {"spot": {"lon": 13.4, "lat": 525.2}}, {"price": "4.500,-"}, None)
"""What is wrong with the bad ads: each of them gets one of these, or (the last one) is cut short."""

ONE_IN = 300
"""So rare are bad ads."""

FILES = 3
"""Files of ads in an act."""


@dataclass(frozen=True, slots=True)
class Act:
    """Changes of searches, a filter or nothing for each id, and the ads that come after them."""

    told: str
    changes: Mapping[str, str | None]
    ads: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class World:
    """All that will happen: the acts in their order, and which ads are spoilt in which way."""

    acts: tuple[Act, ...]
    spoilt: Mapping[int, dict[str, Any] | None]

    @classmethod
    def made(cls, ads: int, searches: int, *, seed: int) -> World:
        """Make the world of a seed."""
        rng = Random(seed)  # noqa: S311 - a play, not a secret
        some = max(1, searches // 15)
        wanted = workloads.saved_searches(searches + some, seed + 1)
        ids = [id for id, _ in wanted[:searches]]
        drawn = rng.sample(ids, min(2 * some, len(ids)))
        rewritten = dict(
            zip(drawn[:some], (text for _, text in workloads.saved_searches(some, seed + 2)), strict=False)
        )
        gone: dict[str, str | None] = dict.fromkeys(drawn[some:])
        acts = [
            (f"{searches:,} saved searches are there", dict(wanted[:searches])),
            (f"{some:,} searches are added", dict(wanted[searches:])),
            (f"{len(rewritten):,} searches are changed", rewritten),
            (f"{len(gone):,} searches are removed", gone),
        ]
        made = workloads.car_ads(ads, seed)
        size = -(-ads // len(acts))
        spoilt = {number: rng.choice(SPOILT) for number in rng.sample(range(ads), -(-ads // ONE_IN))}
        return cls(
            tuple(Act(*act, made[size * at : size * (at + 1)]) for at, act in enumerate(acts)),  # type: ignore[arg-type]
            spoilt,
        )

    @property
    def ads(self) -> int:
        """How many ads there are."""
        return sum(len(act.ads) for act in self.acts)

    def before(self, act: int) -> dict[str, str]:
        """Return the searches that were in force before an act."""
        found: dict[str, str | None] = {}
        for one in self.acts[:act]:
            found.update(one.changes)
        return {id: text for id, text in found.items() if text is not None}

    def lines(self, act: Act) -> Iterator[list[str]]:
        """Yield the files of an act, each as its lines."""
        size = max(1, -(-len(act.ads) // FILES))
        for start in range(0, len(act.ads), size):
            yield [self._line(ad) for ad in act.ads[start : start + size]]

    def _line(self, ad: dict[str, Any]) -> str:
        if ad["id"] not in self.spoilt:
            return json.dumps(ad, default=str)
        wrong = self.spoilt[ad["id"]]
        return json.dumps({**ad, **(wrong or {})}, default=str)[: None if wrong else 40]


def announce(world: World, number: int, folder: Path) -> None:
    """Write the changes of an act, as a file that the pipeline follows."""
    rows = [json.dumps({"id": id, "filter": text}) for id, text in world.acts[number].changes.items()]
    publish(folder / "searches" / f"{number:03}.jsonl", rows)


def play(
    world: World,
    folder: Path,
    *,
    wait: Callable[[], bool],
    read: Callable[[], bool],
    tell: Callable[[str], None],
) -> None:
    """Play the acts; `wait` and `read` answer whether to go on, after a moment and when all ads are read."""
    for number, act in enumerate(world.acts):
        if number:
            announce(world, number, folder)
            tell(f"{act.told}: searches/{number:03}.jsonl")
        for part, lines in enumerate(world.lines(act)):
            publish(folder / "ads" / f"ads-{number}-{part}.json", lines)
            if not wait():
                return
        if not read():
            return


def publish(path: Path, lines: list[str]) -> None:
    """Write a file that is there as a whole or not at all: readers leave names with a dot in front alone."""
    beside = path.with_name(f".{path.name}")
    beside.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    beside.rename(path)
