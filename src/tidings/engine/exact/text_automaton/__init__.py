"""One automaton over all text patterns: which of many `contains`, `like` and `matches` tests a text satisfies."""

from tidings.engine.exact.text_automaton.automaton import TextAutomaton

__all__ = ["TextAutomaton"]
