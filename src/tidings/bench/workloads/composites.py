"""Composite subscriptions and event streams as in the measurements of P-ToPSS (section 6 of the paper).

Events are types `e0`, `e1`, ...: whole numbers in a stream, text in a filter (`type = 'e17'`). Types below `pool` are
the pool that subscriptions are drawn from; those above serve as irrelevant events.

Printed: N_cs 1000, Length_cs 10, N_ep 50, two non-contiguous operators at places drawn uniformly, N_pm 20, N_fm 20,
Length_irr from 1 to 100, Length_pm from 1 to Length_cs - 1, irrelevant events or a match by the toss of a coin.

Not printed, and chosen:
- The Gaussian of subscriptions has its mean in the middle of the pool and a sixth of the pool as its deviation; the
  one of partial matches has its mean a quarter up its range (the paper says that it makes them shorter than uniform
  ones do) and a sixth of the range as its deviation. Both are rounded, and drawn again outside their range.
- Which match is next: each of those that remain is as likely as any other. (The paper draws a subscription first.)
- A full match is its events back to back, a partial one the first of them: nothing is put into the gaps.
- Irrelevant events are of ten types. Events are one second apart.

With the quotas 20 + 20 of 1,000 subscriptions there are 40,000 matches of 7.5 events on average and, by the coin, as
many runs of 50.5 irrelevant events: about 2.3 million events, 13 in 100 of them relevant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from tidings.kernels.array_types import Int32Array, IntArray
from tidings.model import Is, Test
from tidings.model.patterns import Gap, Joint, NamedFilter, Pattern, Sequence, Step

if TYPE_CHECKING:
    from collections import abc

    from numpy.random import Generator

Shape: TypeAlias = Literal["uniform", "gaussian"]
"""The distribution of the types of subscriptions, or of the lengths of partial matches."""

SECOND = 1_000_000
"""Time between two events, in microseconds."""

IRRELEVANT = 10
"""Types of irrelevant events."""


@dataclass(frozen=True, slots=True)
class PublicationStream:
    """Events in order: their types as numbers, and their times in microseconds."""

    types: Int32Array
    times: IntArray

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.types)

    def names(self) -> list[str]:
        """Return the types as text; equal ones are one object, as in a program that reads them from a dictionary."""
        vocabulary = self._vocabulary
        return [vocabulary[number] for number in self.types.tolist()]

    def table(self) -> pa.Table:
        """Return the columns `id`, `time` (UTC) and `type` (a dictionary of texts)."""
        columns = {
            "id": np.arange(len(self)),
            "time": pa.array(self.times, pa.timestamp("us", tz="UTC")),
            "type": pa.DictionaryArray.from_arrays(pa.array(self.types), pa.array(self._vocabulary, pa.string())),
        }
        return pa.table(columns)

    @property
    def _vocabulary(self) -> list[str]:
        return [name_of(number) for number in range(int(self.types.max(initial=-1)) + 1)]


def name_of(number: int) -> str:
    """Return the text of a type, which is also the name of its filter."""
    return f"e{number}"


def composites(
    n: int = 1000, *, length: int = 10, pool: int = 50, later: int = 2, shape: Shape = "uniform", seed: int
) -> list[Pattern]:
    """Return subscriptions: sequences of so many steps over a pool of types, `later` of their joints `;`, the rest `,`.

    >>> from tidings.model.patterns import Gap
    >>> [joint.gap is Gap.LATER for joint in composites(1, length=4, later=3, seed=1)[0].root.joints]
    [True, True, True]
    """
    rng = np.random.default_rng(seed)
    if shape == "uniform":
        numbers = rng.integers(0, pool, (n, length))
    else:
        numbers = _draw_gaussian(rng, (n, length), mean=(pool - 1) / 2, width=pool / 6, ends=(0, pool - 1))
    gaps = rng.permuted(np.tile(np.arange(length - 1) < later, (n, 1)), axis=1)
    filters = [NamedFilter(name_of(number), Test("type", Is(name_of(number)))) for number in range(pool)]
    return [_build_pattern(filters, row, mask) for row, mask in zip(numbers.tolist(), gaps.tolist(), strict=True)]


def publications(
    patterns: abc.Sequence[Pattern],
    *,
    shape: Shape = "uniform",
    partial: int = 20,
    full: int = 20,
    irrelevant: tuple[int, int] = (1, 100),
    pool: int | None = None,
    seed: int,
) -> PublicationStream:
    """Return a stream that matches each subscription fully and in part so many times, or more often by chance.

    `pool` is the first type of irrelevant events; by default it follows the types of the subscriptions.
    """
    rng = np.random.default_rng(seed)
    rows, lengths = _list_steps(patterns)
    owner, size = _draw_matches(rng, lengths, partial=partial, full=full, shape=shape)
    runs = rng.geometric(0.5, len(owner)) - 1  # tosses for irrelevant events before the one for a match
    pieces = np.full(int(runs.sum()) + len(owner), -1)
    pieces[np.cumsum(runs + 1) - 1] = owner
    sizes = rng.integers(*irrelevant, len(pieces), endpoint=True)
    sizes[pieces >= 0] = size
    first = int(rows.max(initial=-1)) + 1 if pool is None else pool
    return _make_stream(_lay_out(rng, rows, pieces=pieces, sizes=sizes, first=first))


def uniform_stream(n: int, pool: int = 50, *, seed: int) -> PublicationStream:
    """Return a stream whose events are drawn uniformly from the pool."""
    return _make_stream(np.random.default_rng(seed).integers(0, pool, n, dtype=np.int32))


def _draw_gaussian(
    rng: Generator, size: int | tuple[int, int], *, mean: float, width: float, ends: tuple[int, int]
) -> IntArray:
    """Draw rounded normal numbers; those outside the ends are drawn again."""
    numbers = np.rint(rng.normal(mean, width, size))
    while (outside := (numbers < ends[0]) | (numbers > ends[1])).any():
        numbers[outside] = np.rint(rng.normal(mean, width, int(outside.sum())))
    return numbers.astype(np.int64)


def _build_pattern(filters: list[NamedFilter], numbers: list[int], later: list[bool]) -> Pattern:
    steps = tuple(Step(name_of(number)) for number in numbers)
    joints = tuple(Joint(Gap.LATER if gap else Gap.NEXT) for gap in later)
    used = tuple(filters[number] for number in dict.fromkeys(numbers))
    return Pattern(used, Sequence(steps, joints) if joints else steps[0])


def _list_steps(patterns: abc.Sequence[Pattern]) -> tuple[Int32Array, IntArray]:
    """Return the types of each subscription's steps, one row each, padded with -1, and the number of steps."""
    numbers = [[int(step.filter.removeprefix("e")) for step in pattern.steps()] for pattern in patterns]
    lengths = np.array([len(row) for row in numbers], np.int64)
    rows = np.full((len(numbers), int(lengths.max(initial=0))), -1, np.int32)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = [number for row in numbers for number in row]
    return rows, lengths


