"""Streaming matching of events (Schitinin, Tsesko, 2016): rate and latency over time, and what the text claims."""
