"""P-ToPSS: the matching machine of "Predictive Publish/Subscribe Matching", as printed: a baseline.

Muthusamy, Liu, Jacobsen, DEBS 2010, sections 4 and 5.1. Each pattern is a state machine; parts under `and` and `or`
are Boolean machines whose children are state machines (`state_graph`); conditions go by time lists
(`time_lists`). An instance is one way to have come so far: a state and its own time lists (Table 2).

At an event an instance takes the primary link of every next step the event satisfies; when its state ends a term it
also stays, and takes the secondary link when the event satisfies the state's own step. The initial state is always
tried. Cost per event: O(instances that the event moves, plus those inside a term), by a hash map from event to
waiting states; with conditions also the lengths of their time lists, which only `expire` bounds.

Chosen, where the paper is silent or says two things:
- Instances that agree are one: one that has no time that another in its state has not is not kept. So Figure 7 has
  one instance with the list [1, 2, 3], and without conditions a state is simply live or not.
- A full match ends nothing: later events may complete further ones with the same beginnings (mode `overlap`). A
  subscription is told once per event, with the time lists that are left, all that the machine knows of the events.
- A link is taken only if each of its conditions is satisfied by some time (the text; Match as printed inserts first).
- Prune goes out from the state left, as printed, and from the one entered: the text wants all lists pruned, and the
  first alone lets impossible matches through. It passes over states not reached yet (as printed it would empty the
  lists they refer to), and drops an entry whose compatibility set became empty.
- Children begin with the instance that stands before them, read later events, and end with it; its conditions'
  times are handed down. They keep each match, and `and` joins them pair by pair.
- Variables: one machine per value of the key; variables that only some steps share are refused.
- Self links are not counted as transitions; every subscription is added before the first event.
- Unless `expire` is given, no time is ever forgotten.

Known to differ from `definition` (tests/unit/papers/p_topss): the secondary link renews a step's time
without the steps that must stand just before it; one event may serve two children of `and`; `x , (b and c)` never
matches; case 4 takes every condition for an absolute one, and includes its lower end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidings.errors import PatternError
from tidings.papers.p_topss.state_graph import PaperGraph
from tidings.papers.p_topss.step_layout import StepLayout, refuse
from tidings.papers.p_topss.tracks import MachineTally, Track

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from tidings.model.patterns import NamedFilter, Pattern
    from tidings.papers.p_topss.state_graph import PaperState
    from tidings.papers.p_topss.time_lists import TimeLists

    Key = tuple[Any, ...]
    Signature = frozenset[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class PaperMatch:
    """A matched subscription: the times left in its lists, step by step, and the values of its key variables."""

    subscription: str
    times: tuple[tuple[str, tuple[int, ...]], ...] = ()
    key: tuple[Any, ...] = ()


class PaperMachine:
    """The paper's machine over all subscriptions; `on_event` takes the names of the filters an event satisfies."""

    def __init__(self, *, expire: int | None = None) -> None:
        """Start without subscriptions; times older than `expire` microseconds are forgotten, and matches with them."""
        self._named: dict[str, NamedFilter] = {}
        self._numbers: dict[Any, int] = {}  # primitive filters, with the attributes that give the key
        self._symbols: dict[str, int] = {}  # the number of each name's filter
        self._attributes: list[tuple[str, ...]] = []
        self._groups: dict[Signature, _KeyGroup] = {}
        self._tally = MachineTally(expire)
        self._names: set[str] = set()

    # Subscriptions -----------------------------------------------------------------------------

    def add(self, name: str, pattern: Pattern) -> None:
        """Add a subscription, before the first event; what the paper has not raises `Unsupported`."""
        if self._tally.begun:
            refuse("subscription after the first event", name)
        self._refuse_duplicate(name, pattern)
        StepLayout(pattern)  # refuses before anything is changed
        self._names.add(name)
        symbols = {used: self._number_filter(pattern[used]) for used in pattern.list_filters()}
        signature = frozenset(self._attributes[symbol] for symbol in symbols.values())
        group = self._groups.setdefault(signature, _KeyGroup(signature))
        group.graph.add(name, pattern, symbols=symbols)

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
        self._named[named.name], self._symbols[named.name] = named, number
        return number

    # Events ------------------------------------------------------------------------------------

    def on_event(
        self, names: Collection[str], time: int, *, values: Mapping[str, Any] | None = None
    ) -> list[PaperMatch]:
        """Take the next event: the filters it satisfies, its time, and its values where patterns have variables."""
        self._tally.begun = True
        symbols = {self._symbols[name] for name in names if name in self._symbols}
        matches: dict[tuple[str, Key], PaperMatch] = {}
        for group in self._groups.values():
            for key, attributes in group.find_keys(values or {}):
                mine = [symbol for symbol in symbols if self._attributes[symbol] in attributes]
                track = group.get_track(key, self._tally)
                for state, lists in track.step(mine, time):
                    for match in _iterate_matches(state, lists, key):
                        matches.setdefault((match.subscription, key), match)
        return list(matches.values())

    # Figures -----------------------------------------------------------------------------------

    @property
    def states(self) -> int:
        """States after merging, without initial ones."""
        return sum(group.graph.states for group in self._groups.values())

    @property
    def states_unmerged(self) -> int:
        """States before merging, without initial ones."""
        return sum(group.graph.states_unmerged for group in self._groups.values())

    @property
    def states_shared(self) -> int:
        """States after merging that two subscriptions or more have."""
        return sum(group.graph.states_shared for group in self._groups.values())

    @property
    def transitions(self) -> int:
        """Primary and secondary links taken so far."""
        return self._tally.transitions

    @property
    def instances(self) -> int:
        """Instances alive, children's included, initial states not."""
        return sum(track.count_instances() for group in self._groups.values() for track in group.tracks.values())

    def list_times(self) -> list[dict[str, tuple[int, ...]]]:
        """Return the time lists of the instances alive, each by the primitive filters that lead to its states."""
        tracks = [track for group in self._groups.values() for track in group.tracks.values()]
        names = {number: name for name, number in reversed(self._symbols.items())}
        return [
            {
                names[state.symbol]: tuple(sorted(times))
                for state, times in instance.lists.items()
                if state.symbol is not None
            }
            for track in tracks
            for instance in track.iterate_instances()
        ]


