"""Slow twins of forecasts: everything by definition, with dictionaries and fractions; and sources of known law."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import comb

import numpy as np
from pattern_worlds import build_stream, number_symbol, to_micros

import tidings as td
from tidings import lang
from tidings.concepts import Vocabulary
from tidings.model.patterns import Mode
from tidings.patterns.compile.pattern_automaton import determinise

S = 1_000_000
ONE_KIND = td.Schema({"kind": "text", "key": "text", "other": "text"})
"""Every event is of one kind."""

EDGES = (*range(1, 11), 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 125, 150, 200, 250, 300, 400, 500, 600, 800, 1000)
"""The bins of waiting times, written down once more."""

SILENCES = 12
"""How long a key is silent, told apart in so many bins."""


def render_text(body, key=""):
    """Write a pattern over filters `a = kind = 'a'`, those that it uses."""
    used = sorted(set("".join(sign if sign.isalpha() else " " for sign in body).split()) & set("abcdefg"))
    return "".join(f"{name} = kind = '{name}'{key}\n" for name in used) + body


def build_pattern(body, key=""):
    return lang.parse_pattern(render_text(body, key))


def build_events(word, keys=None):
    """Make events of a word, a second apart; their ids are their places."""
    key_values = None if keys is None else [{} if key is None else {"key": key} for key in keys]
    return build_stream([(kind, place * S) for place, kind in enumerate(word)], key_values)


def draw_events(length, seed=1, kinds="abc", keys=None):
    rng = np.random.default_rng(seed)
    word = rng.choice(list(kinds), length).tolist()
    return build_events(word, None if keys is None else rng.integers(0, keys, length).tolist())


def watch_pattern(pattern, mode="restart", name="p", model=None, learn=False, tuning=None, **plan):
    detector = td.Detector(model=model, learn=learn, tuning=tuning)
    detector.add(name, pattern, mode=mode, **plan)
    return detector


def train_model(pattern, history, mode="restart", **settings):
    return td.train(watch_pattern(pattern, mode), history, **settings)


def list_forecasts(forecasts, name=None):
    """Return forecasts as numbers that can be compared: event, key, probability."""
    return [
        (forecast.event, forecast.forecast.key, forecast.forecast.probability)
        for forecast in forecasts
        if name is None or forecast.forecast.pattern == name
    ]


def check_same_counts(first, second, within=0.0):
    """Two models have counted the same."""
    assert set(first.patterns) == set(second.patterns)
    for key in first.patterns:
        mine, theirs = first.patterns[key].counts, second.patterns[key].counts
        np.testing.assert_allclose(mine.moves, theirs.moves, rtol=within, atol=within)
        np.testing.assert_allclose(mine.waits, theirs.waits, rtol=within, atol=within)
        np.testing.assert_allclose(mine.later, theirs.later, rtol=within, atol=within)
        assert set(mine.spans) == set(theirs.spans)
        for span in mine.spans:
            np.testing.assert_allclose(mine.spans[span], theirs.spans[span], rtol=within, atol=within)


def check_same_traffic(first, second, within=0.0):
    for name in ("seen", "gaps", "elapsed"):
        np.testing.assert_allclose(getattr(first, name), getattr(second, name), rtol=within)
    for name in ("filters", "asked", "own"):
        mine, theirs = getattr(first, name), getattr(second, name)
        assert set(mine) == set(theirs)
        for of in mine:
            np.testing.assert_allclose(mine[of], theirs[of], rtol=within, atol=within, err_msg=of)


# The counted chain ------------------------------------------------------------------------------------


class Chain:
    """The automaton of a pattern, counted over one word; probabilities are fractions."""

    def __init__(self, pattern, mode, word):
        """Count how often each minterm came in each state; states never left take the shares of the whole word."""
        self.automaton = determinise(pattern, Mode(mode), Vocabulary(ONE_KIND))
        self.names = set(pattern.list_filters())
        self.rows = defaultdict(Counter)
        overall = Counter()
        state = 0
        for kind in word:
            label = self.label(kind)
            self.rows[state][label] += 1
            overall[label] += 1
            state = int(self.automaton.table[state, label])
        self.overall, self.size = overall, len(self.automaton.minterms)
        self.within = lru_cache(None)(self._within)

    def label(self, kind):
        return number_symbol(self.automaton.minterms, {kind} & self.names)

    def after(self, word):
        """Return the state after a word."""
        state = 0
        for kind in word:
            state = int(self.automaton.table[state, self.label(kind)])
        return state

    def chances(self, state):
        row = self.rows[state] if sum(self.rows[state].values()) else self.overall
        total = sum(row.values())
        return [Fraction(row[label], total) for label in range(self.size)]

    def _within(self, state, count):
        if count == 0:
            return Fraction(0)
        probability = Fraction(0)
        for label, chance in enumerate(self.chances(state)):
            if chance:
                hit = self.automaton.reports[state, label]
                probability += chance * (1 if hit else self.within(int(self.automaton.table[state, label]), count - 1))
        return probability


# Counts -----------------------------------------------------------------------------------------------


def split_streams(pattern, events):
    """Part a stream by the key of a pattern with one variable, or not at all: lists of places."""
    if not pattern.key_variables():
        return {None: list(range(len(events)))}
    streams = defaultdict(list)
    for place, event in enumerate(events):
        key = event.get("key")
        if key is not None:
            streams[type(key) is bool, type(key) is str, key].append(place)  # 1 is 1.0, but neither True nor "1"
    return streams


def find_labels(course, pattern, events):
    """Return the label of each event, by the names of the filters that it satisfies."""
    labels = []
    for event in events:
        seen = {"kind": event["kind"]}
        satisfied = [name for name in pattern.list_filters() if td.evaluate(pattern[name].filter, seen)]
        labels.append(course.labels.index("+".join(sorted(satisfied)) or "*"))
    return labels


def weigh_evenly(_place):
    """Let every event weigh the same."""
    return 1.0


@dataclass
class Counted:
    """Counts by definition: dictionaries of (cell, label), (cell, code), and of lines with codes or outcomes."""

    moves: Counter
    waits: Counter
    later: Counter
    spans: dict


def count_by_definition(course, pattern, events, *, weight=weigh_evenly, spans=()):
    """Count by definition. Of a pattern with a key, a line is a cell with how silent the key is; else the cell."""
    counts = Counted(Counter(), Counter(), Counter(), {span: Counter() for span in spans})
    labels = find_labels(course, pattern, events)
    times = [to_micros(event["time"]) for event in events]
    keyed = bool(pattern.key_variables())
    for places in split_streams(pattern, events).values():
        cell, cells, hits = course.start, [], []
        for place in places:
            label = labels[place]
            counts.moves[cell, label] += weight(place)
            hits.append(bool(course.hits[cell, label]))
            cell = int(course.table[cell, label])
            cells.append(cell)
        near, soon = _count_silences(places), _count_silences([times[place] for place in places], 4, 1e6)
        for number, place in enumerate(places):
            place_cell, later = cells[number], [other for other in range(number + 1, len(places)) if hits[other]]
            wait = later[0] - number if later else None
            counts.waits[place_cell, encode_wait(wait, len(places) - 1 - number)] += weight(place)
            if keyed:
                wait = places[later[0]] - place if later else None
                line = place_cell * SILENCES + near[number]
                counts.later[line, encode_wait(wait, len(events) - 1 - place)] += weight(place)
            for span in spans:
                ended = any(times[places[other]] - times[place] <= span for other in later)
                outcome = 0 if ended else 2 if times[-1] - times[place] >= span else 1
                counts.spans[span][place_cell * SILENCES + soon[number] if keyed else place_cell, outcome] += weight(
                    place
                )
    return counts


def compute_mean_gaps(moments):
    """Return at each of a key's moments the mean gap so far, of the last sixteen or so; nothing at the first."""
    gaps = [None]
    for number, (before, now) in enumerate(pairwise(moments), 1):
        gap = float(now - before)
        gaps.append(gap if number == 1 else gaps[-1] + (gap - gaps[-1]) / min(number, 16))
    return gaps


