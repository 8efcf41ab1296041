"""From rows of codes to an index: the planner chooses keys and tiles, the builder lays them out."""
