"""A detector as bytes and back: `detector_bytes` the whole, `run_bytes` one run."""