def compute_own_gaps(pattern, events, weight=weigh_evenly):
    """Return how many gaps between events of one key there are, and their sums in events and in microseconds."""
    times, gaps = [to_micros(event["time"]) for event in events], np.zeros(3)
    for places in split_streams(pattern, events).values():
        for before, now in pairwise(places):
            gaps += weight(now) * np.array([1, now - before, times[now] - times[before]])
    return gaps.tolist()


def _count_silences(moments, base=2, unit=1):
    """Return the bin of each mean gap: 1, 2, 4, ... events or 1, 4, 16, ... seconds; the last of all for none."""
    edges = [base**power * unit for power in range(SILENCES - 1)]
    return [SILENCES - 1 if mean is None else sum(edge < mean for edge in edges) for mean in compute_mean_gaps(moments)]


def encode_wait(wait, watched):
    """Return the bin of a wait that ended; else, behind those, how many bins were over when nothing more was known."""
    if wait is not None and wait <= EDGES[-1]:
        return sum(edge < wait for edge in EDGES)
    return len(EDGES) + sum(edge <= watched for edge in EDGES)


def to_dense(counts, shape):
    matrix = np.zeros(shape)
    for place, count in counts.items():
        matrix[place] += count
    return matrix


def compute_kaplan_meier(row):
    """Return the share of waits that ended by each edge: shares of those that went on, of all watched, multiply."""
    size = len(EDGES)
    left, curve = 1.0, []
    for place in range(size):
        watched = sum(row[place:size]) + sum(row[size + place + 1 :])
        left *= 1 - (row[place] / watched if watched else 0)
        curve.append(1 - left)
    return curve


