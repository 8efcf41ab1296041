"""`td.Live`: subscriptions that change while streams run, as a folder of versions."""
