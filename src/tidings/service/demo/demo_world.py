"""The simulated world of the demo: car ads that arrive, and people who save, change and drop searches meanwhile.

It has four acts, and is a function of three numbers and a time: how many ads, how many searches, the seed, and when it
is. An act begins with changes of searches and continues with a few posts of ads. The next one waits until all of those
are matched, so that each ad meets the same searches in every run; a real world does not wait, and its ads meet whatever
is in force.
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
    from datetime import datetime

DAMAGES = ({"price": "call me"}, {"spot": {"lon": 13.4, "lat": 525.2}}, {"price": "4.500,-"}, None)
"""How ads are damaged: fields are replaced, or (the last one) the text is cut short."""

DAMAGE_EVERY = 300
"""One in so many ads is damaged."""

POSTS = 12
"""Posts of ads in one act."""

BARGAINS = """
offer = seller.kind = 'dealer' and seller.name = $dealer and price < 3000
offer ; offer within 1 h
"""
"""A pattern that somebody subscribes to: a dealer who offers two cheap cars within an hour."""


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
    damages: Mapping[str, dict[str, Any] | None]

    @classmethod
    def generate(cls, ads: int, searches: int, *, seed: int, now: datetime = workloads.NOW) -> DemoWorld:
        """Return the world of a seed, with ads of the days before `now`."""
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
        events = [{**ad, "id": f"ad-{ad['id']}"} for ad in workloads.car_ads(ads, seed, now=now)]
        size = -(-ads // len(acts))
        damages = {f"ad-{number}": rng.choice(DAMAGES) for number in rng.sample(range(ads), -(-ads // DAMAGE_EVERY))}
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

    def find_act(self, ad: str) -> int:
        """Return the number of the act in which an ad comes."""
        number, acts = get_number(ad), len(self.acts)
        return max(act for act in range(acts) if self.find_first_ad(act) <= number)

    def find_first_ad(self, act: int) -> int:
        """Return the number of the first ad of an act."""
        return sum(len(earlier.ads) for earlier in self.acts[:act])

    def split_posts(self, act: Act) -> Iterator[str]:
        """Yield the bodies in which the good ads of an act are posted, each a JSON array."""
        good = [ad for ad in act.ads if ad["id"] not in self.damages]
        size = max(1, -(-len(good) // POSTS))
        for start in range(0, len(good), size):
            yield json.dumps(good[start : start + size], default=_write_time)

    def list_damaged(self, act: Act) -> Iterator[tuple[str, str]]:
        """Yield the id and the body of each ad of an act that is damaged."""
        for ad in act.ads:
            if ad["id"] in self.damages:
                damage = self.damages[ad["id"]]
                text = json.dumps({**ad, **(damage or {})}, default=_write_time)
                yield ad["id"], text[:40] if damage is None else text


def get_number(ad: str) -> int:
    """Return the number of an ad."""
    return int(ad.removeprefix("ad-"))


def _write_time(moment: datetime) -> str:
    return moment.isoformat()
