"""What forecasts cost."""
