"""From a pattern tree to the merged graph that runs: terms, derivatives, graph; and the automaton, where it has one."""
