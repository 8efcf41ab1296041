"""The commands on filters: parse, match, compile, explain, why, test, concept."""