def _iterate_matches(state: PaperState, lists: TimeLists, key: Key) -> Iterator[PaperMatch]:
    plain = tuple(value for _, value in key)
    for ending in state.ends:
        times = tuple(
            (called, tuple(sorted(lists[reached]))) for reached, called in ending.step_names if reached in lists
        )
        yield PaperMatch(ending.name, times, plain)


class _KeyGroup:
    """The subscriptions that take their keys from the same attributes; one track for each key."""

    def __init__(self, signature: Signature) -> None:
        self.graph, self.tracks = PaperGraph(), dict[Any, Track]()
        self._signature = signature

    def find_keys(self, values: Mapping[str, Any]) -> list[tuple[Key, set[tuple[str, ...]]]]:
        """Return the keys whose substream the event belongs to, each with the attributes that carry it."""
        keys: dict[Key, set[tuple[str, ...]]] = {}
        for attributes in self._signature:
            key_values = [values.get(attribute) for attribute in attributes]
            if all(isinstance(value, str | int | float) for value in key_values):
                # A boolean equals only booleans: Python's `True == 1` must not.
                keys.setdefault(tuple((isinstance(value, bool), value) for value in key_values), set()).add(attributes)
        return list(keys.items())

    def get_track(self, key: Key, tally: MachineTally) -> Track:
        track = self.tracks.get(key)
        if track is None:
            track = self.tracks[key] = Track(self.graph.root, {}, tally)
        return track