def _draw_matches(
    rng: Generator, lengths: IntArray, *, partial: int, full: int, shape: Shape
) -> tuple[IntArray, IntArray]:
    """Return the matches in random order: the subscription of each, and how many of its events it has."""
    # A single step has no partial match.
    parts = np.repeat(np.flatnonzero(lengths > 1), partial)
    wholes = np.repeat(np.arange(len(lengths)), full)
    owner = np.concatenate([parts, wholes])
    size = np.concatenate([_draw_partial_lengths(rng, lengths[parts], shape=shape), lengths[wholes]])
    order = rng.permutation(len(owner))
    return owner[order], size[order]


def _draw_partial_lengths(rng: Generator, lengths: IntArray, *, shape: Shape) -> IntArray:
    if shape == "uniform":
        return rng.integers(1, lengths)
    sizes = np.zeros(len(lengths), np.int64)
    for length in np.unique(lengths).tolist():
        same, span = lengths == length, length - 2
        sizes[same] = _draw_gaussian(rng, int(same.sum()), mean=1 + span / 4, width=span / 6, ends=(1, length - 1))
    return sizes


def _lay_out(rng: Generator, rows: Int32Array, *, pieces: IntArray, sizes: IntArray, first: int) -> Int32Array:
    """Return the events of the pieces: the first of a subscription's row, or irrelevant ones where the piece is -1."""
    piece = np.repeat(np.arange(len(pieces)), sizes)
    within = np.arange(len(piece)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    types = rng.integers(first, first + IRRELEVANT, len(piece), dtype=np.int32)
    relevant = pieces[piece] >= 0
    types[relevant] = rows[pieces[piece[relevant]], within[relevant]]
    return types


def _make_stream(types: Int32Array) -> PublicationStream:
    return PublicationStream(types, np.arange(len(types), dtype=np.int64) * SECOND)
