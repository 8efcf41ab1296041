"""What the API answers, a module for each subject; each has a tuple `OPERATIONS`, which `api.app.ROUTES` lists."""
