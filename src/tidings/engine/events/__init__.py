"""From events to codes: mappings and Arrow tables become columns, and columns become codes."""
