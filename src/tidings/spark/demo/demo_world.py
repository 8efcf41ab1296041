"""The simulated world of the demo: car ads that arrive, and people who save, change and drop searches meanwhile.

It has four acts, and is a function of three numbers: how many ads, how many searches, the seed. An act begins with
changes of searches and continues with a few files of ads. The next one waits until all of those are read, so that each
ad meets the same searches in every run; a real world does not wait, and its ads meet whatever is in force.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from tidings.bench import workloads

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAMAGES = ({"price": "call me"}, {"spot": {"lon": 13.4, "lat": 525.2}}, {"price": "4.500,-"}, None)
"""How ads are damaged: fields are replaced, or (the last one) the line is cut short."""

DAMAGE_EVERY = 300
"""One in so many ads is damaged."""

FILES = 3
"""Files of ads in one act."""


@dataclass(frozen=True, slots=True)
class Act:
    """Changes of searches (a filter for each id, or nothing to remove it), and the ads that come after them."""

    title: str
    changes: Mapping[str, str | None]
    ads: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class DemoWorld:
    """Everything that will happen: the acts in their order, and the damage of ads by id."""

    acts: tuple[Act, ...]
    damages: Mapping[int, dict[str, Any] | None]

    @classmethod
    def generate(cls, ads: int, searches: int, *, seed: int) -> DemoWorld:
        """Return the world of a seed."""
        rng = Random(seed)  # noqa: S311 - a play, not a secret
        some = max(1, searches // 15)
        wanted = workloads.saved_searches(searches + some, seed + 1)
        ids = [id for id, _ in wanted[:searches]]
        chosen = rng.sample(ids, min(2 * some, len(ids)))
        rewritten = dict(
            zip(chosen[:some], (text for _, text in workloads.saved_searches(some, seed + 2)), strict=False)
        )
        gone: dict[str, str | None] = dict.fromkeys(chosen[some:])
        acts = [
            (f"{searches:,} saved searches are there", dict(wanted[:searches])),
            (f"{some:,} searches are added", dict(wanted[searches:])),
            (f"{len(rewritten):,} searches are changed", rewritten),
            (f"{len(gone):,} searches are removed", gone),
        ]
        events = workloads.car_ads(ads, seed)
        size = -(-ads // len(acts))
        damages = {number: rng.choice(DAMAGES) for number in rng.sample(range(ads), -(-ads // DAMAGE_EVERY))}
        return cls(
            tuple(Act(*act, events[size * number : size * (number + 1)]) for number, act in enumerate(acts)),  # type: ignore[arg-type]
            damages,
        )

    @property
    def ads(self) -> int:
        """The number of ads."""
        return sum(len(act.ads) for act in self.acts)

    def find_searches_before(self, act: int) -> dict[str, str]:
        """Return the searches that were in force before an act."""
        searches: dict[str, str | None] = {}
        for earlier in self.acts[:act]:
            searches.update(earlier.changes)
        return {id: text for id, text in searches.items() if text is not None}

    def find_first_ad(self, act: int) -> int:
        """Return the number of the first ad of an act."""
        return sum(len(earlier.ads) for earlier in self.acts[:act])

    def split_files(self, act: Act) -> Iterator[list[str]]:
        """Yield the files of an act, each as its lines."""
        size = max(1, -(-len(act.ads) // FILES))
        for start in range(0, len(act.ads), size):
            damaged = [(ad, self.damages.get(ad["id"], {})) for ad in act.ads[start : start + size]]
            yield [
                json.dumps({**ad, **(damage or {})}, default=str)[: 40 if damage is None else None]
                for ad, damage in damaged
            ]


def publish_changes(world: DemoWorld, number: int, folder: Path) -> None:
    """Write the changes of an act as a file that the pipeline follows."""
    rows = [json.dumps({"id": id, "filter": text}) for id, text in world.acts[number].changes.items()]
    publish(folder / "searches" / f"{number:03}.jsonl", rows)


def publish(path: Path, lines: list[str]) -> None:
    """Write a file that appears as a whole: readers ignore names that begin with a dot."""
    hidden = path.with_name(f".{path.name}")
    hidden.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    hidden.rename(path)
