"""P-ToPSS: the matching machine of "Predictive Publish/Subscribe Matching", as printed: a baseline.

Muthusamy, Liu, Jacobsen, DEBS 2010, sections 4 and 5.1. Each pattern is a state machine; parts under `and` and `or`
are Boolean machines whose children are state machines (`state_graph`); conditions are evaluated on time lists
(`time_lists`). An instance is one path taken so far: a state and its own time lists (Table 2).

At an event an instance takes the primary link of every next step the event satisfies; when its state ends a term it
also stays, and takes the secondary link when the event satisfies the state's own step. The initial state is always
tried. Cost per event: O(instances that the event moves, plus those inside a term), by a hash map from event to
waiting states; with conditions also the lengths of their time lists, which only `expire` bounds.

README.md here lists what was chosen where the paper is silent or says two things, and where the machine is known to
differ from `patterns.definition`. Every subscription is added before the first event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidings.errors import PatternError
from tidings.papers.p_topss.state_graph import GraphBuilder, MachineTally, PaperState
from tidings.papers.p_topss.step_layout import StepLayout, refuse
from tidings.papers.p_topss.tracks import Track, TrackInstance

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from tidings.model import Filter
    from tidings.model.patterns import NamedFilter, Pattern
    from tidings.papers.p_topss.time_lists import TimeLists

    VariableValues = tuple[tuple[bool, Any], ...]
    Signature = frozenset[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class PaperMatch:
    """A matched subscription: the times left in its lists, step by step, and the values of its key variables."""

    subscription: str
    times: tuple[tuple[str, tuple[int, ...]], ...] = ()
    key: tuple[Any, ...] = ()


class PaperMachine:
    """The paper's machine over all subscriptions; `on_event` takes the names of the filters an event satisfies.

    `tally` has the number of states and of primary and secondary links taken so far.
    """

    def __init__(self, *, expire: int | None = None) -> None:
        """Start without subscriptions; times older than `expire` microseconds are forgotten, and matches with them."""
        self._named: dict[str, NamedFilter] = {}
        # Of primitive filters, each with the attributes that give the key.
        self._numbers: dict[tuple[Filter, tuple[str, ...]], int] = {}
        self.symbols: dict[str, int] = {}  # the number of each name's filter
        self._attributes: list[tuple[str, ...]] = []
        self._groups: dict[Signature, _KeyGroup] = {}
        self.tally = MachineTally(expire)
        self._names: set[str] = set()

    def add(self, name: str, pattern: Pattern) -> None:
        """Add a subscription, before the first event; a part that the paper does not support raises `Unsupported`."""
        if self.tally.begun:
            refuse("subscription after the first event", name)
        self._refuse_duplicate(name, pattern)
        StepLayout(pattern)  # refuses before anything is changed
        self._names.add(name)
        symbols = {used: self._number_filter(pattern[used]) for used in pattern.list_filters()}
        signature = frozenset(self._attributes[symbol] for symbol in symbols.values())
        group = self._groups.setdefault(signature, _KeyGroup(signature))
        GraphBuilder(group.root, self.tally, pattern, symbols).build(name)

    def _refuse_duplicate(self, name: str, pattern: Pattern) -> None:
        if name in self._names:
            msg = f"there is a subscription `{name}` already"
            raise PatternError(msg)
        for used in pattern.list_filters():
            if self._named.get(used, pattern[used]) != pattern[used]:
                msg = f"`{used}` means another filter in an earlier subscription; give it another name"
                raise PatternError(msg)

    def _number_filter(self, named: NamedFilter) -> int:
        attributes = tuple(attribute for attribute, _ in sorted(named.variables, key=lambda pair: pair[1]))
        number = self._numbers.setdefault((named.filter, attributes), len(self._numbers))
        if number == len(self._attributes):
            self._attributes.append(attributes)
        self._named[named.name], self.symbols[named.name] = named, number
        return number

    def on_event(
        self, names: Collection[str], time: int, *, values: Mapping[str, Any] | None = None
    ) -> list[PaperMatch]:
        """Take the next event: the filters it satisfies, its time, and its values where patterns have variables."""
        self.tally.begun = True
        symbols = {self.symbols[name] for name in names if name in self.symbols}
        matches: dict[tuple[str, VariableValues], PaperMatch] = {}
        for group in self._groups.values():
            for key, attributes in group.find_keys(values or {}):
                mine = [symbol for symbol in symbols if self._attributes[symbol] in attributes]
                if key not in group.tracks:
                    group.tracks[key] = Track(group.root, {}, self.tally)
                for state, lists in group.tracks[key].step(mine, time):
                    for match in _iterate_matches(state, lists, key):
                        matches.setdefault((match.subscription, key), match)
        return list(matches.values())

    def iterate_instances(self) -> Iterator[TrackInstance]:
        """Yield the instances alive, children's included, initial states not."""
        for group in self._groups.values():
            for track in group.tracks.values():
                yield from track.iterate_instances()


def _iterate_matches(state: PaperState, lists: TimeLists, key: VariableValues) -> Iterator[PaperMatch]:
    plain = tuple(value for _, value in key)
    for ending in state.ends:
        times = tuple(
            (called, tuple(sorted(lists[reached]))) for reached, called in ending.step_names if reached in lists
        )
        yield PaperMatch(ending.name, times, plain)


class _KeyGroup:
    """The subscriptions that take their keys from the same attributes; one track for each key."""

    def __init__(self, signature: Signature) -> None:
        self.root = PaperState()
        self.tracks: dict[VariableValues, Track] = {}
        self._signature = signature

    def find_keys(self, values: Mapping[str, Any]) -> list[tuple[VariableValues, set[tuple[str, ...]]]]:
        """Return the keys whose substream the event belongs to, each with the attributes that carry it."""
        keys: dict[VariableValues, set[tuple[str, ...]]] = {}
        for attributes in self._signature:
            key_values = [values.get(attribute) for attribute in attributes]
            if all(isinstance(value, str | int | float) for value in key_values):
                # A boolean equals only booleans: Python's `True == 1` must not.
                keys.setdefault(tuple((isinstance(value, bool), value) for value in key_values), set()).add(attributes)
        return list(keys.items())
