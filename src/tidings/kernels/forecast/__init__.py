"""Kernels of forecasts: moves and waits are counted, probabilities looked up."""
