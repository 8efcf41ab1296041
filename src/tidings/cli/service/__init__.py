"""`tidings serve`, `tidings service` and `tidings sub`: a subscription service run, administered and used."""
