"""The command line: `app` has the commands and their help, one module each does a command's work when it runs."""
