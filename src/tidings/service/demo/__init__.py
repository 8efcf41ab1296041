"""`make demo`: a service with a small world around it."""