def count_known_waits(row, count):
    """Count the waits of which it is known whether they end within so many: watched until then, or ended by then."""
    place, size = sum(edge < count for edge in EDGES), len(EDGES)
    return sum(row[:size]) + sum(row[size + place + 1 :])


def thin_curve(curve, count, own):
    """Of so many events each is of the key with a chance: a sum over how many are."""
    return sum(comb(count, k) * own**k * (1 - own) ** (count - k) * curve[k] for k in range(count + 1))


# Alarms -----------------------------------------------------------------------------------------------


def list_crossings(chances, limit):
    """Return where a probability is above, and was not before."""
    return [at for at, p in enumerate(chances) if p > limit and not (at and chances[at - 1] > limit)]


def list_changes(chances, step):
    crossings, last = [], None
    for at, p in enumerate(chances):
        if last is None or abs(p - last) > step:
            crossings.append(at)
            last = p
    return crossings


def list_episodes(chances, limit, hits, idle):
    """Return where a probability is above for the first time of an episode.

    An episode is over with a match, or when all that had begun is gone. Where nothing has begun there is none, and a
    probability that stays above is told once.
    """
    spans, has_alarm, begun = [], False, False
    for at, p in enumerate(chances):
        if hits[at] or (idle[at] and begun) or (idle[at] and not (at and chances[at - 1] > limit)):
            has_alarm = False
        if p > limit and not has_alarm:
            spans.append(at)
            has_alarm = True
        begun = not idle[at]
    return spans


# Sources ----------------------------------------------------------------------------------------------


class SymbolSource:
    """A Markov source: `law` has for each tuple of the last symbols how likely each symbol is; () is independence."""

    def __init__(self, law):
        self.law = law
        self.order = len(next(iter(law)))
        self.symbols = "abcdefg"[: len(next(iter(law.values())))]

    def word(self, length, seed):
        rng = np.random.default_rng(seed)
        draws = rng.random(length)
        symbols = [0] * self.order
        cumulative = {last: np.cumsum(row) for last, row in self.law.items()}
        for draw in draws:
            last = tuple(symbols[len(symbols) - self.order :])
            symbols.append(min(int(np.searchsorted(cumulative[last], draw)), len(self.symbols) - 1))
        return [self.symbols[number] for number in symbols[self.order :]]

    def within(self, chain, count):
        """Return the exact probability of a match within `count` events, by (last symbols, state of the automaton)."""
        table, reports = chain.automaton.table, chain.automaton.reports
        labels = [chain.label(symbol) for symbol in self.symbols]
        pairs = [(last, state) for last in self.law for state in range(len(table))]
        chances = dict.fromkeys(pairs, 0.0)
        for _ in range(count):
            chances = {
                (last, state): sum(
                    chance
                    * (
                        1.0
                        if reports[state, label]
                        else chances[(*last, number)[1:] if last else (), table[state, label]]
                    )
                    for number, (chance, label) in enumerate(zip(self.law[last], labels, strict=True))
                )
                for last, state in pairs
            }
        return chances


def compute_truth(source, chain, word, count):
    """Return the true probability after each event, as long as the source's memory is filled."""
    exact, forecasts, state = source.within(chain, count), [], 0
    for place, kind in enumerate(word):
        state = int(chain.automaton.table[state, chain.label(kind)])
        last = tuple(source.symbols.index(symbol) for symbol in word[max(0, place + 1 - source.order) : place + 1])
        forecasts.append(exact[last, state] if len(last) == source.order else np.nan)
    return np.array(forecasts)


def list_outcomes(hits, length, count):
    """Tell of each event whether a match comes within the next `count`."""
    matched = np.zeros(length + count + 1)
    matched[list(hits)] = 1
    ahead = np.append(0, np.cumsum(matched))
    at = np.arange(length)
    return ahead[at + count + 1] - ahead[at + 1] > 0


def remove_labels(node):
    """Take the labels of steps away, so that two trees fit into one."""
    if hasattr(node, "label"):
        return replace(node, label=None)
    if hasattr(node, "parts"):
        return replace(node, parts=tuple(map(remove_labels, node.parts)))
    return replace(node, step=remove_labels(node.step)) if hasattr(node, "step") else node
