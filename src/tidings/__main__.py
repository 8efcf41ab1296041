"""`python -m tidings`: the command line."""

from tidings.cli.app import main

main()
