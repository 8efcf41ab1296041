"""How good forecasts are: scores, and how well probabilities are calibrated."""
