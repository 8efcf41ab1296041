"""Pictures of a pattern's machines: its automaton, and its configurations with time conditions and variables.

Each function returns a `Picture`, which `tidings.patterns.drawing` writes as text, Graphviz or SVG.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.lang.patterns.durations import format_duration
from tidings.patterns.drawing import Arrow, DrawnState, Picture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.model.patterns import Pattern
    from tidings.patterns.compile.derivatives import Configurations, Edge, TimeCheck
    from tidings.patterns.compile.pattern_automaton import PatternAutomaton


def draw_automaton(automaton: PatternAutomaton, title: str = "automaton") -> Picture:
    """Describe an automaton; `*` stands for every event that no other arrow of the state names."""
    final = automaton.mark_final_states()
    notes = [" ".join(word if len(word) <= 3 else ("...", *word[-3:])) for word in automaton.list_shortest_words()]
    states = [DrawnState(f"N{i}", note, final=bool(final[i]), initial=i == 0) for i, note in enumerate(notes)]
    arrows = []
    for place, row in enumerate(automaton.table.tolist()):
        for target in dict.fromkeys(row):
            minterms = [number for number, to in enumerate(row) if to == target]
            label = "*" if 0 in minterms else automaton.minterms.describe(minterms)
            arrows.append(Arrow(f"N{place}", f"N{target}", label))
    return Picture(f"{title} ({automaton.mode})", tuple(states), tuple(arrows))


def draw_configurations(pattern: Pattern, graph: Configurations, *, title: str = "pattern") -> Picture:
    """Describe what a pattern may wait for: time conditions and variables on the arrows, `*` where it waits."""
    last, possible = len(graph.nodes), [edge for edge in graph.edges if edge.filter not in edge.forbid]
    targets = [last if edge.target is None else edge.target for edge in possible]
    ways = [(edge.source, to, _describe_step(pattern, edge)) for edge, to in zip(possible, targets, strict=True)]
    waits = [(place, node.guards) for place, node in enumerate(graph.nodes) if place and not node.contiguous]
    if pattern.absence is not None:
        ways.append((last, last + 1, f"{format_duration(pattern.absence.span)} pass"))
        waits.append((last, pattern.absence.without))
        last += 1
    ways += [(place, place, " and ".join(["*", *(f"not {name}" for name in without)])) for place, without in waits]
    note = "" if graph.within is None else f"within {format_duration(graph.within)}"
    states = [DrawnState(f"N{place}", initial=place == 0) for place in range(last)]
    arrows = tuple(Arrow(f"N{source}", f"N{target}", label) for source, target, label in ways)
    return Picture(title, (*states, DrawnState(f"N{last}", note, final=True)), arrows)


def _describe_step(pattern: Pattern, edge: Edge) -> str:
    """Describe the events that serve a step: filter, bindings of variables, forbidden filters and time conditions."""
    steps = pattern.steps()
    step = steps[edge.step]
    bindings = ", ".join(f"{attribute} = ${variable}" for attribute, variable in pattern[edge.filter].variables)
    head = (f"{step.label}:{step.filter}" if step.label else step.filter) + (f" [{bindings}]" if bindings else "")
    checks = [_describe_check(check, edge.step, [step.name for step in steps]) for check in edge.checks]
    return "\n".join([head, *(f"not {name}" for name in sorted(edge.forbid)), *(f"@ {check}" for check in checks)])


def _describe_check(check: TimeCheck, step: int, called: Sequence[str]) -> str:
    if check.early is not None and check.early.which == "begin":
        return f"within {format_duration(check.high or 0)}"
    firsts = ["first " if mark is not None and mark.which == "first" else "" for mark in (check.late, check.early)]
    names = [called[step if mark is None else mark.step] for mark in (check.late, check.early)]
    late, early = (f"t({first}{name})" for first, name in zip(firsts, names, strict=True))
    apart = f"|{late} - {early}|" if check.absolute else f"{late} - {early}"
    if check.high is not None:
        apart = f"{apart} {_format_bound('<', check.high, check.high + 1)}"
    if check.low is None:
        return apart
    if check.high is None:
        return f"{apart} {_format_bound('>', check.low, check.low - 1)}"
    sign, low = _format_bound("<", check.low, check.low - 1).split(maxsplit=1)
    return f"{low} {sign} {apart}"


def _format_bound(sign: str, closed: int, opened: int) -> str:
    """Write an end with the rounder of two numbers: configurations keep all ends closed, people write `< 5 min`."""
    inside, outside = format_duration(closed), format_duration(opened)
    return f"{sign} {outside}" if len(outside) < len(inside) else f"{sign}= {inside}"
