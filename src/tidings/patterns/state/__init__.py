"""States as bytes: `graph_bytes` has one merged graph and the packing, `run_bytes` patterns and a whole run."""
