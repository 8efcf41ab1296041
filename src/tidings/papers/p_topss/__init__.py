"""P-ToPSS: the state machines of "Predictive Publish/Subscribe Matching", as printed."""
